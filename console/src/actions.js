// What the user does, as requests.
import { ThreadModel } from "./model/thread.js";
import { client, leave, loadThreads, show } from "./live.js";
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

export async function startThread(cwd, settings = {}) {
  const answer = await client.request("thread/start", { ...(cwd ? { cwd } : {}), ...settings });
  const model = new ThreadModel(answer.thread.id);
  model.reset(answer);
  const before = state.open.peek();
  show(model);
  leave(before);
  return model;
}

/** An id for a message. The same one is sent again when it is unknown whether the first try was carried out. */
export const newId = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;

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
  const answer = await client.request("thread/fork", { threadId: id, ...(lastTurnId ? { lastTurnId } : {}) });
  const model = new ThreadModel(answer.thread.id);
  model.reset(answer);
  const before = state.open.peek();
  show(model);
  leave(before);
  await loadThreads();
}

export const revert = (model, beforeTurnId) => client.request("thread/revert", { threadId: model.id, beforeTurnId });

export function pin(id) {
  const pinned = new Set(state.pinned.peek());
  if (!pinned.delete(id)) pinned.add(id);
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
  state.decisions.value = [...state.decisions.peek().slice(-99), { at: Date.now(), threadId: request.threadId, what, decision }];
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

/** The thread as Markdown, for a file. */
export function exportMarkdown(model) {
  const parts = [`# ${model.thread.peek()?.name ?? "Thread"}\n`];
  for (const row of model.rows.peek()) {
    const item = row.item.peek();
    if (item.type === "userMessage") parts.push(`## User\n\n${item.content.map((part) => part.text ?? `[${part.type}]`).join("\n")}\n`);
    if (item.type === "agentMessage") parts.push(`${item.text}\n`);
    if (item.type === "commandExecution") parts.push("```console\n$ " + item.command + "\n" + (item.aggregatedOutput ?? "") + "\n```\n");
    if (item.type === "fileChange") parts.push("```diff\n" + item.changes.map((change) => change.diff).join("\n") + "\n```\n");
  }
  const url = URL.createObjectURL(new Blob([parts.join("\n")], { type: "text/markdown" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: `thread-${model.id}.md` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
