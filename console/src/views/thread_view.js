// An open thread: transcript, what waits for the user, the message, and the changes beside it.
import { computed, html, useMemo } from "../html.js";
import * as state from "../state.js";
import { attempt, compact, fork, rename, review } from "../actions.js";
import { exportMarkdown } from "../export.js";
import { ask } from "../parts/dialog.js";
import { toggleChanges } from "../keys.js";
import { Menu } from "../parts/menu.js";
import { Transcript } from "../parts/transcript.js";
import { Requests } from "../requests/requests.js";
import { Composer } from "../composer/composer.js";
import { Queue } from "../composer/queue.js";
import { Side } from "../side/side.js";
import { Usage } from "../parts/usage.js";
import { Head } from "./head.js";
import { folderName } from "./sidebar.js";
import { titleOf } from "./thread_row.js";

export function ThreadView({ model }) {
  const waiting = useMemo(() => computed(() => [...state.requests.value.values()].filter((request) => request.threadId === model.id)), [model]);
  return html`<main class=${`thread ${state.changesShown.value ? "with-side" : ""}`}>
    <div class="column">
      <${ThreadHead} model=${model} />
      <${Transcript} model=${model} />
      <div class="foot">
        <${Activity} model=${model} waiting=${waiting.value.length} />
        <${Requests} requests=${waiting.value} model=${model} />
        <${Queue} model=${model} />
        ${state.mayDrive.value ? html`<${Composer} model=${model} />` : html`<p class="hint pad">This session may ${state.role.value === "approve" ? "view and approve" : "only view"}.</p>`}
        <${Usage} model=${model} />
      </div>
    </div>
    ${state.changesShown.value && html`<${Side} model=${model} />`}
  </main>`;
}

function ThreadHead({ model }) {
  const thread = model.thread.value;
  const entries = [
    ["Rename", () => askName(model)],
    ["Fork", () => attempt(() => fork(model.id))],
    ["Compact the context", () => attempt(() => compact(model))],
    ["Review the changes", () => attempt(() => review(model))],
    ["Export as Markdown", () => attempt(() => exportMarkdown(model))],
  ];
  return html`<${Head}>
    <div class="titles"><h1>${titleOf(thread)}</h1><span class="hint" title=${thread?.cwd}>${folderName(thread?.cwd)}${thread?.gitInfo?.branch ? ` · ${thread.gitInfo.branch}` : ""}</span></div>
    <button class="plain" aria-pressed=${state.changesShown.value} onClick=${toggleChanges}>Changes</button>
    ${state.mayDrive.value && html`<${Menu} label="Actions for this thread" entries=${entries} />`}
  <//>`;
}

async function askName(model) {
  const name = await ask("Rename the thread", { label: "Name of the thread", value: model.thread.peek()?.name ?? "" });
  if (name) attempt(() => rename(model.id, name));
}

/** One line about what goes on; a retry of the model is shown here and not in the transcript. */
function Activity({ model, waiting }) {
  const error = model.error.value;
  const text = error ? `${error.message}${error.willRetry ? " · trying again" : ""}` : waiting ? "" : model.turn.value ? "Working" : "";
  return html`<div class=${`activity ${error ? "error" : ""}`} role="status" aria-label="Activity">${text && html`<span class="pulse" aria-hidden="true"></span>${text}`}</div>`;
}
