// The diff of a file, unified or split. Lines can be commented where `onComment` is given.
import { html, useState } from "../html.js";
import { pairs } from "../diff.js";

/** Lines of a file that are shown at first. */
const SHOWN = 400;

export function DiffView({ file, split = false, onComment = null, open = true }) {
  const [all, setAll] = useState(false);
  const lines = all ? file.lines : file.lines.slice(0, SHOWN);
  return html`<details class="file" open=${open}>
    <summary><span class="path">${file.path}</span><span class="count"><b class="plus">+${file.added}</b> <b class="minus">−${file.removed}</b></span></summary>
    <div class="diff" tabindex="0" role="group" aria-label=${`Diff of ${file.path}`}>
      ${split ? html`<${Split} lines=${lines} />` : lines.map((line, index) => html`<${Line} key=${index} line=${line} onComment=${onComment && (() => onComment(file.path, line))} />`)}
    </div>
    ${file.lines.length > lines.length && html`<button class="plain" onClick=${() => setAll(true)}>Show all ${file.lines.length} lines</button>`}
  </details>`;
}

const MARK = { add: "+", del: "−", same: " ", hunk: "" };

function Line({ line, onComment }) {
  if (line.kind === "hunk") return html`<div class="line hunk">${line.text}</div>`;
  const number = line.new ?? line.old;
  return html`<div class=${`line ${line.kind}`}>
    ${onComment ? html`<button class="number" aria-label=${`Comment on line ${number}`} onClick=${onComment}>${number}</button>` : html`<span class="number">${number}</span>`}
    <span class="mark" aria-hidden="true">${MARK[line.kind]}</span><span class="text">${line.text}</span>
  </div>`;
}

function Split({ lines }) {
  const half = (line, side) => line
    ? html`<div class=${`line ${line.kind}`}><span class="number">${line[side] ?? ""}</span><span class="text">${line.text}</span></div>`
    : html`<div class="line none"></div>`;
  return html`<div class="split">${pairs(lines).map(([left, right], index) => html`<div class="pair" key=${index}>${half(left, "old")}${half(right, "new")}</div>`)}</div>`;
}
