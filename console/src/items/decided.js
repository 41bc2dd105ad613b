// Who allowed or declined an item, where the server keeps it.
import { html } from "../html.js";
import { decider, decisionWords } from "../decisions.js";

export function Decided({ item, model }) {
  const approval = model.approvals.value?.find((one) => one.itemId === item.id && one.state === "decided");
  if (!approval) return null;
  const by = decider(approval.decidedBy);
  return html`<p class="decided-by hint">${decisionWords(approval.decision)}${by && ` by ${by}`}</p>`;
}
