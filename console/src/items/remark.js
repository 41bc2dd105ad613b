// Items that are one line: reviews, compactions, activity of agents, and types that this page does not know.
import { html } from "../html.js";
import { Markdown } from "../markdown.js";

const WORDS = { contextCompaction: "The context was compacted", enteredReviewMode: "Review started", hookPrompt: "A hook added instructions" };

export function Remark({ item }) {
  if (item.type === "exitedReviewMode") return html`<article class="message agent" aria-label="Review"><${Markdown} text=${item.review ?? ""} /></article>`;
  const agent = item.type === "subAgentActivity" ? `Agent ${item.agentPath}: ${item.kind}` : null;
  return html`<article class="remark" aria-label="Remark"><span>${agent ?? WORDS[item.type] ?? item.type}</span></article>`;
}
