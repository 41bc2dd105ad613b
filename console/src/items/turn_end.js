// The end of a turn that did not complete, with a way to go on.
import { html } from "../html.js";
import * as state from "../state.js";
import { attempt, send } from "../actions.js";

export function TurnEnd({ item, turnId, model }) {
  const interrupted = item.status === "interrupted";
  const isLast = model.rows.value.at(-1)?.turnId === turnId && !model.turn.value;
  return html`<article class=${`turnend ${item.status}`} aria-label=${interrupted ? "Interrupted" : "Error"}>
    <p><strong>${interrupted ? "Interrupted" : "The turn failed"}</strong>${item.error && html`: ${item.error.message}`}</p>
    ${item.error?.additionalDetails && html`<p class="hint">${item.error.additionalDetails}</p>`}
    ${isLast && state.mayDrive.value && html`<button onClick=${() => attempt(() => send(model, lastInput(model) ))}>Retry</button>`}
  </article>`;
}

/** The user's last input, to be sent once more. */
function lastInput(model) {
  const last = model.rows.peek().findLast((row) => row.item.peek().type === "userMessage");
  return last?.item.peek().content ?? [{ type: "text", text: "Go on.", text_elements: [] }];
}
