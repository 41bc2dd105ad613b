// An approval: the command, the reason and the diff come before the decision.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { answer, attempt, send } from "../actions.js";
import { filesOfChanges } from "../diff.js";
import { DiffView } from "../parts/diff_view.js";
import { decisionWords, timeOf } from "../decisions.js";
import { unwrap } from "../items/command.js";

export function Approval({ request, model }) {
  const { params, method } = request;
  const item = model.byItem.get(params.itemId)?.item.value;
  const isChange = method === "item/fileChange/requestApproval";
  const [word, setWord] = useState("");
  const decide = (decision, name) => attempt(async () => answer(request, { decision }, name));
  const decline = () => attempt(async () => {
    // The word goes first: the turn is there to take it, and the model sees it with the refusal.
    if (word.trim()) await send(model, [{ type: "text", text: word.trim(), text_elements: [] }]);
    answer(request, { decision: "decline" }, "Decline");
  });
  const rule = ruleOf(params);
  const title = isChange ? "Change files?" : params.networkApprovalContext ? `Connect to ${params.networkApprovalContext.host}?` : "Run this command?";
  return html`<div class="approval" role="group" aria-label="Approval">
    <h2>${title}</h2>
    ${params.reason && html`<p class="reason">${params.reason}</p>`}
    ${params.command && html`<pre class="asked" tabindex="0" aria-label="Command">${unwrap(params.command)}</pre>`}
    ${params.cwd && html`<p class="hint">in ${params.cwd}</p>`}
    <${Deadline} params=${params} model=${model} />
    ${params.grantRoot && html`<p class="hint">and write below ${params.grantRoot} for the rest of the session</p>`}
    ${isChange && html`<div class="asked-diff">${filesOfChanges(item?.changes, model.settings.value?.cwd).map((file) => html`<${DiffView} key=${file.path} file=${file} />`)}</div>`}
    ${state.mayApprove.value ? html`<div class="decisions">
      <button class="primary" onClick=${() => decide("accept", "Allow once")}>Allow once</button>
      <button onClick=${() => decide("acceptForSession", "Allow for this session")}>Allow for this session</button>
      ${rule && html`<button title=${rule.title} onClick=${() => decide(rule.decision, "Always allow")}>Always allow</button>`}
      <span class="decline">
        ${state.mayDrive.value && html`<input aria-label="What to do instead" placeholder="What to do instead" value=${word} onInput=${(event) => setWord(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && decline()} />`}
        <button onClick=${decline}>Decline</button>
      </span>
    </div>` : html`<p class="hint">This session may only view.</p>`}
    ${rule && html`<p class="hint">“Always allow” adds the rule: <code>${rule.title}</code></p>`}
  </div>`;
}

/** When the server decides by itself, if it does. */
function Deadline({ params, model }) {
  const kept = model.approvals.value?.find((one) => one.state === "open" && one.itemId === params.itemId);
  const at = timeOf(kept?.deadline);
  return at && html`<p class="hint">${decisionWords(kept.defaultDecision ?? "decline")} at ${at.toLocaleTimeString()}, unless somebody decides.</p>`;
}

/** The rule that the server proposes, as the decision that makes it. */
function ruleOf(params) {
  const offered = params.availableDecisions?.find((offer) => typeof offer === "object");
  const amendment = params.proposedExecpolicyAmendment;
  if (offered?.acceptWithExecpolicyAmendment) return { decision: offered, title: offered.acceptWithExecpolicyAmendment.execpolicy_amendment.join(" ") };
  if (offered?.applyNetworkPolicyAmendment) {
    const { host, action } = offered.applyNetworkPolicyAmendment.network_policy_amendment;
    return action === "deny" ? null : { decision: offered, title: `${action} ${host}` };
  }
  if (!params.availableDecisions && amendment?.length) {
    return { decision: { acceptWithExecpolicyAmendment: { execpolicy_amendment: amendment } }, title: amendment.join(" ") };
  }
  return null;
}
