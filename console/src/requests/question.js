// Questions of the agent, with options or in free words.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { answer, attempt } from "../actions.js";

export function Question({ request }) {
  const { questions } = request.params;
  const [chosen, setChosen] = useState({});
  const set = (id, value) => setChosen({ ...chosen, [id]: value });
  const complete = questions.every((question) => chosen[question.id]?.trim());
  const submit = (event) => {
    event.preventDefault();
    const answers = Object.fromEntries(questions.map((question) => [question.id, { answers: [chosen[question.id]] }]));
    attempt(async () => answer(request, { answers }, "Answered"));
  };
  return html`<form class="question" role="group" aria-label="Question" onSubmit=${submit}>
    ${questions.map((question) => html`<fieldset key=${question.id}>
      <legend>${question.header && html`<span class="hint">${question.header} </span>`}${question.question}</legend>
      ${(question.options ?? []).map((option) => html`<label key=${option.label} class="option">
        <input type="radio" name=${`${request.id}-${question.id}`} checked=${chosen[question.id] === option.label} onChange=${() => set(question.id, option.label)} />
        <span>${option.label}${option.description && html`<span class="hint"> ${option.description}</span>`}</span>
      </label>`)}
      ${(!question.options?.length || question.isOther) && html`<input type=${question.isSecret ? "password" : "text"} aria-label=${question.options?.length ? "Another answer" : question.question}
        placeholder=${question.options?.length ? "Another answer" : ""} onInput=${(event) => set(question.id, event.target.value)} />`}
    </fieldset>`)}
    <div class="decisions"><button class="primary" disabled=${!complete || !state.mayApprove.value}>Answer</button></div>
  </form>`;
}
