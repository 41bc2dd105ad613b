// Tokens, price, budgets and rate limits in full.
import { html, useEffect, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { dollars, short } from "../parts/usage.js";

export function UsagePanel({ model }) {
  const usage = model.usage.value;
  const spent = model.spent.value;
  return html`<section class="usage-panel" aria-label="Usage in full">
    <h2>This thread</h2>
    <dl>
      ${usage?.modelContextWindow && html`<${Bar} name="Context" used=${usage.last.totalTokens} most=${usage.modelContextWindow} words=${`${short(usage.last.totalTokens)} of ${short(usage.modelContextWindow)} tokens`} />`}
      ${usage && html`<${Entry} name="Input" value=${usage.total.inputTokens.toLocaleString()} /><${Entry} name="of it cached" value=${usage.total.cachedInputTokens.toLocaleString()} />
        <${Entry} name="Output" value=${usage.total.outputTokens.toLocaleString()} /><${Entry} name="of it reasoning" value=${usage.total.reasoningOutputTokens.toLocaleString()} />`}
      <${Entry} name="Cost" value=${spent?.estimatedUsageUsdMicros == null ? "no price is configured" : dollars(spent.estimatedUsageUsdMicros / 1e6)} />
    </dl>
    ${spent?.groups.length > 0 && html`<h2>By model, agents included</h2><dl>${spent.groups.map((group) => html`<${Entry} key=${group.model} name=${group.model} value=${`${short(group.totalTokens ?? 0)} tokens`} />`)}</dl>`}
    <${Budgets} model=${model} />
    <${Limits} />
  </section>`;
}

const Entry = ({ name, value }) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;

function Bar({ name, used, most, words }) {
  const percent = Math.min(100, Math.round((100 * used) / most));
  return html`<div class="meter"><dt>${name}</dt><dd>${words}<meter min="0" max="100" high="80" optimum="0" value=${percent} aria-label=${`${name}: ${percent}% used`}></meter></dd></div>`;
}

const LIMITS = { tokens: "tokens", dollars: "dollars", model_calls: "model calls", modelCalls: "model calls", tool_calls: "tool calls", toolCalls: "tool calls", seconds: "seconds" };
const limitWords = (budget) => Object.entries(budget ?? {}).filter(([, value]) => value != null).map(([key, value]) => (key === "dollars" ? dollars(value) : `${value.toLocaleString()} ${LIMITS[key] ?? key}`)).join(", ");

/** The budget that this thread was started with, and those of the configuration. */
function Budgets({ model }) {
  const [configured, setConfigured] = useState({});
  useEffect(() => {
    if (state.mayDrive.peek()) client.request("config/read", { includeLayers: false }).then((answer) => setConfigured(answer.config.loomd?.budgets ?? {}), () => {});
  }, []);
  const own = state.read(`budget.${model.id}`, null) ?? configured.thread;
  const spent = model.spent.value;
  const tokens = spent?.groups.reduce((sum, group) => sum + (group.totalTokens ?? 0), 0) ?? 0;
  const rows = [["Each turn", configured.turn], ["A day", configured.day]].filter(([, budget]) => limitWords(budget));
  if (!limitWords(own) && !rows.length) return html`<h2>Budget</h2><p class="hint">None. A thread can be given one when it is started; <code>[loomd.budgets]</code> sets those of all.</p>`;
  return html`<h2>Budget</h2><dl>
    ${own?.tokens != null && html`<${Bar} name="This thread" used=${tokens} most=${own.tokens} words=${`${short(tokens)} of ${short(own.tokens)} tokens`} />`}
    ${own?.dollars != null && html`<${Bar} name="This thread" used=${(spent?.estimatedUsageUsdMicros ?? 0) / 1e6} most=${own.dollars} words=${`${dollars((spent?.estimatedUsageUsdMicros ?? 0) / 1e6)} of ${dollars(own.dollars)}`} />`}
    ${own && own.tokens == null && own.dollars == null && html`<${Entry} name="This thread" value=${limitWords(own)} />`}
    ${rows.map(([name, budget]) => html`<${Entry} key=${name} name=${name} value=${limitWords(budget)} />`)}
  </dl>`;
}

function Limits() {
  const limits = state.rateLimits.value;
  const windows = [limits?.primary, limits?.secondary].filter(Boolean);
  if (!windows.length) return null;
  return html`<h2>Rate limits of the account</h2><dl>${windows.map((window, index) => html`<${Bar} key=${index} name=${span(window.windowDurationMins)} used=${window.usedPercent} most=${100}
    words=${`${Math.round(window.usedPercent)}% used${window.resetsAt ? `, until ${new Date(window.resetsAt * 1000).toLocaleString()}` : ""}`} />`)}</dl>`;
}

const span = (minutes) => (!minutes ? "Limit" : minutes < 1440 ? `${Math.round(minutes / 60)} hours` : `${Math.round(minutes / 1440)} days`);
