// Markdown as components. No HTML is ever parsed, so a text cannot bring markup, scripts or styles with it; links go
// to http, https and mailto only. Parsing is linear in the length of the text.
import { h, useRef } from "./html.js";
import { familyOf } from "./highlight.js";
import { Lines } from "./parts/code.js";

/** Longest text of one block that is looked at for inline marks. */
const INLINE_LIMIT = 20_000;

export function Markdown({ text }) {
  const known = useRef({ text: "", starts: [], blocks: [], rendered: [] });
  return h("div", { class: "md" }, grown(known.current, text));
}

/** Longest code that is coloured. */
const COLOURED = 20_000;

/**
 * The blocks of a text that mostly grows at its end: those before its last block are neither parsed nor compared again.
 * A block that is the same object as before is left alone by the renderer.
 */
function grown(known, text) {
  if (known.text === text) return known.rendered;
  const isLonger = text.startsWith(known.text);
  const keep = isLonger ? Math.max(0, known.blocks.length - 1) : 0;
  const from = keep ? known.starts[keep] : 0;
  const found = blocksOf(text.slice(from));
  known.starts = [...known.starts.slice(0, keep), ...found.map((block) => from + block.start)];
  const blocks = [...known.blocks.slice(0, keep), ...found.map((block) => block.text)];
  known.rendered = blocks.map((block, index) => (known.blocks[index] === block && known.rendered[index] ? known.rendered[index] : h(Block, { key: index, text: block })));
  known.blocks = blocks;
  known.text = text;
  return known.rendered;
}

const Block = ({ text }) => renderBlock(text);

export const split = (text) => blocksOf(text).map((block) => block.text);

/** Splits at blank lines outside of fences; with the places where blocks begin. */
function blocksOf(text) {
  const blocks = [];
  let lines = [];
  let fence = null;
  let [at, start] = [0, 0];
  const end = () => {
    if (lines.length) blocks.push({ start, text: lines.join("\n") });
    lines = [];
  };
  const add = (line) => {
    if (!lines.length) start = at;
    lines.push(line);
  };
  for (const line of text.split("\n")) {
    const mark = line.match(/^ {0,3}(`{3,}|~{3,})/)?.[1];
    if (fence) {
      add(line);
      if (mark?.startsWith(fence) && line.trim() === mark) {
        fence = null;
        end();
      }
    } else if (mark) {
      end();
      fence = mark;
      add(line);
    } else if (!line.trim()) {
      end();
    } else {
      add(line);
    }
    at += line.length + 1;
  }
  end();
  return blocks;
}

function renderBlock(block) {
  const lines = block.split("\n");
  const first = lines[0];
  if (/^ {0,3}(`{3,}|~{3,})/.test(first)) return code(lines);
  const heading = first.match(/^(#{1,6})\s+(.*)$/);
  if (heading) {
    const rest = lines.slice(1).join("\n");
    const title = h("p", { class: `h h${heading[1].length}`, role: "heading", "aria-level": heading[1].length + 2 }, inline(heading[2]));
    return rest ? h("div", null, title, renderBlock(rest)) : title;
  }
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(block)) return h("hr");
  if (lines.every((line) => /^\s*>/.test(line))) {
    const inner = lines.map((line) => line.replace(/^\s*> ?/, "")).join("\n");
    return h("blockquote", null, depth(inner) > 5 ? inner : split(inner).map(renderBlock));
  }
  if (lines.length > 1 && lines[0].includes("|") && /^[\s|:-]+$/.test(lines[1]) && lines[1].includes("-")) return table(lines);
  const start = lines.findIndex((line) => BULLET.test(line));
  if (start === 0) return list(lines);
  if (start > 0 && lines.slice(start).every((line) => BULLET.test(line) || /^\s/.test(line))) {
    return h("div", null, renderBlock(lines.slice(0, start).join("\n")), list(lines.slice(start)));
  }
  return h("p", null, lines.flatMap((line, index) => (index ? [h("br"), inline(line)] : [inline(line)])));
}

const BULLET = /^\s*([-*+]|\d{1,9}[.)])\s+/;
const depth = (text) => text.match(/^[\s>]*/)[0].replace(/\s/g, "").length;

function code(lines) {
  const language = lines[0].replace(/^\s*[`~]+/, "").trim().split(/\s/)[0];
  const closed = lines.length > 1 && /^\s*(`{3,}|~{3,})\s*$/.test(lines.at(-1));
  const text = lines.slice(1, closed ? -1 : undefined).join("\n");
  return h("pre", { tabindex: 0, "data-language": language || null }, h("code", null, h(Lines, { text, family: text.length > COLOURED ? null : familyOf(language) })));
}

function list(lines) {
  const ordered = /^\s*\d/.test(lines[0]);
  const items = [];
  for (const line of lines) {
    const mark = line.match(BULLET);
    if (mark) items.push({ indent: line.search(/\S/), text: line.slice(mark[0].length) });
    else if (items.length) items.at(-1).text += ` ${line.trim()}`;
  }
  const base = items[0].indent;
  return h(ordered ? "ol" : "ul", null, items.map((item) => {
    const level = Math.min(4, Math.floor((item.indent - base) / 2));
    const task = item.text.match(/^\[([ xX])\]\s+(.*)$/);
    const body = task ? [h("span", { class: "task" }, task[1] === " " ? "☐ " : "☑ "), inline(task[2])] : inline(item.text);
    return h("li", { class: level > 0 ? `in${level}` : null }, body);
  }));
}

function table(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim()));
  return h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Table" },
    h("table", null,
      h("thead", null, h("tr", null, cells(lines[0]).map((cell) => h("th", null, cell)))),
      h("tbody", null, lines.slice(2).map((line) => h("tr", null, cells(line).map((cell) => h("td", null, cell)))))));
}

const INLINE = /(`+)([^`](?:[^`]*[^`])?)\1(?!`)|\*\*([^*\n]{1,500})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,500})\*(?!\w)|(?<!\w)_([^_\s][^_\n]{0,500})_(?!\w)|~~([^~\n]{1,500})~~|\[([^\]\n]{1,500})\]\(([^()\s]{1,2000})\)|\bhttps?:\/\/[^\s<>()\]]{0,2000}[^\s<>()\].,;:!?'"*_]/g;

/** Returns the pieces of a line of text. */
export function inline(text) {
  if (text.length > INLINE_LIMIT) return [text];
  const out = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > at) out.push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const [whole, , codeText, bold, star, under, struck, label, target] = match;
    if (codeText !== undefined) out.push(h("code", null, codeText));
    else if (bold !== undefined) out.push(h("strong", null, inline(bold)));
    else if ((star ?? under) !== undefined) out.push(h("em", null, inline(star ?? under)));
    else if (struck !== undefined) out.push(h("s", null, inline(struck)));
    else if (label !== undefined) out.push(link(target, inline(label), whole));
    else out.push(link(whole, whole, whole));
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

/** A link that leaves the page only when it is clicked; any other scheme stays text. */
function link(target, label, source) {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return source;
  return h("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}
