// The message: Enter sends; while a turn runs it steers, and Ctrl+Enter queues. Drafts are kept by this browser.
import { html, useEffect, useRef, useState } from "../html.js";
import * as state from "../state.js";
import { attempt, interrupt, newId, send } from "../actions.js";
import { Pickers } from "./pickers.js";
import { Suggestions } from "./suggestions.js";
import { picturesOf } from "./pictures.js";
import { runSlash } from "./slash.js";

export function Composer({ model, onFirst = null }) {
  const draftKey = `draft.${model?.id ?? "new"}`;
  const box = useRef(null);
  const [text, setText] = useState(() => state.read(draftKey, ""));
  const [pictures, setPictures] = useState([]);
  const id = useRef(null);
  const [busy, setBusy] = useState(false);
  const running = model?.turn.value ?? null;
  useEffect(() => fit(box.current), [text]);
  useEffect(() => {
    const add = (event) => write((box.current.value ? `${box.current.value}\n` : "") + event.detail);
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
      await (onFirst ? onFirst(input) : send(model, input, { queued, clientUserMessageId: (id.current ??= newId()) }));
    });
    setBusy(false);
    if (sent) {
      id.current = null;
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
  const onPaste = async (event) => {
    const pasted = await picturesOf(event.clipboardData);
    if (pasted.length) setPictures([...pictures, ...pasted].slice(0, 8));
  };
  return html`<div class="composer">
    ${pictures.length > 0 && html`<div class="pictures">${pictures.map((url, index) => html`<button key=${index} class="plain" aria-label=${`Remove picture ${index + 1}`} onClick=${() => setPictures(pictures.filter((_, at) => at !== index))}><img src=${url} alt="" /></button>`)}</div>`}
    <${Suggestions} box=${box} text=${text} model=${model} write=${write} />
    <textarea id="message" ref=${box} aria-label="Message" rows="1" placeholder=${running ? "Steer the running turn" : "Message"} value=${text}
      onInput=${(event) => write(event.target.value)} onKeyDown=${onKey} onPaste=${onPaste}></textarea>
    <div class="controls">
      ${model && html`<${Pickers} model=${model} />`}
      <span class="grow"></span>
      ${running && html`<button class="danger" onClick=${() => attempt(() => interrupt(model))}>Interrupt</button>`}
      ${running && html`<button disabled=${busy || !text.trim()} onClick=${() => submit(true)}>Queue</button>`}
      <button class="primary" disabled=${busy || !(text.trim() || pictures.length)} onClick=${() => submit(false)}>Send</button>
    </div>
  </div>`;
}

function fit(box) {
  if (!box) return;
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 280)}px`;
}
