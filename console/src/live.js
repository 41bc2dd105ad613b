// Messages of the server become state. Notifications are gathered and applied once per frame, so a fast stream
// costs one rendering per frame, however many deltas it has.
import { batch } from "./html.js";
import { Client, Disconnected } from "./client.js";
import { loadApprovals, loadModels, loadQueue, loadSpent, loadThreads, markRead } from "./load.js";
import { recall, remember } from "./memory.js";
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
  const open = state.open.peek();
  // What waits in other threads is sent again when they are opened; that of the open one, after it is resumed.
  state.requests.value = new Map([...state.requests.peek()].filter(([, request]) => request.threadId === open?.id));
  loadThreads().catch((error) => error instanceof Disconnected || state.notify(error.message));
  loadModels();
  if (open) await resume(open).catch((error) => {
    if (error instanceof Disconnected) throw error;
    // It was deleted meanwhile, or cannot be loaded any more.
    state.notify(error.message);
    closeThread(open.id);
  });
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || state.connection.peek() !== "connected") return;
  loadThreads().catch(() => {});
  if (state.view.peek() === "thread") markRead(state.open.peek()?.id);
});

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
  client.request("thread/unsubscribe", { threadId: model.id }).catch(() => {});
}

export function show(model) {
  batch(() => {
    state.open.value = model;
    state.view.value = "thread";
    state.sidebarShown.value = false;
  });
  location.hash = `/thread/${model.id}`;
  markRead(model.id);
  loadQueue(model);
  loadSpent(model);
  loadApprovals(model);
}

/** Subscribes, from the last event that is shown if the server keeps events, else with a snapshot. */
export async function resume(model) {
  // What has come is shown before its last id is named, else it would be sent and shown again.
  flush();
  model.resuming = true;
  try {
    /** @type {import("protocol").ParamsOf<"thread/resume">} */
    const params = { threadId: model.id, excludeTurns: true, initialTurnsPage: { limit: PAGE, sortDirection: "desc", itemsView: "full" } };
    if (model.lastEvent) params.afterEvent = model.lastEvent;
    const answer = await client.request("thread/resume", params);
    flush();
    if (answer.replay === "complete") {
      model.settle(answer);
    } else {
      state.requests.value = new Map([...state.requests.peek()].filter(([, request]) => request.threadId !== model.id));
      recall(model);
      model.reset(answer);
    }
  } finally {
    model.resuming = false;
  }
  if (model === state.open.peek()) {
    loadQueue(model);
    loadSpent(model);
    loadApprovals(model);
  }
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
  const isNews = ours && !open.resuming && open.isNews(eventId);
  if (id !== undefined) {
    state.requests.value = new Map(state.requests.peek()).set(id, { id, method, params, threadId: params.threadId });
    if (ours && !open.resuming) loadApprovals(open);
    return;
  }
  if (isNews) open.apply(method, params);
  if (isNews && (method === "turn/plan/updated" || method === "thread/tokenUsage/updated")) remember(open);
  GLOBAL[method]?.(params, open, ours);
}

export function patchThread(id, change) {
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

function closeThread(threadId) {
  removeThread(threadId);
  if (state.open.peek()?.id !== threadId) return;
  state.open.value = null;
  state.view.value = "new";
}

const isLooking = (threadId) => !document.hidden && state.view.peek() === "thread" && state.open.peek()?.id === threadId;

const GLOBAL = {
  "thread/started": ({ thread }) => {
    if (thread.ephemeral || thread.parentThreadId) return;
    state.threads.value = new Map([[thread.id, { ...thread, turns: [] }], ...state.threads.peek()]);
  },
  "thread/status/changed": ({ threadId, status }) => {
    const was = state.threads.peek().get(threadId)?.status?.type;
    if (was === "active" && status.type !== "active" && !isLooking(threadId)) state.unread.value = new Set(state.unread.peek()).add(threadId);
    patchThread(threadId, { status });
  },
  "thread/readState/changed": ({ threadId, readState }) => {
    state.readStates.set(threadId, readState);
    // What somebody marked as unread stays so until it is opened again; a turn that ended in view is read.
    const isSeen = readState.firstUnread?.type === "turn" && isLooking(threadId);
    const unread = new Set(state.unread.peek());
    if (readState.firstUnread && !isSeen) unread.add(threadId);
    else unread.delete(threadId);
    state.unread.value = unread;
    if (isSeen) markRead(threadId);
  },
  "thread/name/updated": ({ threadId, threadName, name }) => patchThread(threadId, { name: threadName ?? name ?? null }),
  "thread/archived": ({ threadId }) => removeThread(threadId),
  "thread/unarchived": () => loadThreads().catch(() => {}),
  "thread/deleted": ({ threadId }) => closeThread(threadId),
  "thread/reverted": (_params, open, ours) => ours && ((open.lastEvent = null), resume(open).catch(() => {})),
  "thread/queue/changed": (_params, open, ours) => ours && loadQueue(open),
  "item/completed": ({ threadId, item }) => {
    // The first words of the user name a thread until it has a name.
    const known = state.threads.peek().get(threadId);
    if (item.type === "userMessage" && known && !known.preview) patchThread(threadId, { preview: item.content.find((part) => part.text)?.text ?? "" });
  },
  "turn/completed": ({ threadId, turn }, open, ours) => {
    patchThread(threadId, { failed: turn.status === "failed", updatedAt: Date.now() / 1000 });
    if (!ours) return;
    loadSpent(open);
    // An interrupt stops the queue.
    loadQueue(open);
  },
  "serverRequest/resolved": ({ requestId }, open, ours) => {
    const all = new Map(state.requests.peek());
    all.delete(requestId);
    state.requests.value = all;
    if (ours) loadApprovals(open);
  },
  "account/rateLimits/updated": ({ rateLimits }) => (state.rateLimits.value = rateLimits),
  "account/updated": () => state.accountChanges.value++,
  "account/login/completed": (ended) => {
    state.loginEnded.value = ended;
    state.accountChanges.value++;
  },
  "mcpServer/oauthLogin/completed": ({ name, success, error }) =>
    state.notify(success ? `Signed in to ${name}.` : `${name}: ${error ?? "the sign-in failed"}`, success ? "info" : "error"),
  configWarning: (warning) => {
    if (!state.configWarnings.peek().some((known) => known.summary === warning.summary)) state.configWarnings.value = [...state.configWarnings.peek(), warning];
    state.notify(warning.summary, "warning");
  },
  warning: ({ message }) => message && state.notify(message, "warning"),
};
