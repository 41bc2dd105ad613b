// One thread of the list.
import { html } from "../html.js";
import * as state from "../state.js";
import { openThread } from "../live.js";
import { archive, attempt, fork, pin, remove, rename, unarchive } from "../actions.js";
import { Menu } from "../parts/menu.js";

export const titleOf = (thread) => thread?.name || thread?.preview?.trim().split("\n")[0].slice(0, 120) || "New thread";

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
  return [
    [state.pinned.value.has(thread.id) ? "Unpin" : "Pin", () => pin(thread.id)],
    ["Rename", () => askName(thread)],
    ["Fork", () => attempt(() => fork(thread.id))],
    archived ? ["Unarchive", () => attempt(() => unarchive(thread.id))] : ["Archive", () => attempt(() => archive(thread.id))],
    ["Delete", () => confirm(`Delete “${titleOf(thread)}” for good?`) && attempt(() => remove(thread.id))],
  ];
}

function askName(thread) {
  const name = prompt("Name of the thread", thread.name ?? "");
  if (name?.trim()) attempt(() => rename(thread.id, name.trim()));
}

export function ago(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - (seconds ?? 0));
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.floor(passed / 60)}m`;
  if (passed < 86400) return `${Math.floor(passed / 3600)}h`;
  return `${Math.floor(passed / 86400)}d`;
}
