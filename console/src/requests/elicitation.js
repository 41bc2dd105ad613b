// A request of an MCP server for input: a short form, an address to visit, or the approval of a tool call.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { answer, attempt } from "../actions.js";

export function Elicitation({ request }) {
  const { params } = request;
  const fields = Object.entries(params.requestedSchema?.properties ?? {});
  const [values, setValues] = useState({});
  const reply = (action, name) => attempt(async () => {
    const content = action === "accept" && params.mode !== "url" ? converted(fields, values) : null;
    answer(request, { action, content, _meta: null }, name);
  });
  const safeUrl = params.mode === "url" && /^https?:\/\//i.test(params.url) ? params.url : null;
  return html`<div class="approval" role="group" aria-label=${fields.length ? "Question" : "Approval"}>
    <h2>${params.serverName}</h2>
    <p>${params.message}</p>
    ${safeUrl && html`<p><a href=${safeUrl} target="_blank" rel="noopener noreferrer">${safeUrl}</a></p>`}
    ${fields.map(([name, schema]) => html`<label key=${name} class="field"><span>${schema.title ?? name}</span>
      <${Field} schema=${schema} value=${values[name] ?? schema.default ?? ""} set=${(value) => setValues({ ...values, [name]: value })} />
      ${schema.description && html`<span class="hint">${schema.description}</span>`}
    </label>`)}
    ${state.mayApprove.value && html`<div class="decisions">
      <button class="primary" onClick=${() => reply("accept", "Allow once")}>${fields.length ? "Answer" : "Allow once"}</button>
      <button onClick=${() => reply("decline", "Decline")}>Decline</button>
    </div>`}
  </div>`;
}

function Field({ schema, value, set }) {
  if (schema.type === "boolean") return html`<input type="checkbox" checked=${value === true} onChange=${(event) => set(event.target.checked)} />`;
  const options = schema.enum ?? schema.oneOf?.map((option) => option.const);
  if (options) return html`<select value=${value} onChange=${(event) => set(event.target.value)}><option value="">–</option>${options.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}</select>`;
  return html`<input type=${schema.type === "number" || schema.type === "integer" ? "number" : "text"} value=${value} onInput=${(event) => set(event.target.value)} />`;
}

function converted(fields, values) {
  const out = {};
  for (const [name, schema] of fields) {
    const value = values[name] ?? schema.default;
    if (value === undefined || value === "") continue;
    out[name] = schema.type === "number" || schema.type === "integer" ? Number(value) : value;
  }
  return out;
}
