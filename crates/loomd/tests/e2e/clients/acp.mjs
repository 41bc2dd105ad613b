// Drives codex-acp, the ACP agent that editors start, as an editor would, and prints what came of it as JSON.
//
// Arguments: the folder with node_modules, the program, its home, the user's home, a working directory.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";

const [modules, program, home, userHome, work] = process.argv.slice(2);
const env = { PATH: process.env.PATH, CODEX_HOME: home, HOME: userHome, CODEX_PATH: program, NO_BROWSER: "1" };
const agent = spawn(process.execPath, [join(modules, "@agentclientprotocol/codex-acp/dist/index.js")], {
  env,
  stdio: ["pipe", "pipe", "inherit"],
});
const updates = [];
const asked = [];
const waiting = new Map();
const send = (message) => agent.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
createInterface({ input: agent.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === "session/update") updates.push(message.params.update);
  else if (message.method === "session/request_permission") {
    asked.push(message.params.options.map((option) => option.kind));
    const { optionId } = message.params.options.find((option) => option.kind === "allow_once");
    send({ id: message.id, result: { outcome: { outcome: "selected", optionId } } });
  } else if (message.method) {
    if (message.id !== undefined) send({ id: message.id, error: { code: -32601, message: "not offered" } });
  } else if (message.error) waiting.get(message.id)[1](new Error(JSON.stringify(message.error)));
  else waiting.get(message.id)[0](message.result);
});
let id = 0;
const request = (method, params) =>
  new Promise((...ends) => {
    waiting.set(++id, ends);
    send({ id, method, params });
  });
const told = {};
const taken = (kind) => updates.filter((update) => update.sessionUpdate === kind);
const texts = (kind) => taken(kind).map((update) => update.content?.text ?? "").join("");

const initialized = await request("initialize", { protocolVersion: 1, clientCapabilities: {} });
told.loads = initialized.agentCapabilities.loadSession;
const session = await request("session/new", { cwd: work, mcpServers: [] });
const { sessionId } = session;
told.modes = session.modes.availableModes.map((mode) => mode.id);
const prompt = (text) => request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
const setMode = (modeId) => request("session/set_mode", { sessionId, modeId });
await setMode("workspace-write");
told.first = (await prompt("first")).stopReason;
told.answer = texts("agent_message_chunk");
told.asked = asked.length;
told.tools = taken("tool_call").map((update) => update.kind);
for (const modeId of told.modes) await setMode(modeId);
updates.length = 0;
told.second = [(await prompt("second")).stopReason, texts("agent_message_chunk")];
updates.length = 0;
await request("session/load", { sessionId, cwd: work, mcpServers: [] });
told.loaded = [texts("user_message_chunk"), texts("agent_message_chunk")];
console.log(JSON.stringify(told));
agent.kill();
process.exit(0);
