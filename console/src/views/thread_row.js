// One thread of the list.
import { html } from "../html.js";
import * as state from "../state.js";
import { openThread } from "../live.js";
import { archive, attempt, fork, pin, remove, rename, unarchive } from "../actions.js";
import { markRead } from "../load.js";
import { ask, sure } from "../parts/dialog.js";
import { Menu } from "../parts/menu.js";

export const titleOf = (thread) => thread?.name || thread?.preview?.trim().split("\n")[0].slice(0, 120) || "Untitled";

export function ThreadRow({ thread, snippet = null }) {
  const now = state.stateOf(thread);
  const current = state.view.value === "thread" && state.open.value?.id === thread.id;
  const describedBy = `state-${thread.id}`;
  return html`<li class=${`row ${now.replaceAll(" ", "-")}`}>
    <a href=${`#/thread/${thread.id}`} aria-current=${current ? "page" : null} aria-describedby=${describedBy} onClick=${(event) => onOpen(event, thread.id)}>
      <span class="dot" aria-hidden="true"></span><span class="name">${titleOf(thread)}</span>
      <time aria-hidden="true">${ago(thread.updatedAt)}</time>
      ${snippet && html`<span class="snippet" aria-hidden="true">${snippet}</span>`}
    </a>
    <span id=${describedBy} hidden>${now}</span>
    ${state.mayDrive.value && html`<${Menu} label=${`Actions for ${titleOf(thread)}`} entries=${entries(thread)} />`}
  </li>`;
}

function onOpen(event, id) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  state.sidebarShown.value = false;
  attempt(() => openThread(id));
}

function entries(thread) {
  const archived = state.archivedShown.value;
  const unread = state.unread.value.has(thread.id);
  return [
    [state.isPinned(thread) ? "Unpin" : "Pin", () => attempt(() => pin(thread))],
    [unread ? "Mark as read" : "Mark as unread", () => attempt(() => markRead(thread.id, unread ? "read" : "unread"))],
    ["Rename", () => askName(thread)],
    ["Fork", () => attempt(() => fork(thread.id))],
    archived ? ["Unarchive", () => attempt(() => unarchive(thread.id))] : ["Archive", () => attempt(() => archive(thread.id))],
    ["Delete", () => askDelete(thread)],
  ];
}

async function askName(thread) {
  const name = await ask("Rename the thread", { label: "Name of the thread", value: thread.name ?? "" });
  if (name) attempt(() => rename(thread.id, name));
}

async function askDelete(thread) {
  const text = `“${titleOf(thread)}” and its history are deleted for good.`;
  if (await sure("Delete the thread?", { text, action: "Delete" })) attempt(() => remove(thread.id));
}

export function ago(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - (seconds ?? 0));
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.floor(passed / 60)}m`;
  if (passed < 86400) return `${Math.floor(passed / 3600)}h`;
  return `${Math.floor(passed / 86400)}d`;
}
