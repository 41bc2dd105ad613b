// Beside the transcript: changes, files, terminals, agents, decisions, usage.
import { html } from "../html.js";
import * as state from "../state.js";
import { toggleChanges } from "../keys.js";
import { Changes } from "./changes.js";
import { Files } from "./files.js";
import { Terminals } from "./terminals.js";
import { Agents } from "./agents.js";
import { Decisions } from "./decisions.js";
import { UsagePanel } from "./usage_panel.js";

const TABS = [["Changes", Changes], ["Files", Files], ["Terminals", Terminals], ["Agents", Agents], ["Decisions", Decisions], ["Usage", UsagePanel]];

export function Side({ model }) {
  const tab = state.sideTab.value;
  const setTab = (name) => (state.sideTab.value = name);
  const View = TABS.find(([name]) => name === tab)[1];
  const onKey = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = TABS.at((TABS.findIndex(([name]) => name === tab) + step) % TABS.length)[0];
    setTab(next);
    event.currentTarget.querySelector(`#tab-${next}`)?.focus();
  };
  return html`<aside class="side" aria-label="Workspace">
    <div class="tabs"><div role="tablist" aria-label="Workspace" onKeyDown=${onKey}>
      ${TABS.map(([name]) => html`<button key=${name} id=${`tab-${name}`} role="tab" class="plain" aria-selected=${tab === name} tabindex=${tab === name ? 0 : -1} aria-controls="side-panel" onClick=${() => setTab(name)}>${name}</button>`)}
    </div><button class="plain" aria-label="Hide the changes" onClick=${toggleChanges}>×</button></div>
    <div class="panel" id="side-panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}><${View} model=${model} /></div>
  </aside>`;
}
