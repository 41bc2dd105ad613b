// The start of a thread: a folder, the first message, and what it may spend.
import { html, useEffect, useRef, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { newId, send, startThread } from "../actions.js";
import { Head } from "./head.js";
import { folderName } from "./sidebar.js";
import { Composer } from "../composer/composer.js";
import { Choices } from "../composer/pickers.js";

const SANDBOX = { "read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess" };

export function NewThread() {
  const folders = [...new Set([...state.threads.value.values()].map((thread) => thread.cwd))].slice(0, 30);
  const [folder, setFolder] = useState(null);
  const chosen = folder ?? state.read("folder", null) ?? folders[0] ?? "";
  const [settings, setSettings] = useState({});
  const [shown, setShown] = useState({});
  const [budget, setBudget] = useState({});
  const defaults = useDefaults();
  const key = useRef(null);
  const onFirst = async (input, id, text) => {
    const start = { cwd: chosen.trim(), budget: budgetOf(budget), settings };
    // The same start again after a lost connection is not a second one.
    const same = JSON.stringify(start);
    if (key.current?.same !== same) key.current = { same, id: newId() };
    const model = await startThread({ ...start, idempotencyKey: key.current.id });
    state.keep("folder", chosen.trim());
    try {
      await send(model, input, { clientUserMessageId: id });
    } catch (error) {
      // The thread is shown by now, so the message waits there.
      requestAnimationFrame(() => window.dispatchEvent(new CustomEvent("loomd:compose", { detail: text })));
      throw error;
    }
  };
  const change = (params, now) => (setSettings({ ...settings, ...params }), setShown({ ...shown, ...now }));
  return html`<main class="new">
    <${Head} className="only-small"><h1 class="grow">loomd</h1><//>
    <div class="start">
      <h1>What should be done?</h1>
      ${state.mayDrive.value ? html`
        <label class="folder"><span>Folder</span>
          <input type="text" aria-label="Folder" value=${chosen} placeholder="The folder of the server" spellcheck="false" autocapitalize="off" onInput=${(event) => setFolder(event.target.value)} />
        </label>
        ${folders.length > 1 && html`<div class="folders" role="group" aria-label="Known folders">${folders.slice(0, 6).map((one) => html`<button key=${one} title=${one} aria-pressed=${one === chosen} onClick=${() => setFolder(one)}>${folderName(one)}</button>`)}</div>`}
        <${Composer} model=${null} onFirst=${onFirst} cwd=${chosen} controls=${html`<${Choices} now=${{ ...defaults, ...shown }} change=${change} />`} />
        <${BudgetFields} budget=${budget} set=${setBudget} />` : html`<p>Choose a thread to follow it.</p>`}
    </div>
  </main>`;
}

/** What a thread starts with if nothing is chosen. */
function useDefaults() {
  const [defaults, setDefaults] = useState({});
  const connected = state.connection.value === "connected";
  useEffect(() => {
    if (!connected || !state.mayDrive.peek()) return;
    client.request("config/read", { includeLayers: false }).then(({ config }) => {
      const type = SANDBOX[config.sandbox_mode];
      setDefaults({ model: config.model ?? null, effort: config.model_reasoning_effort ?? null, sandbox: type ? { type } : null });
    }, () => {});
  }, [connected]);
  return defaults;
}

function BudgetFields({ budget, set }) {
  const field = (name, label, step) => html`<label class="field"><span>${label}</span>
    <input type="number" min="0" step=${step} inputmode="decimal" value=${budget[name] ?? ""} onInput=${(event) => set({ ...budget, [name]: event.target.value })} /></label>`;
  return html`<details class="budget"><summary>Budget</summary>
    <p class="hint">The thread stops when it has spent this much, its agents included. Dollars count where a price is configured.</p>
    <div class="fields">${field("dollars", "Dollars", "0.01")}${field("tokens", "Tokens", "1000")}${field("toolCalls", "Tool calls", "1")}</div>
  </details>`;
}

/** The limits that are set, as numbers; null if there are none. */
function budgetOf(fields) {
  const set = Object.entries(fields).filter(([, value]) => Number(value) > 0).map(([name, value]) => [name, Number(value)]);
  return set.length ? Object.fromEntries(set) : null;
}
