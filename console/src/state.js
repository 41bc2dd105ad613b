// What the page shows, as signals. Changed by `live.js` (messages of the server) and `actions.js` (the user).
import { computed, signal } from "./html.js";

/** @type {import("./html.js").Signal<"connecting" | "connected" | "reconnecting" | "refused">} */
export const connection = signal("connecting");
export const role = signal("drive");

/** Threads by id, as the server lists them. */
export const threads = signal(new Map());
export const archivedShown = signal(false);
export const moreThreads = signal(null);
export const search = signal("");
export const searchResults = signal(null);

/** Ids of threads that changed since somebody looked at them, as the server keeps it. */
export const unread = signal(new Set());
/** The read states of threads, by id, as the server last told them. */
export const readStates = new Map();
/** The section of pinned threads; null if the server has none, then this browser keeps the pins. */
export const pinnedSection = signal(null);
export const pinned = signal(new Set(read("pinned", [])));

/** The open thread: a `ThreadModel`, or null. */
export const open = signal(null);
/** "thread" | "new" | "settings" */
export const view = signal("new");
/** Beside the transcript where there is room; over it elsewhere, so not at first. */
export const changesShown = signal(innerWidth > 860 && read("changesShown", true));
/** The tab beside the transcript. */
export const sideTab = signal("Changes");
export const sidebarShown = signal(false);

export const models = signal([]);
export const modes = signal([]);
export const rateLimits = signal(null);

/** Server requests that wait for an answer, by id: {id, method, params, threadId}. */
export const requests = signal(new Map());
/** What this browser decided: [{at, threadId, what, decision}]. Shown where the server keeps no approvals. */
export const decisions = signal([]);
/** The question in front of everything, or null: see `parts/dialog.js`. */
export const dialog = signal(null);
/** Warnings about the configuration: [{summary, details}]. */
export const configWarnings = signal([]);
/** Counts changes of the account, so that views read it again. */
export const accountChanges = signal(0);
/** The ends of sign-ins: {loginId, success, error} of the last one, or null. */
export const loginEnded = signal(null);

/** Short messages for the user: [{id, text, kind}]. */
export const notices = signal([]);

export const mayDrive = computed(() => role.value === "drive");
export const mayApprove = computed(() => role.value !== "view");
export const waitingCount = computed(() => {
  const ids = new Set([...requests.value.values()].map((request) => request.threadId));
  for (const thread of threads.value.values()) if (isWaiting(thread)) ids.add(thread.id);
  return ids.size;
});

export const isPinned = (thread) =>
  pinnedSection.value ? thread.section?.id === pinnedSection.value.id : pinned.value.has(thread.id);

export function isWaiting(thread) {
  return thread.status?.type === "active" && thread.status.activeFlags.length > 0;
}

/** The state of a thread in words, or "". */
export function stateOf(thread) {
  if (isWaiting(thread)) return "waiting for you";
  if ([...requests.value.values()].some((request) => request.threadId === thread.id)) return "waiting for you";
  if (thread.status?.type === "active") return "running";
  if (thread.status?.type === "systemError" || thread.failed) return "failed";
  return unread.value.has(thread.id) ? "unread" : "";
}

let nextNotice = 1;
export function notify(text, kind = "error") {
  const id = nextNotice++;
  notices.value = [...notices.value.slice(-3), { id, text, kind }];
  setTimeout(() => dismiss(id), kind === "error" ? 12000 : 5000);
}
export function dismiss(id) {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** Values that this browser keeps. Storage may be off; then nothing is kept. */
export function read(key, fallback) {
  try {
    return JSON.parse(localStorage.getItem(`loomd.${key}`)) ?? fallback;
  } catch {
    return fallback;
  }
}
export function keep(key, value) {
  try {
    if (value === null || value === "") localStorage.removeItem(`loomd.${key}`);
    else localStorage.setItem(`loomd.${key}`, JSON.stringify(value));
  } catch {
    // Full or forbidden.
  }
}
