// Tokens, context left, price, budget and rate limits, in one line.
import { html } from "../html.js";
import * as state from "../state.js";

export function Usage({ model }) {
  const usage = model.usage.value;
  const parts = [];
  if (usage) {
    parts.push(`${short(usage.total.totalTokens)} tokens`);
    const window = usage.modelContextWindow;
    if (window) parts.push(`${Math.max(0, Math.round(100 - (100 * usage.last.totalTokens) / window))}% context left`);
  } else if (tokensOf(model)) parts.push(`${short(tokensOf(model))} tokens`);
  const price = model.spent.value?.estimatedUsageUsdMicros;
  if (price != null) parts.push(dollars(price / 1e6));
  const budget = budgetUsed(model);
  if (budget !== null) parts.push(`${budget}% of the budget`);
  const limit = state.rateLimits.value?.primary;
  if (limit && limit.usedPercent > 0) parts.push(`limit ${Math.round(limit.usedPercent)}% used`);
  return html`<div class="usage" role="status" aria-label="Usage">${parts.join(" · ")}</div>`;
}

/** How much of the thread's own budget is used, in percent; null without one. */
function budgetUsed(model) {
  const budget = state.read(`budget.${model.id}`, null);
  const spent = model.spent.value;
  if (!budget || !spent) return null;
  const parts = [budget.tokens && tokensOf(model) / budget.tokens, budget.dollars && (spent.estimatedUsageUsdMicros ?? 0) / 1e6 / budget.dollars].filter((part) => part != null);
  return parts.length ? Math.min(999, Math.round(100 * Math.max(...parts))) : null;
}

/** All tokens of the thread, as the server has metered them. */
const tokensOf = (model) => model.spent.value?.groups.reduce((sum, group) => sum + (group.totalTokens ?? 0), 0) ?? 0;

export const dollars = (amount) => `$${amount < 0.995 ? amount.toFixed(amount < 0.01 ? 4 : 2) : amount.toFixed(2)}`;

export function short(count) {
  if (count < 1000) return String(count);
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}
