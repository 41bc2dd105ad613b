// Providers of models: those of the configuration, and a form for one more. Keys stay in the environment of the server.
import { html, useState } from "../html.js";
import { writeConfig } from "./defaults.js";
import { useAnswer } from "./settings.js";

export function Providers() {
  const [again, setAgain] = useState(0);
  const [form, setForm] = useState(null);
  const answer = useAnswer("config/read", { includeLayers: false }, again);
  const { model_providers: providers = {}, model_provider: used } = answer?.result?.config ?? {};
  const save = async (event) => {
    event.preventDefault();
    const { id, base_url, env_key } = form;
    if (await writeConfig(`model_providers.${id.trim()}`, { name: id.trim(), base_url: base_url.trim(), ...(env_key?.trim() ? { env_key: env_key.trim() } : {}) })) {
      setForm(null);
      setAgain(again + 1);
    }
  };
  const use = async (id) => (await writeConfig("model_provider", id), setAgain(again + 1));
  const field = (name, label, more = {}) => html`<label class="field"><span>${label}</span><input type="text" spellcheck="false" autocapitalize="off" value=${form[name] ?? ""} onInput=${(event) => setForm({ ...form, [name]: event.target.value })} ...${more} /></label>`;
  return html`<section class="card"><h2>Providers</h2>
    ${answer?.error && html`<p class="problem">${answer.error.message}</p>`}
    <dl>${Object.entries(providers).map(([id, provider]) => html`<div key=${id}><dt>${id}${id === used && html` <span class="hint">in use</span>`}</dt>
      <dd>${provider.base_url ?? ""}${provider.env_key && html`<br />key in <code>${provider.env_key}</code>`}${id !== used && html` <button class="plain" onClick=${() => use(id)}>Use</button>`}</dd></div>`)}</dl>
    ${Object.keys(providers).length === 0 && html`<p class="hint">${used ? `In use: ${used}, which is built in.` : "Only those that are built in."}</p>`}
    ${form ? html`<form onSubmit=${save}>
      ${field("id", "Name", { required: true, pattern: "[A-Za-z0-9_-]+" })}
      ${field("base_url", "Address", { required: true, placeholder: "https://host/v1" })}
      ${field("env_key", "Variable with the key", { placeholder: "SOME_API_KEY" })}
      <div class="decisions"><button class="primary">Add</button><button type="button" onClick=${() => setForm(null)}>Cancel</button></div>
    </form>` : html`<button onClick=${() => setForm({})}>Add a provider</button>`}
  </section>`;
}
