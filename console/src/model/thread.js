// One thread as it is shown: rows of items, kept up to date by notifications. Does not know the connection.
import { batch, signal } from "../html.js";

/** A row of the transcript. `item` is a signal, so a delta renders one row only. */
const rowOf = (item, turnId) => ({ key: item.id, turnId, item: signal(item) });

export class ThreadModel {
  constructor(id) {
    this.id = id;
    this.thread = signal(null);
    this.settings = signal(null);
    this.rows = signal([]);
    this.older = signal(null);
    this.turn = signal(null);
    this.plan = signal(null);
    /** The plans of turns, by turn id: they are no items, so a snapshot does not have them. */
    this.plans = new Map();
    this.diffs = signal(new Map());
    this.usage = signal(null);
    this.queue = signal([]);
    /** Whether the queue waits for the user, because the last turn was interrupted. */
    this.stalled = signal(false);
    this.error = signal(null);
    /** Tokens and price of the whole thread: `threadUsage` of `account/usage/read`. */
    this.spent = signal(null);
    /** The approvals of the thread, the newest first; null where the server keeps none. */
    this.approvals = signal(null);
    /** The id of the last event that is shown, for a resume without a gap. */
    this.lastEvent = null;
    /** While true, events of the thread are left out: those that count follow the answer to `thread/resume`. */
    this.resuming = false;
    /** @type {Map<string, ReturnType<typeof rowOf>>} */
    this.byItem = new Map();
    /** Rows that `commit` adds at once, so that many new items cost one copy of the list. */
    this.added = [];
  }

  /** Shows the rows that were added since the last time. */
  commit() {
    if (!this.added.length) return;
    this.rows.value = this.rows.peek().concat(this.added);
    this.added = [];
  }

  /** Rows of items of a type. The type of an item never changes, so only those are subscribed to. */
  rowsOfType(type) {
    return this.rows.value.filter((row) => row.item.peek().type === type);
  }

  /** Whether an event is new. A server request that is sent again has the id that it had, and is not. */
  isNews(eventId) {
    if (eventId === undefined) return true;
    if (this.lastEvent !== null && BigInt(eventId) <= BigInt(this.lastEvent)) return false;
    this.lastEvent = eventId;
    return true;
  }

  /** Shows a snapshot in place of everything. */
  reset(answer) {
    batch(() => {
      this.settle(answer);
      this.byItem.clear();
      this.added = [];
      this.diffs.value = new Map();
      this.error.value = null;
      const page = answer.initialTurnsPage;
      const turns = page ? [...page.data].reverse() : (answer.thread.turns ?? []);
      this.older.value = page?.nextCursor ?? null;
      this.rows.value = turns.flatMap((turn) => this.rowsOf(turn));
      const last = turns.at(-1);
      this.turn.value = last?.status === "inProgress" ? last : null;
      this.plan.value = null;
      this.lastEvent = answer.eventId ?? null;
    });
  }

  /** Takes the settings of an answer to `thread/start`, `thread/resume` or `thread/fork`. */
  settle(answer) {
    this.thread.value = { ...answer.thread, turns: [] };
    const { model, modelProvider, cwd, approvalPolicy, sandbox, reasoningEffort, collaborationMode } = answer;
    this.settings.value = { model, modelProvider, cwd, approvalPolicy, sandbox, effort: reasoningEffort, mode: collaborationMode?.mode ?? null };
  }

  prepend(page) {
    const rows = [...page.data].reverse().flatMap((turn) => this.rowsOf(turn));
    this.rows.value = [...rows, ...this.rows.value];
    this.older.value = page.nextCursor ?? null;
  }

  rowsOf(turn) {
    const rows = [];
    for (const item of turn.items ?? []) {
      if (this.byItem.has(item.id)) continue;
      const row = rowOf(item, turn.id);
      this.byItem.set(item.id, row);
      rows.push(row);
      if (item.type === "userMessage") rows.push(...this.planRows(turn));
    }
    if (turn.status === "failed" || turn.status === "interrupted") {
      const row = this.endRow(turn);
      this.byItem.set(row.key, row);
      rows.push(row);
    }
    return rows;
  }

  /** The plan of a turn, if it is known and not shown yet. */
  planRows(turn) {
    const plan = this.plans.get(turn.id);
    if (!plan || this.byItem.has(`plan-${turn.id}`)) return [];
    const row = rowOf({ id: `plan-${turn.id}`, type: "todo", ...plan }, turn.id);
    this.byItem.set(row.key, row);
    return [row];
  }

  endRow(turn) {
    return rowOf({ id: `end-${turn.id}`, type: "turnEnd", status: turn.status, error: turn.error }, turn.id);
  }

  put(item, turnId) {
    const row = this.byItem.get(item.id);
    if (row) {
      row.item.value = item;
      return;
    }
    const added = rowOf(item, turnId);
    this.byItem.set(item.id, added);
    this.added.push(added);
  }

  change(itemId, turnId, change, empty) {
    const row = this.byItem.get(itemId);
    if (row) row.item.value = change(row.item.peek());
    else if (empty) this.put(change(empty), turnId);
  }

  /** Applies one notification; returns whether it was about this thread's content. */
  apply(method, params) {
    const handler = HANDLERS[method];
    if (!handler) return false;
    handler(this, params);
    return true;
  }
}

const appendAt = (list, index, text) => {
  const copy = [...(list ?? [])];
  while (copy.length <= index) copy.push("");
  copy[index] += text;
  return copy;
};

const HANDLERS = {
  "turn/started": (model, { turn }) => {
    model.turn.value = turn;
    model.plan.value = null;
    model.error.value = null;
  },
  "turn/completed": (model, { turn }) => {
    model.turn.value = null;
    model.error.value = null;
    if (turn.status !== "completed" && !model.byItem.has(`end-${turn.id}`)) {
      const row = model.endRow(turn);
      model.byItem.set(row.key, row);
      model.added.push(row);
    }
  },
  "item/started": (model, { item, turnId }) => model.put(item, turnId),
  "item/completed": (model, { item, turnId }) => model.put(item, turnId),
  "item/agentMessage/delta": (model, { itemId, turnId, delta }) =>
    model.change(itemId, turnId, (item) => ({ ...item, text: (item.text ?? "") + delta }), { type: "agentMessage", id: itemId, text: "" }),
  "item/plan/delta": (model, { itemId, turnId, delta }) =>
    model.change(itemId, turnId, (item) => ({ ...item, text: (item.text ?? "") + delta }), { type: "plan", id: itemId, text: "" }),
  "item/commandExecution/outputDelta": (model, { itemId, turnId, delta }) =>
    model.change(itemId, turnId, (item) => ({ ...item, aggregatedOutput: ((item.aggregatedOutput ?? "") + delta).slice(-OUTPUT_KEPT) })),
  "item/reasoning/summaryTextDelta": (model, { itemId, turnId, delta, summaryIndex }) =>
    model.change(itemId, turnId, (item) => ({ ...item, summary: appendAt(item.summary, summaryIndex ?? 0, delta) }), { type: "reasoning", id: itemId, summary: [], content: [] }),
  "item/reasoning/textDelta": (model, { itemId, turnId, delta, contentIndex }) =>
    model.change(itemId, turnId, (item) => ({ ...item, content: appendAt(item.content, contentIndex ?? 0, delta) }), { type: "reasoning", id: itemId, summary: [], content: [] }),
  "item/fileChange/patchUpdated": (model, { itemId, turnId, changes }) =>
    changes && model.change(itemId, turnId, (item) => ({ ...item, changes })),
  "turn/plan/updated": (model, { plan, explanation, turnId }) => {
    model.plan.value = { plan, explanation };
    model.plans.set(turnId, { plan, explanation });
    model.put({ id: `plan-${turnId}`, type: "todo", plan, explanation }, turnId);
  },
  "turn/diff/updated": (model, { turnId, diff }) => {
    model.diffs.value = new Map(model.diffs.value).set(turnId, diff);
  },
  "thread/tokenUsage/updated": (model, { tokenUsage }) => (model.usage.value = tokenUsage),
  "thread/settings/updated": (model, { threadSettings: given }) => {
    model.settings.value = { ...model.settings.value, model: given.model, cwd: given.cwd, sandbox: given.sandboxPolicy, effort: given.effort, approvalPolicy: given.approvalPolicy, mode: given.collaborationMode?.mode ?? null };
  },
  error: (model, { error, willRetry }) => (model.error.value = { ...error, willRetry }),
};

/** Characters of a running command's output that are kept; the whole comes with the finished item. */
const OUTPUT_KEPT = 200_000;
