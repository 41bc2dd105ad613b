// The head of a view. Where there is no room for the list of threads, it leads there, to a new thread, and has the
// state of the connection, which are in that list elsewhere.
import { html } from "../html.js";
import * as state from "../state.js";
import { focusSoon } from "../keys.js";

export function Head({ className = "", children }) {
  return html`<header class=${`head ${className}`}>
    <button class="plain only-small" aria-label="Show the threads" onClick=${() => (state.sidebarShown.value = true)}>☰</button>
    ${children}
    <${Connection} />
    ${state.mayDrive.value && state.view.value !== "new" && html`<button class="plain only-small" aria-label="New thread" onClick=${newThread}><span class="plus-icon" aria-hidden="true"></span></button>`}
  </header>`;
}

export function newThread() {
  state.view.value = "new";
  state.sidebarShown.value = false;
  focusSoon("#message");
}

const WORDS = { connecting: "connecting", connected: "connected", reconnecting: "reconnecting" };

export function Connection() {
  const now = state.connection.value;
  return html`<div class=${`connection ${now}`} role="status" aria-label="Connection"><span class="dot" aria-hidden="true"></span><span>${WORDS[now] ?? now}</span></div>`;
}
