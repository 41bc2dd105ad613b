// Calls of tools: of MCP servers, of the client, of agents, of the provider.
import { html } from "../html.js";
import { Fold } from "../parts/fold.js";
import { openThread } from "../live.js";
import { attempt } from "../actions.js";

const SHOWN = 20_000;
const AGENTS = { spawnAgent: "Started an agent", sendInput: "Wrote to an agent", wait: "Waited for agents", closeAgent: "Closed an agent", resumeAgent: "Resumed an agent" };

export function Tool({ item }) {
  const agents = item.receiverThreadIds ?? [];
  return html`<article class=${`tool ${item.status ?? ""}`} aria-label=${item.type === "webSearch" ? "Search" : "Tool call"}>
    <${Fold} label=${labelOf(item)} hint=${item.error?.message ?? item.status ?? ""}>
      ${item.arguments !== undefined && html`<pre tabindex="0" aria-label="Arguments">${show(item.arguments)}</pre>`}
      ${item.prompt && html`<p>${item.prompt}</p>`}
      ${(item.result ?? item.contentItems ?? item.output) != null && html`<pre tabindex="0" aria-label="Result">${show(item.result ?? item.contentItems ?? item.output)}</pre>`}
    <//>
    ${agents.map((id) => html`<button class="plain agent" key=${id} onClick=${() => attempt(() => openThread(id))}>↳ agent ${id.slice(-6)} <span class="hint">${item.agentsStates?.[id]?.status ?? ""}</span></button>`)}
  </article>`;
}

function labelOf(item) {
  if (item.type === "webSearch") return `Search: ${item.query}`;
  if (item.type === "collabAgentToolCall") return AGENTS[item.tool] ?? `Agents: ${item.tool}`;
  return [item.server ?? item.namespace, item.tool ?? item.name].filter(Boolean).join(" · ");
}

function show(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
