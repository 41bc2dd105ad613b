// A comment on a line of a diff, written below it.
import { html, useEffect, useRef, useState } from "../html.js";

/** Calls `onEnd(word, now)`: with null if nothing is said; `now` is false if the comment waits in the message. */
export function LineComment({ number, onEnd }) {
  const [word, setWord] = useState("");
  const box = useRef(null);
  useEffect(() => box.current.focus(), []);
  const onKey = (event) => {
    if (event.key === "Escape") onEnd(null);
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) onEnd(word.trim() || null, true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="comment">
    <textarea ref=${box} rows="2" aria-label=${`Comment on line ${number}`} placeholder=${`Comment on line ${number}`} value=${word} onInput=${(event) => setWord(event.target.value)} onKeyDown=${onKey}></textarea>
    <div class="decisions">
      <button class="primary" disabled=${!word.trim()} onClick=${() => onEnd(word.trim(), true)}>Comment</button>
      <button disabled=${!word.trim()} onClick=${() => onEnd(word.trim(), false)}>Add to the draft</button>
      <button class="plain" onClick=${() => onEnd(null)}>Cancel</button>
    </div>
  </div>`;
}
