// The diff of the last turn or of the whole thread. A comment on a line becomes part of the message.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { filesOfChanges, parseDiff } from "../diff.js";
import { DiffView } from "../parts/diff_view.js";

export function Changes({ model }) {
  const [scope, setScope] = useState("turn");
  const [split, setSplit] = useState(state.read("split", false));
  const files = scope === "turn" ? turnFiles(model) : threadFiles(model);
  const comment = (path, line) => {
    const word = prompt(`Comment on ${path}:${line.new ?? line.old}`);
    if (word?.trim()) window.dispatchEvent(new CustomEvent("loomd:compose", { detail: `${path}:${line.new ?? line.old} (\`${line.text.trim().slice(0, 120)}\`): ${word.trim()}` }));
  };
  const toggle = () => (setSplit(!split), state.keep("split", !split));
  return html`<section class="changes" role="region" aria-label="Changes">
    <div class="bar">
      <div class="segmented" role="group" aria-label="Which changes">
        <button aria-pressed=${scope === "turn"} onClick=${() => setScope("turn")}>Turn</button>
        <button aria-pressed=${scope === "thread"} onClick=${() => setScope("thread")}>Thread</button>
      </div>
      <button class="plain" aria-pressed=${split} onClick=${toggle}>Split</button>
    </div>
    ${files.length === 0 ? html`<p class="empty">No changes.</p>` : html`
      ${files.length > 1 && html`<ul class="tree" aria-label="Changed files">${files.map((file) => html`<li key=${file.path}><span class="path">${file.path}</span> <span class="count"><b class="plus">+${file.added}</b> <b class="minus">−${file.removed}</b></span></li>`)}</ul>`}
      ${files.map((file) => html`<${DiffView} key=${file.path} file=${file} split=${split} onComment=${state.mayDrive.value ? comment : null} />`)}`}
  </section>`;
}

function turnFiles(model) {
  const last = [...model.diffs.value.values()].at(-1);
  if (last) return parseDiff(last);
  const rows = model.rowsOfType("fileChange");
  const turnId = rows.at(-1)?.turnId;
  return rows.filter((row) => row.turnId === turnId).flatMap((row) => filesOfChanges(row.item.value.changes, model.settings.value?.cwd));
}

/** All applied changes that are loaded, joined by file. */
function threadFiles(model) {
  const byPath = new Map();
  for (const row of model.rowsOfType("fileChange")) {
    const item = row.item.value;
    if (item.status === "declined" || item.status === "failed") continue;
    for (const file of filesOfChanges(item.changes, model.settings.value?.cwd)) {
      const before = byPath.get(file.path);
      byPath.set(file.path, before ? { ...before, added: before.added + file.added, removed: before.removed + file.removed, lines: [...before.lines, ...file.lines] } : file);
    }
  }
  return [...byPath.values()];
}
