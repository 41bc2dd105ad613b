// A command with its folded output.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { Decided } from "./decided.js";

/** Characters of output that are drawn at first. */
const SHOWN = 20_000;

export function Command({ item, model }) {
  const asked = item.status === "inProgress" && [...state.requests.value.values()].some((request) => request.params.itemId === item.id);
  const running = item.status === "inProgress" && !asked;
  const failed = item.status === "failed" || (item.exitCode ?? 0) !== 0;
  const [open, setOpen] = useState(null);
  const shown = open ?? running;
  const output = item.aggregatedOutput ?? "";
  return html`<article class=${`command ${running ? "running" : failed ? "failed" : ""}`} aria-label="Command">
    <button class="plain foldline" aria-expanded=${shown} onClick=${() => setOpen(!shown)}>
      <span class="chevron" aria-hidden="true"></span><code class="line1"><span class="prompt" aria-hidden="true">$ </span>${unwrap(item.command)}</code>
      <span class="hint">${asked ? "waits for approval" : outcome(item)}</span>
    </button>
    ${shown && html`<${Output} text=${output} running=${running} />`}
    <${Decided} item=${item} model=${model} />
  </article>`;
}

function Output({ text, running }) {
  const [all, setAll] = useState(false);
  if (!text) return html`<p class="hint pad">${running ? "no output yet" : "no output"}</p>`;
  const cut = !all && text.length > SHOWN;
  return html`<pre class="output" tabindex="0" aria-label="Output">${cut ? `…${text.slice(-SHOWN)}` : text}</pre>
    ${cut && html`<button class="plain" onClick=${() => setAll(true)}>Show all ${Math.round(text.length / 1024)} KB</button>`}`;
}

/** The script of a shell's command line, as it was meant. */
export function unwrap(command) {
  const script = command?.match(/^(?:\/\S*\/)?(?:ba|z|da)?sh -l?c (.*)$/s)?.[1];
  if (!script) return command;
  const quoted = script.match(/^'(.*)'$/s) ?? script.match(/^"(.*)"$/s);
  return quoted ? quoted[1].replaceAll("'\\''", "'") : script;
}

function outcome(item) {
  if (item.status === "inProgress") return "running";
  if (item.status === "declined") return "declined";
  const time = item.durationMs == null ? "" : item.durationMs < 1000 ? `${item.durationMs} ms` : `${(item.durationMs / 1000).toFixed(1)} s`;
  return item.exitCode ? `exit ${item.exitCode} · ${time}` : time;
}
