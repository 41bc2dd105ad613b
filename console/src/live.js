// Messages of the server become state. Notifications are gathered and applied once per frame, so a fast stream
// costs one rendering per frame, however many deltas it has.
import { batch } from "./html.js";
import { Client, Disconnected } from "./client.js";
import { ThreadModel } from "./model/thread.js";
import * as state from "./state.js";

const PAGE = 30;
let pending = [];
let scheduled = false;

export const client = new Client(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/console/socket`, {
  onState: (to) => {
    state.connection.value = to;
    if (to === "reconnecting") checkSession();
  },
  onConnected,
  onNotification: (method, params, eventId) => queue({ method, params, eventId }),
  onServerRequest: (id, method, params, eventId) => queue({ id, method, params, eventId }),
});

/** A session that was revoked ends here, and not in endless tries. */
async function checkSession() {
  try {
    const known = await fetch("/console/session");
    if (known.status === 401) state.connection.value = "refused";
  } catch {
    // The server is away.
  }
}

async function onConnected() {
  // Requests of the old connection are sent again by the server when their thread is resumed.
  state.requests.value = new Map();
  const open = state.open.peek();
  await Promise.all([loadThreads(), open && resume(open)]);
  client.request("model/list", {}).then((answer) => (state.models.value = answer.data), ignore);
  client.request("collaborationMode/list", {}).then((answer) => (state.modes.value = answer.data), ignore);
  client.request("account/rateLimits/read", {}).then((answer) => (state.rateLimits.value = answer.rateLimits), ignore);
}

const ignore = () => {};

export async function loadThreads(cursor = null) {
  const archived = state.archivedShown.peek();
  const answer = await client.request("thread/list", { limit: 100, cursor, archived, sortKey: "updated_at" });
  batch(() => {
    const all = new Map(cursor ? state.threads.peek() : []);
    for (const thread of answer.data) all.set(thread.id, thread);
    state.threads.value = all;
    state.moreThreads.value = answer.nextCursor;
  });
}

/** Opens a thread; what is shown is live from then on. */
export async function openThread(id) {
  const before = state.open.peek();
  if (before?.id === id) {
    state.view.value = "thread";
    return;
  }
  const model = new ThreadModel(id);
  await resume(model);
  show(model);
  leave(before);
}

/** Stops following a thread. Its open requests are sent again when it is opened again. */
export function leave(model) {
  if (!model) return;
  state.requests.value = new Map([...state.requests.peek()].filter(([, request]) => request.threadId !== model.id));
  client.request("thread/unsubscribe", { threadId: model.id }).catch(ignore);
}

export function show(model) {
  batch(() => {
    state.open.value = model;
    state.view.value = "thread";
    state.sidebarShown.value = false;
    const unread = new Set(state.unread.peek());
    unread.delete(model.id);
    state.unread.value = unread;
  });
  location.hash = `/thread/${model.id}`;
}

/** Subscribes, from the last event that is shown if the server keeps events, else with a snapshot. */
export async function resume(model) {
  const params = { threadId: model.id, excludeTurns: true, initialTurnsPage: { limit: PAGE, sortDirection: "desc", itemsView: "full" } };
  if (model.lastEvent) params.afterEvent = model.lastEvent;
  flush();
  const answer = await client.request("thread/resume", params);
  // What came before the answer is part of it.
  flush();
  if (answer.replay === "complete") model.settle(answer);
  else model.reset(answer);
  loadQueue(model);
}

export async function loadOlder(model) {
  const cursor = model.older.peek();
  if (!cursor) return;
  model.older.value = null;
  try {
    const page = await client.request("thread/turns/list", { threadId: model.id, cursor, limit: PAGE, sortDirection: "desc", itemsView: "full" });
    model.prepend(page);
  } catch (error) {
    model.older.value = cursor;
    if (!(error instanceof Disconnected)) state.notify(error.message);
  }
}

export function loadQueue(model) {
  client.request("thread/queue/list", { threadId: model.id }).then((answer) => (model.queue.value = answer.data), ignore);
}

function queue(message) {
  pending.push(message);
  if (scheduled) return;
  scheduled = true;
  // Frames stop in hidden tabs, where the title must still change.
  if (document.hidden) setTimeout(flush, 50);
  else requestAnimationFrame(flush);
}

function flush() {
  scheduled = false;
  const messages = pending;
  pending = [];
  if (!messages.length) return;
  batch(() => {
    merged(messages).forEach(take);
    state.open.peek()?.commit();
  });
}

/** Joins adjacent deltas of one item, which saves copies of long texts. */
function merged(messages) {
  const out = [];
  for (const message of messages) {
    const last = out.at(-1);
    const joins = typeof message.params?.delta === "string" && last?.method === message.method && last.params.itemId === message.params.itemId
      && last.params.summaryIndex === message.params.summaryIndex && last.params.contentIndex === message.params.contentIndex;
    if (joins) out[out.length - 1] = { ...message, params: { ...message.params, delta: last.params.delta + message.params.delta } };
    else out.push(message);
  }
  return out;
}

function take({ id, method, params, eventId }) {
  const open = state.open.peek();
  const ours = open && params?.threadId === open.id;
  if (ours && eventId) open.lastEvent = eventId;
  if (id !== undefined) {
    state.requests.value = new Map(state.requests.peek()).set(id, { id, method, params, threadId: params.threadId });
    return;
  }
  if (ours) open.apply(method, params);
  GLOBAL[method]?.(params, open, ours);
}

function patchThread(id, change) {
  const thread = state.threads.peek().get(id);
  if (thread) state.threads.value = new Map(state.threads.peek()).set(id, { ...thread, ...change });
  const open = state.open.peek();
  if (open?.id === id) open.thread.value = { ...open.thread.peek(), ...change };
}

function removeThread(threadId) {
  const all = new Map(state.threads.peek());
  all.delete(threadId);
  state.threads.value = all;
}

const GLOBAL = {
  "thread/started": ({ thread }) => {
    state.threads.value = new Map([[thread.id, { ...thread, turns: [] }], ...state.threads.peek()]);
  },
  "thread/status/changed": ({ threadId, status }, _open, ours) => {
    if (!ours && status.type === "idle") state.unread.value = new Set(state.unread.peek()).add(threadId);
    patchThread(threadId, { status });
  },
  "thread/name/updated": ({ threadId, threadName, name }) => patchThread(threadId, { name: threadName ?? name ?? null }),
  "thread/archived": ({ threadId }) => removeThread(threadId),
  "thread/unarchived": () => loadThreads().catch(ignore),
  "thread/deleted": ({ threadId }) => {
    removeThread(threadId);
    if (state.open.peek()?.id === threadId) {
      state.open.value = null;
      state.view.value = "new";
    }
  },
  "thread/reverted": (_params, open, ours) => ours && ((open.lastEvent = null), resume(open).catch(ignore)),
  "thread/queue/changed": (_params, open, ours) => ours && loadQueue(open),
  "item/completed": ({ threadId, item }) => {
    // The first words of the user name a thread until it has a name.
    const known = state.threads.peek().get(threadId);
    if (item.type === "userMessage" && known && !known.preview) patchThread(threadId, { preview: item.content.find((part) => part.text)?.text ?? "" });
  },
  "turn/completed": ({ threadId, turn }) => patchThread(threadId, { failed: turn.status === "failed", updatedAt: Date.now() / 1000 }),
  "serverRequest/resolved": ({ requestId }) => {
    const all = new Map(state.requests.peek());
    all.delete(requestId);
    state.requests.value = all;
  },
  "account/rateLimits/updated": ({ rateLimits }) => (state.rateLimits.value = rateLimits),
  configWarning: ({ summary }) => state.notify(summary, "warning"),
  warning: ({ message }) => message && state.notify(message, "warning"),
};
