// Settings and diagnostics on one page: account, model, MCP servers, skills, hooks, figures of the server, keys.
import { html, useEffect, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { attempt } from "../actions.js";
import { KEYS } from "../keys.js";
import { Account } from "./account.js";
import { Theme } from "./theme.js";

export function Settings() {
  return html`<main class="settings">
    <header class="head"><button class="plain only-small" aria-label="Show the threads" onClick=${() => (state.sidebarShown.value = true)}>☰</button><h1>Settings</h1>
      <button class="plain" onClick=${() => (state.view.value = state.open.peek() ? "thread" : "new")}>Close</button></header>
    <div class="cards">
      <${Theme} />
      <${Account} />
      <${Defaults} />
      <${Servers} />
      <${Listed} title="Skills" method="skills/list" params=${{ cwds: cwds() }} rows=${skillRows} />
      <${Listed} title="Hooks" method="hooks/list" params=${{ cwds: cwds() }} rows=${hookRows} />
      <${Listed} title="Diagnostics" method="server/diagnostics" params=${{}} rows=${gaugeRows} />
      <section class="card"><h2>Keys</h2><dl>${KEYS.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl></section>
    </div>
  </main>`;
}

const cwds = () => (state.open.peek()?.settings.peek()?.cwd ? [state.open.peek().settings.peek().cwd] : []);

/** The answer of a request, or why there is none. */
export function useAnswer(method, params, again = 0) {
  const [answer, setAnswer] = useState(null);
  useEffect(() => {
    client.request(method, params).then((result) => setAnswer({ result }), (error) => setAnswer({ error }));
  }, [method, again]);
  return answer;
}

function Listed({ title, method, params, rows }) {
  const answer = useAnswer(method, params);
  const list = answer?.result ? rows(answer.result) : [];
  return html`<section class="card"><h2>${title}</h2>
    ${answer?.error && html`<p class="problem">${answer.error.message}</p>`}
    ${answer?.result && !list.length && html`<p class="hint">None.</p>`}
    <dl>${list.map(([name, value, problem], index) => html`<div key=${index}><dt>${name}</dt><dd class=${problem ? "problem" : null}>${value}</dd></div>`)}</dl>
  </section>`;
}

const skillRows = (answer) => answer.data.flatMap((entry) => [
  ...entry.skills.map((skill) => [skill.name, skill.description?.slice(0, 140) ?? ""]),
  ...entry.errors.map((error) => [error.path, error.message, true]),
]);
const hookRows = (answer) => answer.data.flatMap((entry) => [
  ...(entry.hooks ?? []).map((hook) => [hook.eventName ?? hook.event ?? "hook", hook.command ?? hook.sourcePath ?? ""]),
  ...(entry.errors ?? []).map((error) => [error.path ?? "error", error.message, true]),
]);
const gaugeRows = (answer) => [...Object.entries(answer.process), ...answer.gauges.map((gauge) => [gauge.name, gauge.value])].map(([name, value]) => [name, typeof value === "number" ? value.toLocaleString() : String(value ?? "–")]);

function Defaults() {
  const answer = useAnswer("config/read", { includeLayers: false });
  const config = answer?.result?.config ?? {};
  const write = (keyPath, value) => attempt(() => client.request("config/value/write", { keyPath, value, mergeStrategy: "replace" }).then(() => state.notify("Saved.", "info")));
  return html`<section class="card"><h2>Defaults of new threads</h2>
    ${answer?.error && html`<p class="problem">${answer.error.message}</p>`}
    <label class="field"><span>Model</span><input type="text" value=${config.model ?? ""} disabled=${!state.mayDrive.value} onChange=${(event) => write("model", event.target.value)} /></label>
    <label class="field"><span>Provider</span><input type="text" value=${config.model_provider ?? ""} disabled=${!state.mayDrive.value} onChange=${(event) => write("model_provider", event.target.value)} /></label>
    <label class="field"><span>Approvals</span><select value=${config.approval_policy ?? ""} disabled=${!state.mayDrive.value} onChange=${(event) => write("approval_policy", event.target.value)}>
      ${["", "untrusted", "on-request", "on-failure", "never"].map((one) => html`<option key=${one} value=${one} selected=${one === (config.approval_policy ?? "")}>${one || "default"}</option>`)}</select></label>
  </section>`;
}

function Servers() {
  const [again, setAgain] = useState(0);
  const answer = useAnswer("mcpServerStatus/list", {}, again);
  const reload = () => attempt(async () => {
    await client.request("config/mcpServer/reload");
    setAgain(again + 1);
  });
  const login = (name) => attempt(async () => {
    const { authorizationUrl } = await client.request("mcpServer/oauth/login", { name });
    if (/^https?:/i.test(authorizationUrl)) window.open(authorizationUrl, "_blank", "noopener");
  });
  return html`<section class="card"><h2>MCP servers</h2>
    ${answer?.error && html`<p class="problem">${answer.error.message}</p>`}
    ${answer?.result && !answer.result.data.length && html`<p class="hint">None. Add one with <code>loomd mcp add</code>.</p>`}
    <dl>${(answer?.result?.data ?? []).map((server) => html`<div key=${server.name}><dt>${server.name}</dt><dd class=${server.toolsError ? "problem" : null}>${server.toolsError ?? `${Object.keys(server.tools).length} tools`}
      ${server.authStatus === "notLoggedIn" && html` <button onClick=${() => login(server.name)}>Sign in</button>`}</dd></div>`)}</dl>
    ${state.mayDrive.value && html`<button onClick=${reload}>Reload</button>`}
  </section>`;
}
