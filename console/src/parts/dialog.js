// Questions of the page itself: a name for something, or whether to go on. Answered with the keyboard or a click.
import { html, useEffect, useRef, useState } from "../html.js";
import * as state from "../state.js";

/** Asks for a line of text; resolves with it, or with null. */
export const ask = (title, { label, value = "", action = "Save" }) =>
  new Promise((resolve) => (state.dialog.value = { title, label, value, action, resolve }));

/** Asks whether to go on; resolves with true or false. */
export const sure = (title, { text, action }) =>
  new Promise((resolve) => (state.dialog.value = { title, text, action, resolve: (answer) => resolve(answer !== null) }));

export function Dialog() {
  const shown = state.dialog.value;
  return shown && html`<${Shown} key=${shown.title} shown=${shown} />`;
}

function Shown({ shown }) {
  const box = useRef(null);
  const [value, setValue] = useState(shown.value ?? "");
  useEffect(() => {
    box.current.showModal();
    box.current.querySelector("input")?.select();
  }, []);
  const close = (answer) => {
    state.dialog.value = null;
    shown.resolve(answer);
  };
  const submit = (event) => {
    event.preventDefault();
    if (!shown.label || value.trim()) close(value.trim());
  };
  return html`<dialog ref=${box} aria-label=${shown.title} onCancel=${(event) => (event.preventDefault(), close(null))}>
    <form onSubmit=${submit}>
      <h2>${shown.title}</h2>
      ${shown.text && html`<p>${shown.text}</p>`}
      ${shown.label && html`<label class="field"><span>${shown.label}</span><input type="text" value=${value} onInput=${(event) => setValue(event.target.value)} /></label>`}
      <div class="decisions"><span class="grow"></span>
        <button type="button" onClick=${() => close(null)}>Cancel</button>
        <button class=${shown.text ? "danger" : "primary"} disabled=${shown.label && !value.trim()}>${shown.action}</button></div>
    </form>
  </dialog>`;
}
