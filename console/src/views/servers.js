// MCP servers: their tools, problems and sign-ins.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { attempt } from "../actions.js";
import { useAnswer } from "./settings.js";

export function Servers() {
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
      ${server.authStatus === "notLoggedIn" && state.mayDrive.value && html` <button onClick=${() => login(server.name)}>Sign in</button>`}</dd></div>`)}</dl>
    ${state.mayDrive.value && html`<button onClick=${reload}>Reload</button>`}
  </section>`;
}
