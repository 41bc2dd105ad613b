// The diff of the last turn or of the whole thread. A comment on a line is sent as one message, which steers a running
// turn, or waits in the draft for others.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { attempt, send } from "../actions.js";
import { filesOfChanges, parseDiff } from "../diff.js";
import { loadOlder } from "../load.js";
import { DiffView } from "../parts/diff_view.js";
import { FileTree } from "./file_tree.js";

export function Changes({ model }) {
  const [scope, setScope] = useState("turn");
  const [split, setSplit] = useState(state.read("split", false));
  const files = scope === "turn" ? turnFiles(model) : threadFiles(model);
  const comment = (path, line, word, now) => {
    const text = `${path}:${line.new ?? line.old} (\`${line.text.trim().slice(0, 120)}\`): ${word}`;
    if (now) attempt(() => send(model, [{ type: "text", text, text_elements: [] }]));
    else window.dispatchEvent(new CustomEvent("loomd:compose", { detail: text }));
  };
  const toggle = () => (setSplit(!split), state.keep("split", !split));
  return html`<section class="changes" role="region" aria-label="Changes">
    <div class="bar">
      <div class="segmented" role="group" aria-label="Which changes">
        <button aria-pressed=${scope === "turn"} onClick=${() => setScope("turn")}>Turn</button>
        <button aria-pressed=${scope === "thread"} onClick=${() => setScope("thread")}>Thread</button>
      </div>
      ${files.length > 0 && html`<${Sum} files=${files} />`}
      <button class="plain" aria-pressed=${split} onClick=${toggle}>Split</button>
    </div>
    ${scope === "thread" && model.older.value && html`<p class="hint pad">Of the turns that are loaded. <button class="plain" onClick=${() => loadOlder(model)}>Load older ones</button></p>`}
    ${files.length === 0 ? html`<p class="empty">No changes.</p>` : html`
      ${files.length > 1 && html`<${FileTree} files=${files} onPick=${(index) => reveal(`diff-${index}`)} />`}
      ${files.map((file, index) => html`<${DiffView} key=${file.path} id=${`diff-${index}`} file=${file} split=${split} onComment=${state.mayDrive.value ? comment : null} />`)}`}
  </section>`;
}

function Sum({ files }) {
  const sum = (of) => files.reduce((total, file) => total + file[of], 0);
  return html`<span class="count grow"><span class="hint">${files.length} ${files.length === 1 ? "file" : "files"}</span> <b class="plus">+${sum("added")}</b> <b class="minus">−${sum("removed")}</b></span>`;
}

function reveal(id) {
  const file = /** @type {HTMLDetailsElement | null} */ (document.getElementById(id));
  if (!file) return;
  file.open = true;
  file.scrollIntoView({ block: "start" });
  file.querySelector("summary").focus({ preventScroll: true });
}

function turnFiles(model) {
  const last = [...model.diffs.value.values()].at(-1);
  if (last) return parseDiff(last);
  const rows = model.rowsOfType("fileChange");
  const turnId = rows.at(-1)?.turnId;
  return joined(model, rows.filter((row) => row.turnId === turnId));
}

/** All applied changes that are loaded, joined by file. */
function threadFiles(model) {
  const applied = (row) => !["declined", "failed"].includes(row.item.value.status);
  return joined(model, model.rowsOfType("fileChange").filter(applied));
}

function joined(model, rows) {
  const byPath = new Map();
  for (const file of rows.flatMap((row) => filesOfChanges(row.item.value.changes, model.settings.value?.cwd))) {
    const before = byPath.get(file.path);
    byPath.set(file.path, before ? { ...before, added: before.added + file.added, removed: before.removed + file.removed, lines: [...before.lines, ...file.lines] } : file);
  }
  return [...byPath.values()];
}
