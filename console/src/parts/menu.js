// A button that opens a short list of actions.
import { html, useEffect, useRef, useState } from "../html.js";

export function Menu({ label, entries }) {
  const [shown, setShown] = useState(false);
  const root = useRef(null);
  useEffect(() => {
    if (!shown) return;
    root.current.querySelector("[role=menuitem]")?.focus();
    const close = (event) => root.current?.contains(event.target) || setShown(false);
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, [shown]);
  const onKey = (event) => {
    const items = [...root.current.querySelectorAll("[role=menuitem]")];
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === "Escape") {
      setShown(false);
      root.current.querySelector("button")?.focus();
    } else if (to !== undefined) {
      items.at(to % items.length)?.focus();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="menu" ref=${root} onKeyDown=${shown ? onKey : null}>
    <button class="plain dots" aria-label=${label} aria-haspopup="menu" aria-expanded=${shown} onClick=${() => setShown(!shown)}>⋯</button>
    ${shown && html`<div role="menu" aria-label=${label}>
      ${entries.map(([name, run]) => html`<button role="menuitem" key=${name} onClick=${() => (setShown(false), run())}>${name}</button>`)}
    </div>`}
  </div>`;
}
