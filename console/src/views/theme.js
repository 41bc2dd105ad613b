// Light, dark, or as the system has it.
import { html, signal } from "../html.js";
import { keep, read } from "../state.js";

const theme = signal(read("theme", "system"));
apply();

function apply() {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function Theme() {
  const choose = (name) => {
    theme.value = name;
    keep("theme", name);
    apply();
  };
  return html`<section class="card"><h2>Appearance</h2><div class="segmented" role="group" aria-label="Theme">
    ${["system", "light", "dark"].map((name) => html`<button key=${name} aria-pressed=${theme.value === name} onClick=${() => choose(name)}>${name}</button>`)}
  </div></section>`;
}
