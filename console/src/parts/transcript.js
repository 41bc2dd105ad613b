// The transcript: a virtual list. Only the rows near the visible part are in the document, however long the thread is.
// The end stays in view while it grows, unless the reader has scrolled up.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { loadOlder } from "../load.js";
import { Item } from "../items/item.js";

const GUESS = 72;
const BEYOND = 800;

export function Transcript({ model }) {
  const rows = model.rows.value;
  const box = useRef(null);
  const heights = useRef(new Map());
  const atEnd = useRef(true);
  const [view, setView] = useState({ top: 0, height: 900 });
  const [, again] = useState(0);

  const measure = () => {
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    atEnd.current = scrollHeight - scrollTop - clientHeight < 40;
    setView((old) => (Math.abs(old.top - scrollTop) < BEYOND / 4 && old.height === clientHeight ? old : { top: scrollTop, height: clientHeight }));
    if (scrollTop < BEYOND && model.older.peek()) keepPlace(box.current, () => loadOlder(model));
  };

  const sizes = useRef(null);
  sizes.current ??= new ResizeObserver((entries) => {
    let changed = false;
    for (const entry of entries) {
      const height = entry.borderBoxSize[0].blockSize;
      const { key } = /** @type {HTMLElement} */ (entry.target).dataset;
      if (height && heights.current.get(key) !== height) {
        heights.current.set(key, height);
        changed = true;
      }
    }
    if (!changed || !box.current) return;
    if (atEnd.current) box.current.scrollTop = box.current.scrollHeight;
    else again((count) => count + 1);
  });
  useEffect(() => () => sizes.current.disconnect(), []);

  useLayoutEffect(() => {
    if (atEnd.current) {
      box.current.scrollTop = box.current.scrollHeight;
      measure();
    }
  }, [rows]);
  useEffect(() => {
    const onResize = () => box.current && (atEnd.current ? (box.current.scrollTop = box.current.scrollHeight) : measure());
    const observer = new ResizeObserver(onResize);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const shown = windowOf(rows, heights.current, view, atEnd.current);
  return html`<div class="transcript" role="log" aria-label="Transcript" aria-live="polite" aria-busy=${model.turn.value !== null} tabindex="0" ref=${box} onScroll=${measure}>
    ${model.older.value && html`<button class="plain wide" onClick=${() => keepPlace(box.current, () => loadOlder(model))}>Older turns</button>`}
    <div class="space" style=${{ height: `${shown.before}px` }}></div>
    ${rows.slice(shown.from, shown.to).map((row) => html`<${Row} key=${row.key} row=${row} model=${model} sizes=${sizes.current} />`)}
    <div class="space" style=${{ height: `${shown.after}px` }}></div>
  </div>`;
}

/** Which rows are drawn, and how much space the others take. */
function windowOf(rows, heights, view, atEnd) {
  const heightOf = (row) => heights.get(row.key) ?? GUESS;
  let total = 0;
  for (const row of rows) total += heightOf(row);
  const top = atEnd ? Math.max(0, total - view.height) : view.top;
  let [at, before, from] = [0, 0, 0];
  while (from < rows.length && at + heightOf(rows[from]) < top - BEYOND) at += heightOf(rows[from++]);
  before = at;
  let to = from;
  while (to < rows.length && at < top + view.height + BEYOND) at += heightOf(rows[to++]);
  return { from, to, before, after: total - at };
}

/** Rows that are added above must not move what is read. */
async function keepPlace(element, change) {
  const before = element.scrollHeight - element.scrollTop;
  await change();
  requestAnimationFrame(() => (element.scrollTop = element.scrollHeight - before));
}

function Row({ row, model, sizes }) {
  const element = useRef(null);
  useEffect(() => {
    const observed = element.current;
    sizes.observe(observed);
    return () => sizes.unobserve(observed);
  }, []);
  return html`<div class="entry" data-key=${row.key} ref=${element}><${Item} row=${row} model=${model} /></div>`;
}
