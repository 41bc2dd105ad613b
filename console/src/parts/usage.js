// Tokens, context left and rate limits, in one line.
import { html } from "../html.js";
import * as state from "../state.js";

export function Usage({ model }) {
  const usage = model.usage.value;
  const parts = [];
  if (usage) {
    parts.push(`${short(usage.total.totalTokens)} tokens`);
    const window = usage.modelContextWindow;
    if (window) parts.push(`${Math.max(0, Math.round(100 - (100 * usage.last.totalTokens) / window))}% context left`);
  }
  const limit = state.rateLimits.value?.primary;
  if (limit && limit.usedPercent > 0) parts.push(`limit ${Math.round(limit.usedPercent)}% used`);
  const detail = usage ? `input ${usage.total.inputTokens}, of it cached ${usage.total.cachedInputTokens}; output ${usage.total.outputTokens}, of it reasoning ${usage.total.reasoningOutputTokens}` : "";
  return html`<div class="usage" role="status" aria-label="Usage" title=${detail}>${parts.join(" · ")}</div>`;
}

export function short(count) {
  if (count < 1000) return String(count);
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}
