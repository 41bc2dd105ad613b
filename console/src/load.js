// What the page asks the server for by itself: lists, pages of a thread, sums. A part that a server does not have is
// left out of the page.
import { batch } from "./html.js";
import { client } from "./live.js";
import { Disconnected } from "./client.js";
import * as state from "./state.js";

const PAGE = 30;
const METHOD_NOT_FOUND = -32601;
/** Everything but the threads of agents, which are shown with the thread that started them. */
/** @type {import("protocol").ThreadSourceKind[]} */
const KINDS = ["cli", "vscode", "exec", "appServer", "unknown"];

export async function loadThreads(cursor = null) {
  const archived = state.archivedShown.peek();
  const common = { archived, modelProviders: [], sourceKinds: KINDS };
  const [answer, pinned] = await Promise.all([
    client.request("thread/list", { ...common, limit: 100, cursor, sortKey: "updated_at" }),
    cursor ? [] : loadPinned(common),
  ]);
  batch(() => {
    const all = new Map(cursor ? state.threads.peek() : []);
    for (const thread of [...answer.data, ...pinned]) all.set(thread.id, { failed: state.threads.peek().get(thread.id)?.failed, ...thread });
    state.threads.value = all;
    state.moreThreads.value = answer.nextCursor;
    const unread = new Set(state.unread.peek());
    for (const [id, readState] of Object.entries(answer.readStates ?? {})) {
      state.readStates.set(id, readState);
      if (readState.firstUnread && id !== state.open.peek()?.id) unread.add(id);
      else unread.delete(id);
    }
    state.unread.value = unread;
  });
}

/** Pinned threads are listed however old they are. */
async function loadPinned(common) {
  try {
    const { data } = await client.request("threadSection/list", {});
    const section = data.find((one) => one.name === "Pinned") ?? null;
    state.pinnedSection.value = section;
    return section ? (await client.request("thread/list", { ...common, limit: 100, sectionId: section.id })).data : [];
  } catch (error) {
    if (error instanceof Disconnected) throw error;
    return [];
  }
}

export function loadModels() {
  client.request("model/list", {}).then((answer) => (state.models.value = answer.data), ignore);
  client.request("collaborationMode/list", {}).then((answer) => (state.modes.value = answer.data), ignore);
  client.request("account/rateLimits/read").then((answer) => (state.rateLimits.value = answer.rateLimits), ignore);
}

const ignore = () => {};

export async function loadOlder(model) {
  const cursor = model.older.peek();
  if (!cursor) return;
  model.older.value = null;
  try {
    model.prepend(await turnsPage(model, cursor));
  } catch (error) {
    model.older.value = cursor;
    if (!(error instanceof Disconnected)) state.notify(error.message);
  }
}

const turnsPage = (model, cursor) =>
  client.request("thread/turns/list", { threadId: model.id, cursor, limit: PAGE, sortDirection: "desc", itemsView: "full" });

/** All turns, the oldest first, without showing them. */
export async function allTurns(model) {
  const turns = [];
  for (let cursor = null; ; ) {
    const page = await turnsPage(model, cursor);
    turns.push(...page.data);
    cursor = page.nextCursor;
    if (!cursor) return turns.reverse();
  }
}

export function loadQueue(model) {
  client.request("thread/queue/list", { threadId: model.id }).then((answer) => {
    model.queue.value = answer.data;
    model.stalled.value = answer.stalled ?? false;
  }, ignore);
}

/** What the thread used and cost, its agents included. */
export function loadSpent(model) {
  client.request("account/usage/read", { threadId: model.id }).then((answer) => (model.spent.value = answer.threadUsage ?? null), ignore);
}

/** Who decided what, where the server keeps it. */
export async function loadApprovals(model) {
  try {
    const { data } = await client.request("approval/list", { threadId: model.id, limit: 100 });
    model.approvals.value = data;
  } catch (error) {
    if (error.code === METHOD_NOT_FOUND) model.approvals.value = null;
  }
}

/**
 * Notes that a thread was looked at, or is to be. Sessions that may only read keep it to themselves.
 * @param {string | undefined} threadId
 * @param {"read" | "unread"} operation
 */
export async function markRead(threadId, operation = "read") {
  if (!threadId) return;
  const unread = new Set(state.unread.peek());
  if (operation === "read") unread.delete(threadId);
  else unread.add(threadId);
  state.unread.value = unread;
  const isDone = (readState) => (readState.firstUnread === null) === (operation === "read");
  // A second try, because somebody else may have been faster; the error has the present state then.
  for (let tries = 0; tries < 2; tries++) {
    const known = state.readStates.get(threadId);
    if (!known || isDone(known) || !state.mayDrive.peek()) return;
    try {
      const params = { threadId, expectedRevision: known.revision, operation: { type: operation } };
      state.readStates.set(threadId, (await client.request("thread/readState/update", params)).readState);
    } catch (error) {
      if (!error.data?.readState) return;
      state.readStates.set(threadId, error.data.readState);
    }
  }
}
