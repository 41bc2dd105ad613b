// A line of code with its colours.
import { h } from "../html.js";
import { highlight } from "../highlight.js";

export const Code = ({ text, family }) =>
  highlight(text, family).map(({ kind, text: piece }) => (kind ? h("span", { class: `c-${kind}` }, piece) : piece));

/** Lines of code, as the content of a `pre`. */
export const Lines = ({ text, family }) =>
  family ? text.split("\n").map((line, index) => h("span", { key: index }, index ? "\n" : "", h(Code, { text: line, family }))) : text;
