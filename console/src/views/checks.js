// What `loomd doctor` knows, asked over the protocol: configuration, provider, sandbox, MCP servers, and whether the
// model answers.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { attempt } from "../actions.js";
import { cwds } from "./settings.js";

const SIGN = { pass: "✓", warn: "!", fail: "×" };
const WORDS = { pass: "fine", warn: "warning", fail: "problem" };

export function Checks() {
  const [findings, setFindings] = useState(null);
  const [busy, setBusy] = useState(false);
  const run = (checks) => attempt(async () => {
    setBusy(true);
    const before = checks === ALL ? [] : (findings ?? []);
    setFindings(before);
    try {
      const found = [...before];
      for (const check of checks) {
        found.push(...(await check().catch((error) => [["fail", error.message]])));
        setFindings([...found]);
      }
    } finally {
      setBusy(false);
    }
  });
  return html`<section class="card"><h2>Checks</h2>
    ${!findings && html`<p class="hint">The configuration, the sandbox and the MCP servers, as <code>loomd doctor</code> checks them.</p>`}
    <ul aria-label="Findings">${(findings ?? []).map(([kind, text], index) => html`<li class=${`finding ${kind}`} key=${index}><span class="sign" aria-hidden="true">${SIGN[kind]}</span><span class="sr">${WORDS[kind]}: </span><span>${text}</span></li>`)}</ul>
    <div class="decisions"><button disabled=${busy} onClick=${() => run(ALL)}>Check</button><button disabled=${busy} title="Sends one short prompt" onClick=${() => run([model])}>Ask the model</button></div>
  </section>`;
}

async function configuration() {
  const { config, layers } = await client.request("config/read", { includeLayers: true, cwd: cwds()[0] ?? null });
  const files = (layers ?? []).map((layer) => layer.name?.file ?? layer.name?.dotCodexFolder).filter(Boolean);
  const provider = config.model_providers?.[config.model_provider];
  return [
    ...(files.length ? files.map((file) => ["pass", file]) : [["pass", "no config.toml; defaults are used"]]),
    ...state.configWarnings.peek().map((warning) => ["warn", warning.summary]),
    ["pass", `provider ${config.model_provider ?? "openai"}${provider?.env_key ? `, with the key in ${provider.env_key}` : ""}`],
    ["pass", `approvals: ${typeof config.approval_policy === "string" ? config.approval_policy : "the default"}; sandbox: ${config.sandbox_mode ?? "the default of the folder"}`],
  ];
}

async function account() {
  const { account: found, requiresOpenaiAuth } = await client.request("account/read", { refreshToken: false });
  if (found) return [["pass", "signed in to an OpenAI account"]];
  return [requiresOpenaiAuth ? ["fail", "the provider needs an account, and nobody is signed in"] : ["pass", "not signed in to an OpenAI account, which the provider does not need"]];
}

/** Commands that must succeed, and some that must not. */
async function sandbox() {
  const cwd = cwds()[0];
  /** @type {import("protocol").SandboxPolicy} */
  const policy = { type: "readOnly", networkAccess: false };
  const succeeds = async (script) => (await client.request("command/exec", { command: ["sh", "-c", script], sandboxPolicy: policy, timeoutMs: 10_000, ...(cwd ? { cwd } : {}) })).exitCode === 0;
  if (!(await succeeds("true"))) return [["fail", "no sandbox is available here; commands run only with full access"]];
  const leak = await succeeds('f=".loomd-check-$$"; touch "$f" && rm "$f"');
  return [["pass", "commands run in the sandbox"], leak ? ["warn", "they can write where they should only read"] : ["pass", "they cannot write where they should only read"]];
}

async function servers() {
  const { data } = await client.request("mcpServerStatus/list", {});
  return data.map((server) => (server.toolsError ? ["fail", `${server.name}: ${server.toolsError}`] : server.authStatus === "notLoggedIn" ? ["warn", `${server.name}: not signed in`] : ["pass", `${server.name}: ${Object.keys(server.tools).length} tools`]));
}

const ALL = [configuration, account, sandbox, servers];

/** A minimal turn in a thread that is not kept. */
async function model() {
  const started = await client.request("thread/start", { ephemeral: true, approvalPolicy: "never", sandbox: "read-only", ...(cwds()[0] ? { cwd: cwds()[0] } : {}) });
  const began = performance.now();
  const threadId = started.thread.id;
  const ended = client.next((method, params) => method === "turn/completed" && params.threadId === threadId);
  /** @type {import("protocol").UserInput[]} */
  const input = [{ type: "text", text: "Reply with the one word: ready. Use no tools.", text_elements: [] }];
  const [, { turn }] = await Promise.all([client.request("turn/start", { threadId, input }), ended]);
  client.request("thread/unsubscribe", { threadId }).catch(() => {});
  const which = `${started.model} of ${started.modelProvider}`;
  return [turn.status === "completed" ? ["pass", `${which} answers in ${((performance.now() - began) / 1000).toFixed(1)} s`] : ["fail", `${which}: ${turn.error?.message ?? turn.status}`]];
}
