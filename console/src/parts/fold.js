// A piece of a transcript that is folded at first.
import { html, useState } from "../html.js";

export function Fold({ label, hint = "", open = false, children }) {
  const [shown, setShown] = useState(open);
  return html`<div class="fold">
    <button class="plain foldline" aria-expanded=${shown} onClick=${() => setShown(!shown)}>
      <span class="chevron" aria-hidden="true"></span><span class="foldlabel">${label}</span><span class="hint">${hint}</span>
    </button>
    ${shown && html`<div class="folded">${children}</div>`}
  </div>`;
}
