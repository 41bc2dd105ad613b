// Messages of the user and of the agent.
import { html } from "../html.js";
import * as state from "../state.js";
import { Markdown } from "../markdown.js";
import { Menu } from "../parts/menu.js";
import { attempt, fork, revert } from "../actions.js";
import { sure } from "../parts/dialog.js";

export function UserMessage({ item, turnId, model }) {
  const entries = [
    ["Copy", () => copy(textOf(item))],
    ["Fork from here", () => attempt(() => fork(model.id, turnId))],
    ["Revert to here", () => askRevert(item, turnId, model)],
  ];
  return html`<article class="message user" aria-label="Message">
    <div class="bubble">
      ${item.content.map((part, index) => html`<${Part} key=${index} part=${part} />`)}
    </div>
    ${state.mayDrive.value && html`<${Menu} label="Actions for this message" entries=${entries} />`}
  </article>`;
}

/** The message comes back as a draft, to be sent otherwise. Files stay as they are. */
async function askRevert(item, turnId, model) {
  const text = "This message and everything after it are taken out of the thread. Files stay as they are.";
  if (!(await sure("Revert to here?", { text, action: "Revert" }))) return;
  const reverted = await attempt(() => revert(model, turnId));
  if (reverted) window.dispatchEvent(new CustomEvent("loomd:compose", { detail: textOf(item) }));
}

const textOf = (item) => item.content.map((part) => part.text ?? "").join("\n");

function Part({ part }) {
  if (part.type === "text") return html`<div class="plaintext">${part.text}</div>`;
  if (part.type === "image" && part.url.startsWith("data:image/")) return html`<img src=${part.url} alt="Picture of the user" />`;
  return html`<span class="chip">${part.name ?? part.path ?? part.url ?? part.type}</span>`;
}

export function AgentMessage({ item }) {
  return html`<article class=${`message agent ${item.phase === "commentary" ? "commentary" : ""}`} aria-label="Message">
    <${Markdown} text=${item.text ?? ""} />
    ${item.text && item.phase !== "commentary" && html`<button class="plain copy" aria-label="Copy this message" onClick=${() => copy(item.text)}>Copy</button>`}
  </article>`;
}

export function copy(text) {
  navigator.clipboard?.writeText(text).then(() => state.notify("Copied.", "info"), () => {});
}
