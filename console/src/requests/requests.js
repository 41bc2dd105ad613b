// Everything that waits for the user, the oldest first.
import { html } from "../html.js";
import { Approval } from "./approval.js";
import { Question } from "./question.js";
import { Elicitation } from "./elicitation.js";
import { Permissions } from "./permissions.js";

const BY_METHOD = {
  "item/commandExecution/requestApproval": Approval,
  "item/fileChange/requestApproval": Approval,
  "item/tool/requestUserInput": Question,
  "mcpServer/elicitation/request": Elicitation,
  "item/permissions/requestApproval": Permissions,
};

export function Requests({ requests, model }) {
  return html`<div class="requests" aria-live="assertive">
    ${requests.map((request) => {
      const View = BY_METHOD[request.method];
      return View && html`<${View} key=${request.id} request=${request} model=${model} />`;
    })}
  </div>`;
}
