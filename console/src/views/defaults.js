// What new threads start with, in the configuration of the user.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { attempt } from "../actions.js";
import { useAnswer } from "./settings.js";

const APPROVALS = ["untrusted", "on-request", "on-failure", "never"];
const SANDBOXES = ["read-only", "workspace-write", "danger-full-access"];
const EFFORTS = ["low", "medium", "high", "xhigh"];

/** Writes a value of the configuration; an empty one is taken out. */
export const writeConfig = (keyPath, value) =>
  attempt(async () => {
    await client.request("config/value/write", { keyPath, value: value === "" ? null : value, mergeStrategy: "replace" });
    state.notify("Saved. It counts for new threads.", "info");
  });

export function Defaults() {
  const [again, setAgain] = useState(0);
  const answer = useAnswer("config/read", { includeLayers: false }, again);
  const config = answer?.result?.config ?? {};
  const write = async (key, value) => (await writeConfig(key, value), setAgain(again + 1));
  const providers = ["openai", ...Object.keys(config.model_providers ?? {})];
  const all = config.model_provider && !providers.includes(config.model_provider) ? [config.model_provider, ...providers] : providers;
  return html`<section class="card"><h2>Defaults of new threads</h2>
    ${answer?.error && html`<p class="problem">${answer.error.message}</p>`}
    <label class="field"><span>Default model</span><input type="text" list="known-models" value=${config.model ?? ""} onChange=${(event) => write("model", event.target.value.trim())} /></label>
    <datalist id="known-models">${state.models.value.map((entry) => html`<option key=${entry.model} value=${entry.model}></option>`)}</datalist>
    <${Select} label="Provider" value=${config.model_provider} options=${all} onPick=${(value) => write("model_provider", value)} />
    <${Select} label="Reasoning" value=${config.model_reasoning_effort} options=${EFFORTS} onPick=${(value) => write("model_reasoning_effort", value)} />
    <${Select} label="Approvals" value=${config.approval_policy} options=${APPROVALS} onPick=${(value) => write("approval_policy", value)} />
    <${Select} label="Default sandbox" value=${config.sandbox_mode} options=${SANDBOXES} onPick=${(value) => write("sandbox_mode", value)} />
  </section>`;
}

function Select({ label, value, options, onPick }) {
  const now = typeof value === "string" ? value : "";
  return html`<label class="field"><span>${label}</span><select value=${now} onChange=${(event) => onPick(event.target.value)}>
    ${["", ...new Set([...options, now].filter(Boolean))].map((one) => html`<option key=${one} value=${one} selected=${one === now}>${one || "default"}</option>`)}</select></label>`;
}
