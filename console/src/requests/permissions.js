// A request of the agent for more permissions.
import { html } from "../html.js";
import * as state from "../state.js";
import { answer, attempt } from "../actions.js";

export function Permissions({ request }) {
  const { params } = request;
  const grant = (scope, name) => attempt(async () => answer(request, { permissions: params.permissions, scope }, name));
  const decline = () => attempt(async () => answer(request, { permissions: {}, scope: "turn" }, "Decline"));
  return html`<div class="approval" role="group" aria-label="Approval">
    <h2>Grant permissions?</h2>
    ${params.reason && html`<p class="reason">${params.reason}</p>`}
    <pre class="asked" tabindex="0" aria-label="Permissions">${JSON.stringify(params.permissions, null, 2)}</pre>
    ${state.mayApprove.value && html`<div class="decisions">
      <button class="primary" onClick=${() => grant("turn", "Allow once")}>Allow once</button>
      <button onClick=${() => grant("session", "Allow for this session")}>Allow for this session</button>
      <button onClick=${decline}>Decline</button>
    </div>`}
  </div>`;
}
