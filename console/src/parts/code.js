// Code with its colours, line by line.
import { h, useRef } from "../html.js";
import { highlight } from "../highlight.js";

export const Code = ({ text, family }) =>
  highlight(text, family).map(({ kind, text: piece }) => (kind ? h("span", { class: `c-${kind}` }, piece) : piece));

/** Lines of code, as the content of a `pre`. Lines that stay the same while the text grows are left alone. */
export function Lines({ text, family }) {
  const known = useRef([]);
  if (!family) return text;
  known.current = text.split("\n").map((line, index) => {
    const before = known.current[index];
    return before?.line === line ? before : { line, shown: h("span", { key: index }, index ? "\n" : "", h(Code, { text: line, family })) };
  });
  return known.current.map((line) => line.shown);
}
