// What was decided in this thread: by this browser, and what the transcript shows as declined.
import { html } from "../html.js";
import * as state from "../state.js";

export function Decisions({ model }) {
  const ours = state.decisions.value.filter((decision) => decision.threadId === model.id);
  const declined = [...model.rowsOfType("commandExecution"), ...model.rowsOfType("fileChange")].map((row) => row.item.value).filter((item) => item.status === "declined");
  if (!ours.length && !declined.length) return html`<p class="empty">Nothing was decided yet.</p>`;
  return html`<ul class="decided">
    ${ours.map((decision, index) => html`<li key=${index}><b>${decision.decision}</b> <span class="hint">by you, ${new Date(decision.at).toLocaleTimeString()}</span><code>${decision.what}</code></li>`)}
    ${declined.map((item) => html`<li key=${item.id}><b>Declined</b> <code>${item.command ?? item.changes?.map((change) => change.path).join(", ")}</code></li>`)}
  </ul>`;
}
