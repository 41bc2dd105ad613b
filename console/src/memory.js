// What servers do not send again with a thread: the plans of its turns, and its last usage. This browser keeps them for
// the threads that it showed last.
import * as state from "./state.js";

const MOST_THREADS = 40;
const MOST_PLANS = 20;

export function remember(model) {
  const plans = [...model.plans].slice(-MOST_PLANS);
  const all = state.read("seen", []).filter(([id]) => id !== model.id).slice(-(MOST_THREADS - 1));
  state.keep("seen", [...all, [model.id, { plans, usage: model.usage.peek() }]]);
}

export function recall(model) {
  const known = state.read("seen", []).find(([id]) => id === model.id)?.[1];
  if (!known) return;
  model.plans = new Map([...known.plans, ...model.plans]);
  model.usage.value ??= known.usage ?? null;
}
