// Settings and diagnostics on one page: account, providers, defaults, MCP servers, skills, hooks, checks, figures, keys.
import { html, useEffect, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { KEYS } from "../keys.js";
import { Account } from "./account.js";
import { Checks } from "./checks.js";
import { Defaults } from "./defaults.js";
import { Head } from "./head.js";
import { Providers } from "./providers.js";
import { Servers } from "./servers.js";
import { Theme } from "./theme.js";

export function Settings() {
  const drives = state.mayDrive.value;
  return html`<main class="settings">
    <${Head}><h1>Settings</h1>
      <button class="plain" onClick=${() => (state.view.value = state.open.peek() ? "thread" : "new")}>Close</button><//>
    <div class="scroll"><div class="cards">
      <${Theme} />
      <${Account} />
      ${drives && html`<${Defaults} /><${Providers} /><${Checks} />`}
      <${Servers} />
      <${Listed} title="Skills" method="skills/list" params=${{ cwds: cwds() }} rows=${skillRows} />
      ${drives && html`<${Listed} title="Hooks" method="hooks/list" params=${{ cwds: cwds() }} rows=${hookRows} />`}
      <${Listed} title="Diagnostics" method="server/diagnostics" params=${{}} rows=${gaugeRows} />
      <section class="card"><h2>Keys</h2><dl>${KEYS.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl></section>
    </div></div>
  </main>`;
}

/** The folder of the open thread, else the one that was used last. */
export const cwds = () => [state.open.peek()?.settings.peek()?.cwd ?? state.read("folder", null)].filter(Boolean);

/** The answer of a request, or why there is none. */
export function useAnswer(method, params, again = 0) {
  const [answer, setAnswer] = useState(null);
  useEffect(() => {
    let current = true;
    client.request(method, params).then((result) => current && setAnswer({ result }), (error) => current && setAnswer({ error }));
    return () => (current = false);
  }, [method, again]);
  return answer;
}

function Listed({ title, method, params, rows }) {
  const answer = useAnswer(method, params);
  const list = answer?.result ? rows(answer.result) : [];
  return html`<section class="card"><h2>${title}</h2>
    ${answer?.error && html`<p class="problem">${answer.error.message}</p>`}
    ${answer?.result && !list.length && html`<p class="hint">None.</p>`}
    ${list.length > 0 && html`<dl tabindex="0" aria-label=${title}>${list.map(([name, value, problem], index) => html`<div key=${index}><dt>${name}</dt><dd class=${problem ? "problem" : null}>${value}</dd></div>`)}</dl>`}
  </section>`;
}

const skillRows = (answer) => answer.data.flatMap((entry) => [
  ...entry.skills.map((skill) => [`$${skill.name}`, skill.shortDescription ?? skill.description?.slice(0, 140) ?? ""]),
  ...entry.errors.map((error) => [error.path, error.message, true]),
]);
const hookRows = (answer) => answer.data.flatMap((entry) => [
  ...(entry.hooks ?? []).map((hook) => [hook.eventName ?? hook.event ?? "hook", hook.command ?? hook.sourcePath ?? ""]),
  ...(entry.warnings ?? []).map((warning) => ["warning", warning.message ?? String(warning), true]),
  ...(entry.errors ?? []).map((error) => [error.path ?? "error", error.message, true]),
]);

const FIGURES = { id: "Process", residentMemoryBytes: "Memory", physicalFootprintBytes: "Footprint" };

/** Figures with labels are counters for programs; `/metrics` has them. */
function gaugeRows({ process, gauges }) {
  const own = Object.entries(process).filter(([, value]) => value !== null).map(([name, value]) => [FIGURES[name] ?? name, name === "id" ? String(value) : `${Math.round(value / 1024 / 1024)} MB`]);
  const rest = gauges.filter(({ name }) => !/[{]|^process_/.test(name)).map(({ name, value }) => [name.replace(/^(loomd_|app\.|core\.)/, "").replaceAll(/[._]/g, " "), value.toLocaleString()]);
  return [...own, ...new Map(rest)];
}
