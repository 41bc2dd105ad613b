// The plan of a turn as a checklist, and a proposed plan as text.
import { html } from "../html.js";
import { Markdown } from "../markdown.js";

const MARK = { completed: "✓", inProgress: "●", pending: "○" };
const WORDS = { completed: "done", inProgress: "in progress", pending: "to do" };

export function Todo({ item }) {
  const done = item.plan.filter((step) => step.status === "completed").length;
  return html`<article class="plan" aria-label="Plan">
    <div class="planhead">Plan <span class="hint">${done} of ${item.plan.length}</span></div>
    ${item.explanation && html`<p class="hint">${item.explanation}</p>`}
    <ul aria-label="Plan">
      ${item.plan.map((step, index) => html`<li key=${index} class=${step.status}><span class="mark" aria-hidden="true">${MARK[step.status]}</span><span class="sr">${WORDS[step.status]}: </span>${step.step}</li>`)}
    </ul>
  </article>`;
}

export function Plan({ item }) {
  return html`<article class="plan" aria-label="Plan"><div class="planhead">Proposed plan</div><${Markdown} text=${item.text ?? ""} /></article>`;
}
