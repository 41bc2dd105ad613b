// Who allowed or declined an item, where the server keeps it.
import { html } from "../html.js";
import { decider, outcomeWords } from "../decisions.js";

export function Decided({ item, model }) {
  const approval = model.approvals.value?.find((one) => one.itemId === item.id && ["decided", "expired"].includes(one.state));
  if (!approval) return null;
  const by = decider(approval.decidedBy);
  return html`<p class="decided-by hint">${outcomeWords(approval)}${by && ` by ${by}`}</p>`;
}
