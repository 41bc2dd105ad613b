// Commands that go on in the background, with the end of their output.
import { html, useEffect, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { attempt } from "../actions.js";
import { unwrap } from "../items/command.js";

const TAIL = 4000;

export function Terminals({ model }) {
  const [list, setList] = useState([]);
  const load = () => client.request("thread/backgroundTerminals/list", { threadId: model.id }).then((answer) => setList(answer.data), () => setList([]));
  // Items that begin and end change what runs.
  const ended = model.rowsOfType("commandExecution").filter((row) => row.item.value.status !== "inProgress").length;
  useEffect(() => void load(), [model.rows.value.length, model.turn.value, ended]);
  const end = (processId) => attempt(async () => {
    await client.request("thread/backgroundTerminals/terminate", { threadId: model.id, processId });
    await load();
  });
  if (!list.length) return html`<p class="empty">No command runs in the background.</p>`;
  return html`<ul class="terminals" aria-label="Background terminals">${list.map((terminal) => html`<li key=${terminal.processId}>
    <code class="line1">$ ${unwrap(terminal.command)}</code>
    <span class="hint">${[terminal.cwd, terminal.osPid && `process ${terminal.osPid}`, terminal.rssKb && `${Math.round(terminal.rssKb / 1024)} MB`].filter(Boolean).join(" · ")}</span>
    <${Tail} row=${model.byItem.get(terminal.itemId)} />
    ${state.mayDrive.value && html`<button onClick=${() => end(terminal.processId)}>End</button>`}</li>`)}</ul>`;
}

function Tail({ row }) {
  const output = row?.item.value.aggregatedOutput;
  return output ? html`<pre tabindex="0" aria-label="Output">${output.length > TAIL ? `…${output.slice(-TAIL)}` : output}</pre>` : null;
}
