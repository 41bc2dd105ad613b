// The frame of the page: threads, the open view, changes.
import { html } from "../html.js";
import * as state from "../state.js";
import { Sidebar } from "./sidebar.js";
import { ThreadView } from "./thread_view.js";
import { NewThread } from "./new_thread.js";
import { Settings } from "./settings.js";
import { SignedOut } from "./signed_out.js";
import { Dialog } from "../parts/dialog.js";

export function App() {
  if (state.connection.value === "refused") return html`<${SignedOut} problem="This session was revoked." />`;
  const view = state.view.value;
  return html`<div class=${`frame ${state.sidebarShown.value ? "sidebar-shown" : ""}`}>
    <a class="skip" href="#message" onClick=${(event) => (event.preventDefault(), document.getElementById("message")?.focus())}>Skip to the message</a>
    <${Sidebar} />
    ${state.sidebarShown.value && html`<button class="shade" aria-label="Close the list of threads" onClick=${() => (state.sidebarShown.value = false)}></button>`}
    ${view === "settings" ? html`<${Settings} />` : view === "thread" && state.open.value ? html`<${ThreadView} key=${state.open.value.id} model=${state.open.value} />` : html`<${NewThread} />`}
    <${Notices} />
    <${Dialog} />
  </div>`;
}

function Notices() {
  return html`<div class="notices" role="alert">
    ${state.notices.value.map((notice) => html`<div class=${`notice ${notice.kind}`} key=${notice.id}>
      <span>${notice.text}</span><button class="plain" aria-label="Dismiss" onClick=${() => state.dismiss(notice.id)}>×</button>
    </div>`)}
  </div>`;
}
