// The diff of a file, unified or split. Lines can be commented where `onComment` is given.
import { html, useState } from "../html.js";
import { pairs } from "../diff.js";
import { familyOf } from "../highlight.js";
import { Code } from "./code.js";
import { LineComment } from "./line_comment.js";

/** Lines of a file that are shown at first. */
const SHOWN = 400;

export function DiffView({ file, split = false, onComment = null, open = true, id = null }) {
  const [all, setAll] = useState(false);
  const [commented, setCommented] = useState(null);
  const lines = all ? file.lines : file.lines.slice(0, SHOWN);
  const family = familyOf(file.path);
  const comment = onComment && { line: commented, start: setCommented, end: (word, now) => {
    if (word) onComment(file.path, commented, word, now);
    setCommented(null);
  } };
  return html`<details class="file" id=${id} open=${open}>
    <summary><span class="path">${file.path}</span><span class="count"><b class="plus">+${file.added}</b> <b class="minus">−${file.removed}</b></span></summary>
    <div class="diff" tabindex="0" role="group" aria-label=${`Diff of ${file.path}`}>
      ${split ? html`<${Split} lines=${lines} family=${family} comment=${comment} />` : lines.map((line, index) => html`<${Line} key=${index} line=${line} family=${family} comment=${comment} />`)}
    </div>
    ${file.lines.length > lines.length && html`<button class="plain" onClick=${() => setAll(true)}>Show all ${file.lines.length} lines</button>`}
  </details>`;
}

const MARK = { add: "+", del: "−", same: " ", hunk: "" };

function Line({ line, family, comment }) {
  if (line.kind === "hunk") return html`<div class="line hunk">${line.text}</div>`;
  return html`<div class=${`line ${line.kind}`}>
    <${LineNumber} line=${line} side=${line.new === undefined ? "old" : "new"} comment=${comment} />
    <span class="mark" aria-hidden="true">${MARK[line.kind]}</span><span class="text"><${Code} text=${line.text} family=${family} /></span>
  </div>
  ${comment?.line === line && html`<${LineComment} number=${line.new ?? line.old} onEnd=${comment.end} />`}`;
}

function LineNumber({ line, side, comment }) {
  const number = line[side] ?? "";
  if (!comment || number === "") return html`<span class="number">${number}</span>`;
  return html`<button class="number" aria-label=${`Comment on line ${number}`} onClick=${() => comment.start(line)}>${number}</button>`;
}

function Split({ lines, family, comment }) {
  const half = (line, side) => line
    ? html`<div class=${`line ${line.kind}`}>${line.kind === "hunk" ? html`<span class="text">${line.text}</span>` : html`<${LineNumber} line=${line} side=${side} comment=${comment} /><span class="text"><${Code} text=${line.text} family=${family} /></span>`}</div>`
    : html`<div class="line none"></div>`;
  return html`<div class="split">${pairs(lines).map(([left, right], index) => html`<div key=${index}>
    <div class="pair">${half(left, "old")}${half(right, "new")}</div>
    ${comment?.line && (comment.line === left || comment.line === right) && html`<${LineComment} number=${comment.line.new ?? comment.line.old} onEnd=${comment.end} />`}
  </div>`)}</div>`;
}
