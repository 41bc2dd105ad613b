// The list of threads: grouped by folder, live, searched.
import { html } from "../html.js";
import * as state from "../state.js";
import { attempt, searchThreads } from "../actions.js";
import { loadThreads } from "../load.js";
import { ThreadRow } from "./thread_row.js";
import { Connection, newThread } from "./head.js";

export function Sidebar() {
  const results = state.searchResults.value;
  return html`<nav class="sidebar" aria-label="Threads">
    <div class="top">
      <div class="brand"><span class="logo" aria-hidden="true"></span>loomd<${Connection} /></div>
      ${state.mayDrive.value && html`<button class="primary wide" onClick=${newThread}>New thread</button>`}
      <input id="search" type="search" aria-label="Search threads" placeholder="Search threads" value=${state.search.value} onInput=${onSearch} />
    </div>
    <div class="list" tabindex="-1">${results ? html`<${Results} results=${results} />` : html`<${Groups} />`}</div>
    <div class="bottom">
      <button class="plain" aria-pressed=${state.archivedShown.value} onClick=${toggleArchived}>${state.archivedShown.value ? "Back to threads" : "Archived"}</button>
      <button class="plain" onClick=${() => ((state.view.value = "settings"), (state.sidebarShown.value = false))}>Settings</button>
    </div>
  </nav>`;
}

function onSearch(event) {
  attempt(() => searchThreads(event.target.value));
}

function toggleArchived() {
  state.archivedShown.value = !state.archivedShown.value;
  attempt(() => loadThreads());
}

function Results({ results }) {
  if (!results.length) return html`<p class="empty">Nothing found.</p>`;
  return html`<ul>${results.map(({ thread, snippet }) => html`<${ThreadRow} key=${thread.id} thread=${state.threads.value.get(thread.id) ?? thread} snippet=${snippet} />`)}</ul>`;
}

function Groups() {
  const all = [...state.threads.value.values()];
  if (!all.length) return html`<p class="empty">${state.archivedShown.value ? "Nothing is archived." : "No threads yet."}</p>`;
  all.sort((a, b) => b.updatedAt - a.updatedAt);
  const waiting = all.filter((thread) => state.stateOf(thread) === "waiting for you");
  const pinned = all.filter((thread) => state.isPinned(thread) && !waiting.includes(thread));
  const apart = new Set([...pinned, ...waiting]);
  // A section that another client made counts more than the folder.
  const groups = new Map();
  for (const thread of all) {
    if (apart.has(thread)) continue;
    const key = thread.section?.id ?? thread.cwd;
    if (!groups.has(key)) groups.set(key, { title: thread.section?.name ?? folderName(thread.cwd), hint: thread.section ? null : thread.cwd, threads: [] });
    groups.get(key).threads.push(thread);
  }
  return html`
    ${waiting.length > 0 && html`<${Group} title="Waiting for you" threads=${waiting} />`}
    ${pinned.length > 0 && html`<${Group} title="Pinned" threads=${pinned} />`}
    ${[...groups].map(([key, group]) => html`<${Group} key=${key} ...${group} />`)}
    ${state.moreThreads.value && html`<button class="plain wide" onClick=${() => attempt(() => loadThreads(state.moreThreads.value))}>Older threads</button>`}`;
}

export const folderName = (cwd) => cwd?.split("/").filter(Boolean).at(-1) ?? "/";

function Group({ title, hint, threads }) {
  return html`<section><h2 title=${hint}>${title}</h2><ul>${threads.map((thread) => html`<${ThreadRow} key=${thread.id} thread=${thread} />`)}</ul></section>`;
}
