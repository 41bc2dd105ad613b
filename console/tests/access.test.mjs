// Links, roles and revocation, in the browser and beside it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, idle, launch, openPage, say, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "untrusted"\nsandbox_mode = "workspace-write"\n');
let browser, page, link;
before(async () => {
  link = await server.start();
  browser = await launch();
  page = await openPage(browser, link);
});
after(async () => {
  await browser?.close();
  await server.close();
});
const origin = () => `http://127.0.0.1:${server.port}`;
const makeLink = async (role) => (await server.run("console", "link", "--no-qr", "--role", role, "--origin", origin()))[0];

test("a link works once", async () => {
  const context = await browser.newContext();
  const stranger = await context.newPage();
  await stranger.goto(link);
  await stranger.getByText("the link was used before").waitFor();
  await context.close();
});

test("scripts cannot read the cookie", async () => assert.equal(await page.evaluate(() => document.cookie), ""));

test("a request for another host is refused, and so is a websocket without a cookie", async () => {
  const { request } = await import("node:http");
  const status = (path, headers) => new Promise((resolve, reject) => {
    request({ port: server.port, host: "127.0.0.1", path, headers }, (answer) => resolve(answer.resume().statusCode)).on("error", reject).end();
  });
  assert.equal(await status("/", { host: "evil.example" }), 403);
  const upgrade = { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==" };
  assert.equal(await status("/console/socket", { ...upgrade, origin: origin() }), 401);
  assert.equal(await status("/console/socket", { ...upgrade, origin: "http://evil.example" }), 403);
  assert.equal(await status("/", { ...upgrade, origin: "http://evil.example" }), 403);
});

test("a viewer follows a turn and can neither send nor approve", async () => {
  const viewer = await openPage(browser, await makeLink("view"));
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "run `touch seen.txt`");
  await page.getByRole("group", { name: "Approval" }).waitFor();
  await viewer.getByRole("navigation", { name: "Threads" }).getByRole("link").first().click();
  await viewer.getByRole("group", { name: "Approval" }).getByText("touch seen.txt").first().waitFor();
  assert.equal(await viewer.getByRole("button", { name: "Allow once" }).count(), 0);
  assert.equal(await viewer.getByRole("textbox", { name: "Message" }).count(), 0);
  const refusal = await viewer.evaluate(async () => {
    const { client } = await import("/console/src/live.js");
    return client.request("turn/start", { threadId: "x", input: [] }).then(() => "accepted", (error) => error.message);
  });
  assert.equal(refusal, "the role `view` may not call `turn/start`");
  const approver = await openPage(browser, await makeLink("approve"));
  await approver.getByRole("navigation", { name: "Threads" }).getByRole("link").first().click();
  await approver.getByRole("button", { name: "Allow once" }).click();
  await idle(page);
  for (const one of [viewer, page]) await transcript(one).getByText("Done.").waitFor();
});

test("a session that is revoked ends", async () => {
  await server.run("console", "revoke", "--all");
  await page.getByText("This session was revoked.").waitFor();
});
