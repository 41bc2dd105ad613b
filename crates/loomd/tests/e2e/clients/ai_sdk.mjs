// Uses the AI SDK's provider of this protocol with its own version check, and prints what came of it as JSON.
//
// Arguments: the folder with node_modules, the program, its home, the user's home, a working directory.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, program, home, userHome, work] = process.argv.slice(2);
const entry = join(modules, "ai-sdk-provider-codex-cli/dist/index.js");
const { createCodexAppServer } = await import(pathToFileURL(entry));
const env = { PATH: process.env.PATH, CODEX_HOME: home, HOME: userHome };
const provider = createCodexAppServer({ defaultSettings: { codexPath: program, cwd: work, env, autoApprove: true } });
const model = provider("mock-model");
const prompt = (text) => [{ role: "user", content: [{ type: "text", text }] }];
const persistent = { "codex-app-server": { threadMode: "persistent" } };
const told = {};

told.models = (await provider.listModels()).models.length;
const first = await model.doGenerate({ prompt: prompt("first"), providerOptions: persistent });
told.first = first.content.filter((part) => part.type === "text").map((part) => part.text).join("");
const { threadId } = first.providerMetadata["codex-app-server"];
const { stream } = await model.doStream({
  prompt: prompt("second"),
  providerOptions: { "codex-app-server": { threadId } },
});
const parts = [];
for await (const part of stream) parts.push(part);
told.second = parts.filter((part) => part.type === "text-delta").map((part) => part.delta).join("");
told.finish = parts.at(-1).type;
told.sameThread = parts.at(-1).providerMetadata["codex-app-server"].threadId === threadId;
const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"], additionalProperties: false };
const third = await model.doGenerate({ prompt: prompt("third"), responseFormat: { type: "json", schema } });
told.third = JSON.parse(third.content.find((part) => part.type === "text").text);
await provider.close();
console.log(JSON.stringify(told));
