// Model, effort, mode and sandbox of the thread. A change applies from the next turn on.
import { html } from "../html.js";
import * as state from "../state.js";
import { attempt, updateSettings } from "../actions.js";

const SANDBOXES = { readOnly: "Read only", workspaceWrite: "Workspace", dangerFullAccess: "Full access" };
const POLICIES = {
  readOnly: { type: "readOnly", networkAccess: false },
  workspaceWrite: { type: "workspaceWrite", writableRoots: [], networkAccess: false, excludeTmpdirEnvVar: false, excludeSlashTmp: false },
  dangerFullAccess: { type: "dangerFullAccess" },
};

export function Pickers({ model }) {
  const now = model.settings.value ?? {};
  const change = (params, shown) => attempt(async () => {
    await updateSettings(model, params);
    model.settings.value = { ...model.settings.peek(), ...shown };
  });
  const known = state.models.value.map((entry) => entry.model);
  const models = now.model && !known.includes(now.model) ? [now.model, ...known] : known;
  const entry = state.models.value.find((one) => one.model === now.model);
  const efforts = entry?.supportedReasoningEfforts?.map((one) => one.reasoningEffort) ?? ["low", "medium", "high"];
  const modes = state.modes.value.filter((mode) => mode.mode);
  const onMode = (mode) => change({ collaborationMode: { mode, settings: { model: now.model, reasoning_effort: now.effort ?? null, developer_instructions: null } } }, { mode });
  return html`<div class="pickers">
    <${Pick} label="Model" value=${now.model ?? ""} options=${models.map((name) => [name, name])} onPick=${(value) => change({ model: value }, { model: value })} />
    <${Pick} label="Effort" value=${now.effort ?? ""} options=${[...(now.effort ? [] : [["", "default effort"]]), ...new Set([...efforts, now.effort].filter(Boolean))].map((one) => (Array.isArray(one) ? one : [one, one]))} onPick=${(value) => change({ effort: value }, { effort: value })} />
    ${modes.length > 1 && html`<${Pick} label="Mode" value=${now.mode ?? "default"} options=${modes.map((mode) => [mode.mode, `${mode.name} mode`])} onPick=${onMode} />`}
    <${Pick} label="Sandbox" value=${now.sandbox?.type ?? ""} options=${sandboxes(now)} onPick=${(value) => change({ sandboxPolicy: POLICIES[value] }, { sandbox: POLICIES[value] })} />
  </div>`;
}

function sandboxes(now) {
  const all = Object.entries(SANDBOXES);
  return now.sandbox && !SANDBOXES[now.sandbox.type] ? [[now.sandbox.type, now.sandbox.type], ...all] : all;
}

function Pick({ label, value, options, onPick }) {
  return html`<select aria-label=${label} title=${label} value=${value} onChange=${(event) => onPick(event.target.value)}>
    ${options.map(([key, name]) => html`<option key=${key} value=${key} selected=${key === value}>${name}</option>`)}
  </select>`;
}
