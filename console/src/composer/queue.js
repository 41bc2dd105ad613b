// Messages that become turns when the running one has ended.
import { html } from "../html.js";
import * as state from "../state.js";
import { attempt } from "../actions.js";
import { client } from "../live.js";

export function Queue({ model }) {
  const queue = model.queue.value;
  if (!queue.length) return null;
  const move = (from, to) => {
    const ids = queue.map((entry) => entry.id);
    ids.splice(to, 0, ...ids.splice(from, 1));
    attempt(() => client.request("thread/queue/reorder", { threadId: model.id, queuedSubmissionIds: ids }));
  };
  const remove = (id) => attempt(() => client.request("thread/queue/delete", { threadId: model.id, queuedSubmissionId: id }));
  const go = () => attempt(() => client.request("thread/queue/start", { threadId: model.id }));
  const isStalled = model.stalled.value && !model.turn.value;
  return html`<section class="queue" aria-label="Queue"><div class="bar"><h2>${isStalled ? "Queued, stopped by the interrupt" : "Queued for after this turn"}</h2>
    ${isStalled && state.mayDrive.value && html`<button onClick=${go}>Go on</button>`}</div><ol>
    ${queue.map((entry, index) => html`<li key=${entry.id}>
      <span class="text">${entry.input.map((part) => part.text ?? `[${part.type}]`).join(" ")}</span>
      ${state.mayDrive.value && html`<button class="plain" aria-label="Earlier" disabled=${index === 0} onClick=${() => move(index, index - 1)}>↑</button>
      <button class="plain" aria-label="Later" disabled=${index === queue.length - 1} onClick=${() => move(index, index + 1)}>↓</button>
      <button class="plain" aria-label="Remove from the queue" onClick=${() => remove(entry.id)}>×</button>`}
    </li>`)}
  </ol></section>`;
}
