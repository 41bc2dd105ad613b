// Who approved what in this thread. A server that keeps no approvals leaves what this browser decided, and what the
// transcript shows as declined.
import { html } from "../html.js";
import * as state from "../state.js";
import { decider, outcomeWords, subject, timeOf } from "../decisions.js";
import { unwrap } from "../items/command.js";

export function Decisions({ model }) {
  const rows = model.approvals.value ? kept(model) : remembered(model);
  if (!rows.length) return html`<p class="empty">Nothing was decided yet.</p>`;
  return html`<ul class="decided" aria-label="Decisions">
    ${rows.map((row) => html`<li key=${row.key} class=${row.open ? "open" : /^(Decline|Not decided)/.test(row.word) ? "no" : "yes"}>
      <div class="line1"><b>${row.word}</b> <span class="hint">${[row.by && `by ${row.by}`, row.at?.toLocaleString()].filter(Boolean).join(", ")}</span></div>
      <code>${row.what}</code></li>`)}
  </ul>`;
}

function kept(model) {
  return model.approvals.value.map((approval) => ({
    key: approval.id,
    open: approval.state === "open",
    word: outcomeWords(approval),
    by: decider(approval.decidedBy),
    at: timeOf(approval.decidedAt ?? approval.askedAt),
    what: what(model, approval),
  }));
}

/** The item says which files a change is about. */
function what(model, approval) {
  const item = model.byItem.get(approval.itemId)?.item.value;
  if (item?.type === "fileChange") return item.changes.map((change) => change.path).join(", ");
  return unwrap(subject(approval));
}

function remembered(model) {
  const ours = state.decisions.value.filter((decision) => decision.threadId === model.id);
  const declined = [...model.rowsOfType("commandExecution"), ...model.rowsOfType("fileChange")].map((row) => row.item.value).filter((item) => item.status === "declined" && !ours.some((decision) => decision.itemId === item.id));
  return [
    ...ours.map((decision, index) => ({ key: `o${index}`, word: decision.decision, by: "you", at: new Date(decision.at), what: unwrap(decision.what) })),
    ...declined.map((item) => ({ key: item.id, word: "Declined", what: unwrap(item.command) ?? item.changes?.map((change) => change.path).join(", ") })),
  ];
}
