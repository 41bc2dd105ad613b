// The page beside the websocket of other clients: `app-server --listen ws://… --console`.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { Server, idle, launch, openPage, say, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "never"\nsandbox_mode = "workspace-write"\n');
let browser, page;
before(async () => {
  const link = await server.listen("ws://127.0.0.1:0", "--console");
  browser = await launch();
  page = await openPage(browser, link);
});
after(async () => {
  await browser?.close();
  await server.close();
});

test("a turn runs in the page", async () => {
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "say beside");
  await transcript(page).getByText("beside", { exact: true }).waitFor();
  await idle(page);
  assert.deepEqual(page.problems, []);
});

test("other clients have their websocket on the same port, and no page reaches it", async () => {
  const upgrade = { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==" };
  const status = (headers) => new Promise((resolve, reject) => {
    const sent = request({ port: new URL(page.url()).port, host: "127.0.0.1", path: "/", headers: { ...upgrade, ...headers } }, (answer) => resolve(answer.resume().statusCode));
    sent.on("upgrade", (answer, socket) => (socket.destroy(), resolve(answer.statusCode))).on("error", reject).end();
  });
  assert.equal(await status({}), 101);
  assert.equal(await status({ origin: new URL(page.url()).origin }), 403);
});

test("behind TLS the link is for the origin that was named, and its cookie is Secure", async () => {
  const proxied = new Server();
  try {
    const link = new URL(await proxied.listen("ws://127.0.0.1:0", "--console", "--console-origin", "https://agents.example.org"));
    assert.equal(link.origin, "https://agents.example.org");
    const { port } = new URL(await proxied.address);
    const headers = { host: "agents.example.org", origin: link.origin };
    const answer = await new Promise((resolve, reject) => {
      request({ port, host: "127.0.0.1", path: "/console/session", method: "POST", headers }, (got) => resolve(got.resume())).on("error", reject).end(JSON.stringify({ code: link.hash.slice(1) }));
    });
    assert.equal(answer.statusCode, 200);
    assert.match(answer.headers["set-cookie"][0], /; HttpOnly; SameSite=Strict; .*; Secure$/);
  } finally {
    await proxied.close();
  }
});

test("an address that other machines can reach is refused without a named origin", async () => {
  const open = new Server();
  try {
    await assert.rejects(open.listen("ws://0.0.0.0:0", "--allow-unauthenticated", "--console"), /other machines can reach it; name the origin/);
  } finally {
    await open.close();
  }
});
