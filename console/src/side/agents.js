// The agents that this thread has spawned, and theirs, as a tree.
import { html, useEffect, useState } from "../html.js";
import * as state from "../state.js";
import { client, openThread } from "../live.js";
import { attempt } from "../actions.js";
import { titleOf } from "../views/thread_row.js";

/** @type {import("protocol").ThreadSourceKind[]} */
const KINDS = ["subAgent", "subAgentReview", "subAgentCompact", "subAgentThreadSpawn", "subAgentOther"];
const WORDS = { active: "running", idle: "done", notLoaded: "done", systemError: "failed" };

export function Agents({ model }) {
  const [list, setList] = useState([]);
  const calls = model.rowsOfType("collabAgentToolCall").filter((row) => row.item.value.status !== "inProgress").length;
  useEffect(() => {
    const params = { ancestorThreadId: model.id, sourceKinds: KINDS, modelProviders: [], limit: 100 };
    client.request("thread/list", params).then((answer) => setList(answer.data), () => setList([]));
  }, [model.rows.value.length, model.turn.value, calls]);
  const parent = model.thread.value?.parentThreadId;
  return html`<section class="agents-panel" aria-label="Agents">
    ${parent && html`<button class="plain" onClick=${() => attempt(() => openThread(parent))}>↰ the agent that started this one</button>`}
    ${list.length ? html`<${Level} list=${list} parent=${model.id} />` : html`<p class="empty">No agents.</p>`}
  </section>`;
}

function Level({ list, parent }) {
  const children = list.filter((thread) => thread.parentThreadId === parent);
  return html`<ul class="agents">${children.map((thread) => html`<li key=${thread.id}>
    <button class="plain" onClick=${() => attempt(() => openThread(thread.id))}><b>${thread.agentNickname ?? titleOf(thread)}</b> <span class="hint">${[thread.agentRole, stateOf(thread)].filter(Boolean).join(" · ")}</span>
      ${thread.agentNickname && html`<span class="hint task">${titleOf(thread)}</span>`}</button>
    <${Level} list=${list.filter((one) => one !== thread)} parent=${thread.id} />
  </li>`)}</ul>`;
}

const stateOf = (thread) => (state.isWaiting(thread) ? "waiting for you" : WORDS[thread.status.type] ?? thread.status.type);
