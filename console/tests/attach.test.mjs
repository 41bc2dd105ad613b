// A console for a server that runs already.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, idle, launch, openPage, say, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "untrusted"\nsandbox_mode = "workspace-write"\n');
const attached = new Server();
let browser, page;
before(async () => {
  await server.start();
  const link = await attached.start("--attach", `ws://127.0.0.1:${server.port}`);
  browser = await launch();
  page = await openPage(browser, link);
});
after(async () => {
  await browser?.close();
  await attached.close();
  await server.close();
});

test("a turn with an approval runs on the other server", async () => {
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "run `touch there.txt`\nsay it is there");
  await page.getByRole("button", { name: "Allow once" }).click();
  await transcript(page).getByText("it is there", { exact: true }).waitFor();
  await idle(page);
  assert.ok(existsSync(join(server.work, "there.txt")));
  assert.deepEqual(page.problems, []);
});

test("a viewer of an attached console cannot start a turn", async () => {
  const [link] = await attached.run("console", "link", "--no-qr", "--role", "view", "--origin", `http://127.0.0.1:${attached.port}`);
  const viewer = await openPage(browser, link);
  const refusal = await viewer.evaluate(async () => {
    const { client } = await import("/console/src/live.js");
    return client.request("turn/start", { threadId: "x", input: [] }).then(() => "accepted", (error) => error.message);
  });
  assert.equal(refusal, "the role `view` may not call `turn/start`");
});

test("an upstream that is not there is reported", async () => {
  const lost = new Server();
  await assert.rejects(lost.start("--attach", "ws://127.0.0.1:1"), /the server ended/);
  await lost.close();
});
