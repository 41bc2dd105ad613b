// Commands that go on in the background.
import { html, useEffect, useState } from "../html.js";
import { client } from "../live.js";
import { attempt } from "../actions.js";
import { unwrap } from "../items/command.js";

export function Terminals({ model }) {
  const [list, setList] = useState([]);
  const load = () => client.request("thread/backgroundTerminals/list", { threadId: model.id }).then((answer) => setList(answer.data), () => setList([]));
  useEffect(() => void load(), [model.rows.value.length, model.turn.value]);
  const end = (processId) => attempt(async () => {
    await client.request("thread/backgroundTerminals/terminate", { threadId: model.id, processId });
    await load();
  });
  if (!list.length) return html`<p class="empty">No command runs in the background.</p>`;
  return html`<ul class="terminals">${list.map((terminal) => html`<li key=${terminal.processId}><code>${unwrap(terminal.command)}</code>
    <span class="hint">${terminal.cwd}</span><button onClick=${() => end(terminal.processId)}>End</button></li>`)}</ul>`;
}
