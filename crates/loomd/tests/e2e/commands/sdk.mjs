// What a program does with the SDK: a turn, a streamed one, one with a shape, one more in the same thread, and one
// that fails. Prints what came of them as one JSON object.
import { pathToFileURL } from "node:url";

const [entry, executable, home, user, folder] = process.argv.slice(2);
const { Codex } = await import(pathToFileURL(entry).href);
const env = { CODEX_HOME: home, HOME: user, PATH: process.env.PATH };
const options = { workingDirectory: folder, skipGitRepoCheck: true, approvalPolicy: "never", threadSource: "test" };

const codex = new Codex({ codexPathOverride: executable, env, config: { show_raw_agent_reasoning: false } });
const thread = codex.startThread(options);
const turn = await thread.run("first");

const streamed = [];
for await (const event of (await thread.runStreamed("second")).events) streamed.push(event.type);

const outputSchema = {
  type: "object",
  properties: { answer: { type: "number" } },
  required: ["answer"],
  additionalProperties: false,
};
const structured = JSON.parse((await thread.run("third", { outputSchema })).finalResponse);

const again = codex.resumeThread(thread.id, options);
const { finalResponse } = await again.run([{ type: "text", text: "fourth" }]);
const failure = await again.run("fifth").then(() => "", (error) => error.message);

const resumed = { finalResponse, sameThread: again.id === thread.id };
process.stdout.write(JSON.stringify({ turn, streamed, structured, resumed, failure }));
