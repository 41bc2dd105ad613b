// The message: Enter sends; while a turn runs it steers, and Ctrl+Enter queues. Drafts are kept by this browser.
import { html, useEffect, useRef, useState } from "../html.js";
import * as state from "../state.js";
import { attempt, interrupt, newId, send } from "../actions.js";
import { Pickers } from "./pickers.js";
import { Suggestions } from "./suggestions.js";
import { picturesOf } from "./pictures.js";
import { runSlash } from "./slash.js";

const MOST_PICTURES = 8;

/** `onFirst(input, id, text)` takes the first message of a thread that is not there yet; `controls` stand beside it then. */
export function Composer({ model, onFirst = null, controls = null, cwd = null }) {
  const draftKey = `draft.${model?.id ?? "new"}`;
  const box = useRef(null);
  const [text, setText] = useState(() => state.read(draftKey, ""));
  const [pictures, setPictures] = useState([]);
  const id = useRef(null);
  const [busy, setBusy] = useState(false);
  const running = model?.turn.value ?? null;
  useEffect(() => fit(box.current), [text]);
  useEffect(() => {
    const add = (event) => {
      write((box.current.value ? `${box.current.value}\n` : "") + event.detail);
      box.current.focus();
    };
    window.addEventListener("loomd:compose", add);
    return () => window.removeEventListener("loomd:compose", add);
  }, []);

  const write = (value) => {
    id.current = null;
    setText(value);
    state.keep(draftKey, value);
  };
  const submit = async (queued) => {
    if (busy || !(text.trim() || pictures.length)) return;
    setBusy(true);
    const sent = await attempt(async () => {
      if (model && (await runSlash(model, text))) return;
      const input = [...(text.trim() ? [{ type: "text", text, text_elements: [] }] : []), ...pictures.map((url) => ({ type: "image", url }))];
      id.current ??= newId();
      await (onFirst ? onFirst(input, id.current, text) : send(model, input, { queued, clientUserMessageId: id.current }));
    });
    setBusy(false);
    if (sent) {
      write("");
      setPictures([]);
      box.current?.focus();
    }
  };
  const onKey = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.defaultPrevented) return;
    event.preventDefault();
    submit(event.ctrlKey || event.metaKey);
  };
  const addPictures = (data) => attempt(async () => {
    const added = await picturesOf(data);
    if (added.length) setPictures((all) => [...all, ...added].slice(0, MOST_PICTURES));
  });
  const onDrop = (event) => (event.preventDefault(), addPictures(event.dataTransfer));
  const empty = !(text.trim() || pictures.length);
  return html`<div class="composer" onDragOver=${(event) => event.preventDefault()} onDrop=${onDrop}>
    ${pictures.length > 0 && html`<div class="pictures">${pictures.map((url, index) => html`<button key=${index} class="plain" aria-label=${`Remove picture ${index + 1}`} onClick=${() => setPictures(pictures.filter((_, at) => at !== index))}><img src=${url} alt="" /></button>`)}</div>`}
    <${Suggestions} box=${box} text=${text} cwd=${model?.settings.value?.cwd ?? cwd} commands=${model !== null} write=${write} />
    <textarea id="message" ref=${box} aria-label="Message" rows="1" placeholder=${running ? "Steer the running turn" : "Message"} value=${text}
      onInput=${(event) => write(event.target.value)} onKeyDown=${onKey} onPaste=${(event) => addPictures(event.clipboardData)}></textarea>
    <div class="controls">
      ${model ? html`<${Pickers} model=${model} />` : controls}
      <div class="actions">
      <label class="plain-label" title="Add a picture"><input type="file" accept="image/*" multiple class="sr" aria-label="Add a picture" onChange=${(event) => (addPictures(event.target), (event.target.value = ""))} /><span class="plus-icon" aria-hidden="true"></span></label>
      ${running && html`<button class="danger" onClick=${() => attempt(() => interrupt(model))}>Interrupt</button>`}
      ${running && html`<button title="After this turn (Ctrl+Enter)" disabled=${busy || empty} onClick=${() => submit(true)}>Queue</button>`}
      <button class="primary" title=${running ? "Steer the running turn (Enter)" : "Enter"} disabled=${busy || empty} onClick=${() => submit(false)}>Send</button>
      </div>
    </div>
  </div>`;
}

function fit(box) {
  if (!box) return;
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 280)}px`;
}
