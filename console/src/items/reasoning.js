// Reasoning, folded; the latest heading of a summary shows what it is about.
import { html } from "../html.js";
import { Markdown } from "../markdown.js";
import { Fold } from "../parts/fold.js";

export function Reasoning({ item }) {
  const text = [...(item.summary ?? []), ...(item.content ?? [])].join("\n\n");
  const headings = [...text.slice(0, 20_000).matchAll(/^\*\*(.+?)\*\*$/gm)];
  const hint = headings.at(-1)?.[1] ?? text.replace(/[*_`#]/g, "").trim().split("\n")[0].slice(0, 120);
  return html`<article class="reasoning" aria-label="Reasoning">
    <${Fold} label="Reasoning" hint=${hint}>${text ? html`<${Markdown} text=${text} />` : html`<p class="hint">not shown by the model</p>`}<//>
  </article>`;
}
