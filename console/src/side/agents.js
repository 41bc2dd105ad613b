// The agents that this thread has spawned, and theirs, as a tree.
import { html, useEffect, useState } from "../html.js";
import { client, openThread } from "../live.js";
import { attempt } from "../actions.js";
import { titleOf } from "../views/thread_row.js";

export function Agents({ model }) {
  const [list, setList] = useState([]);
  useEffect(() => {
    client.request("thread/list", { ancestorThreadId: model.id, limit: 100 }).then((answer) => setList(answer.data), () => setList([]));
  }, [model.rows.value.length, model.turn.value]);
  if (!list.length) return html`<p class="empty">No agents.</p>`;
  return html`<${Level} list=${list} parent=${model.id} />`;
}

function Level({ list, parent }) {
  const children = list.filter((thread) => thread.parentThreadId === parent);
  return html`<ul class="agents">${children.map((thread) => html`<li key=${thread.id}>
    <button class="plain" onClick=${() => attempt(() => openThread(thread.id))}>${thread.agentNickname ?? titleOf(thread)} <span class="hint">${thread.status.type}</span></button>
    <${Level} list=${list.filter((one) => one !== thread)} parent=${thread.id} />
  </li>`)}</ul>`;
}
