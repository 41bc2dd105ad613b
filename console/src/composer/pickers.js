// Model, effort, mode and sandbox: of a thread, where a change applies from the next turn on, or of one to be started.
import { html } from "../html.js";
import * as state from "../state.js";
import { attempt, updateSettings } from "../actions.js";

const SANDBOXES = { readOnly: "Read only", workspaceWrite: "Workspace", dangerFullAccess: "Full access" };
const POLICIES = {
  readOnly: { type: "readOnly", networkAccess: false },
  workspaceWrite: { type: "workspaceWrite", writableRoots: [], networkAccess: false, excludeTmpdirEnvVar: false, excludeSlashTmp: false },
  dangerFullAccess: { type: "dangerFullAccess" },
};

/** The pickers of a thread. */
export function Pickers({ model }) {
  const change = (params, shown) => attempt(async () => {
    await updateSettings(model, params);
    model.settings.value = { ...model.settings.peek(), ...shown };
  });
  return html`<${Choices} now=${model.settings.value ?? {}} change=${change} />`;
}

/** `now` is what is chosen; `change(params, shown)` gets the params of `thread/settings/update` and what is chosen then. */
export function Choices({ now, change }) {
  const known = state.models.value.map((entry) => entry.model);
  const models = now.model && !known.includes(now.model) ? [now.model, ...known] : known;
  const entry = state.models.value.find((one) => one.model === now.model);
  const efforts = entry?.supportedReasoningEfforts?.map((one) => one.reasoningEffort) ?? ["low", "medium", "high"];
  const allEfforts = [...new Set([...efforts, now.effort].filter(Boolean))].map((one) => [one, one]);
  const modes = state.modes.value.filter((mode) => mode.mode);
  const onMode = (mode) => change({ collaborationMode: { mode, settings: { model: now.model, reasoning_effort: now.effort ?? null, developer_instructions: null } } }, { mode });
  return html`<div class="pickers">
    <${Pick} label="Model" value=${now.model ?? ""} options=${now.model ? models.map((name) => [name, name]) : [["", "default model"], ...models.map((name) => [name, name])]} onPick=${(value) => value && change({ model: value }, { model: value })} />
    <${Pick} label="Effort" value=${now.effort ?? ""} options=${now.effort ? allEfforts : [["", "default effort"], ...allEfforts]} onPick=${(value) => value && change({ effort: value }, { effort: value })} />
    ${modes.length > 1 && now.model && html`<${Pick} label="Mode" value=${now.mode ?? "default"} options=${modes.map((mode) => [mode.mode, `${mode.name} mode`])} onPick=${onMode} />`}
    <${Pick} label="Sandbox" value=${now.sandbox?.type ?? ""} options=${sandboxes(now)} onPick=${(value) => POLICIES[value] && change({ sandboxPolicy: POLICIES[value] }, { sandbox: POLICIES[value] })} />
  </div>`;
}

function sandboxes(now) {
  const all = Object.entries(SANDBOXES);
  if (!now.sandbox) return [["", "default sandbox"], ...all];
  return SANDBOXES[now.sandbox.type] ? all : [[now.sandbox.type, now.sandbox.type], ...all];
}

function Pick({ label, value, options, onPick }) {
  return html`<select aria-label=${label} title=${label} value=${value} onChange=${(event) => onPick(event.target.value)}>
    ${options.map(([key, name]) => html`<option key=${key} value=${key} selected=${key === value}>${name}</option>`)}
  </select>`;
}
