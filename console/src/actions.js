// What the user does, as requests.
import { ThreadModel } from "./model/thread.js";
import { client, leave, patchThread, show } from "./live.js";
import { loadThreads } from "./load.js";
import * as state from "./state.js";

/** Runs an action; an error becomes a notice. Returns whether it succeeded. */
export async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    state.notify(error.message);
    return false;
  }
}

/** An id for a message. The same one is sent again when it is unknown whether the first try was carried out. */
export const newId = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;

/** Starts a thread and shows it. The same key never starts a second one. */
export async function startThread({ cwd, budget, settings = {}, idempotencyKey = newId() }) {
  const params = { idempotencyKey, ...(cwd ? { cwd } : {}), ...(budget ? { budget } : {}) };
  const answer = await client.request("thread/start", params);
  const model = new ThreadModel(answer.thread.id);
  model.reset(answer);
  if (budget) state.keep(`budget.${model.id}`, budget);
  const before = state.open.peek();
  show(model);
  leave(before);
  if (Object.keys(settings).length) await updateSettings(model, settings);
  return model;
}

/** Sends input: a turn starts, or the running one is steered, or the input is queued. */
export async function send(model, input, { queued = false, clientUserMessageId = newId() } = {}) {
  const turn = model.turn.peek();
  const threadId = model.id;
  if (turn && queued) return client.request("thread/queue/add", { threadId, input, clientUserMessageId });
  if (turn) return client.request("turn/steer", { threadId, input, expectedTurnId: turn.id, clientUserMessageId });
  return client.request("turn/start", { threadId, input, clientUserMessageId });
}

export const interrupt = (model) => client.request("turn/interrupt", { threadId: model.id, turnId: model.turn.peek()?.id ?? "" });
export const compact = (model) => client.request("thread/compact/start", { threadId: model.id });
export const review = (model) => client.request("review/start", { threadId: model.id, target: { type: "uncommittedChanges" }, delivery: "inline" });
export const shell = (model, command) => client.request("thread/shellCommand", { threadId: model.id, command });
export const updateSettings = (model, change) => client.request("thread/settings/update", { threadId: model.id, ...change });

export const rename = (id, name) => client.request("thread/name/set", { threadId: id, name });
export const remove = (id) => client.request("thread/delete", { threadId: id });
export const unarchive = (id) => client.request("thread/unarchive", { threadId: id }).then(() => loadThreads());

export async function archive(id) {
  await client.request("thread/archive", { threadId: id });
  if (state.open.peek()?.id === id) {
    state.open.value = null;
    state.view.value = "new";
  }
}

export async function fork(id, lastTurnId = null) {
  const answer = await client.request("thread/fork", { threadId: id, idempotencyKey: newId(), ...(lastTurnId ? { lastTurnId } : {}) });
  const model = new ThreadModel(answer.thread.id);
  model.reset(answer);
  const before = state.open.peek();
  show(model);
  leave(before);
  await loadThreads();
}

export const revert = (model, beforeTurnId) => client.request("thread/revert", { threadId: model.id, beforeTurnId });

/** Pins a thread, or takes the pin off; for all browsers if the server has a section for it. */
export async function pin(thread) {
  const section = state.pinnedSection.peek();
  const isPinned = state.isPinned(thread);
  if (section) {
    await client.request("thread/section/move", { threadId: thread.id, sectionId: isPinned ? null : section.id });
    patchThread(thread.id, { section: isPinned ? null : section });
    return;
  }
  const pinned = new Set(state.pinned.peek());
  if (!pinned.delete(thread.id)) pinned.add(thread.id);
  state.pinned.value = pinned;
  state.keep("pinned", [...pinned]);
}

/** Answers a server request, notes the decision, and removes it at once. */
export function answer(request, result, decision) {
  client.answer(request.id, result);
  const all = new Map(state.requests.peek());
  all.delete(request.id);
  state.requests.value = all;
  const what = request.params.command ?? request.method;
  state.decisions.value = [...state.decisions.peek().slice(-99), { at: Date.now(), threadId: request.threadId, itemId: request.params.itemId, what, decision }];
}

let searchRun = 0;
export async function searchThreads(term) {
  state.search.value = term;
  const run = ++searchRun;
  if (!term.trim()) {
    state.searchResults.value = null;
    return;
  }
  const answer = await client.request("thread/search", { searchTerm: term.trim(), limit: 50 });
  if (run === searchRun) state.searchResults.value = answer.data;
}
