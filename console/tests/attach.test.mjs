// A console for a server that runs already, at a websocket, behind TLS, or on a unix socket.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createServer } from "node:tls";
import { Server, another, call, idle, launch, openPage, say, transcript } from "./kit.mjs";

const CONFIG = 'approval_policy = "untrusted"\nsandbox_mode = "workspace-write"\n';
const TLS = new URL("../../crates/testkit/src/tls/", import.meta.url);
const server = new Server(CONFIG);
const local = new Server(CONFIG);
const attached = [];
let browser, page;
before(async () => {
  await server.start();
  browser = await launch();
  page = await openPage(browser, await attach(`ws://127.0.0.1:${server.port}`));
});
after(async () => {
  await browser?.close();
  for (const one of [...attached, local, server]) await one.close();
});

async function attach(url, env = {}) {
  const one = new Server();
  attached.push(one);
  one.more = env;
  return one.start("--attach", url);
}

async function runs(on, where, name) {
  await on.getByRole("textbox", { name: "Folder" }).fill(where.work);
  await say(on, `run \`touch ${name}\`\nsay it is there`);
  await on.getByRole("button", { name: "Allow once" }).click();
  await transcript(on).getByText("it is there", { exact: true }).waitFor();
  await idle(on);
  assert.ok(existsSync(join(where.work, name)));
  assert.deepEqual(on.problems, []);
}

test("a turn with an approval runs on the other server", () => runs(page, server, "there.txt"));

test("a viewer of an attached console cannot start a turn", async () => {
  const viewer = await another(browser, attached[0], "view");
  assert.equal((await call(viewer, "turn/start", { threadId: "x", input: [] })).message, "the role `view` may not call `turn/start`");
});

test("a server behind TLS is reached if its certificate is trusted", async () => {
  const proxy = createServer({ cert: readFileSync(new URL("localhost.pem", TLS)), key: pem(readFileSync(new URL("localhost.key.der", TLS))) }, (socket) => {
    const inner = connect(server.port, "127.0.0.1");
    for (const one of [socket, inner]) one.on("error", () => (socket.destroy(), inner.destroy()));
    socket.pipe(inner).pipe(socket);
  });
  proxy.on("tlsClientError", () => {});
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const url = `wss://localhost:${proxy.address().port}`;
  try {
    await assert.rejects(attach(url), /the server ended/);
    const link = await attach(url, { SSL_CERT_FILE: new URL("localhost.pem", TLS).pathname });
    const secure = await openPage(browser, link);
    await runs(secure, server, "secure.txt");
    await secure.context().close();
  } finally {
    proxy.close();
  }
});

const pem = (der) => `-----BEGIN PRIVATE KEY-----\n${der.toString("base64").match(/.{1,64}/g).join("\n")}\n-----END PRIVATE KEY-----\n`;

test("a server on a unix socket is reached", async () => {
  const path = join(local.root, "s");
  await local.listen(`unix://${path}`);
  const other = await openPage(browser, await attach(`unix://${path}`));
  await runs(other, local, "socket.txt");
});

test("an upstream that is not there, or no address, is reported", async () => {
  await assert.rejects(attach("ws://127.0.0.1:1"), /the server ended/);
  await assert.rejects(attach("unix:///nowhere/at/all"), /the server ended/);
  await assert.rejects(attach("http://127.0.0.1:1"), /the server ended/);
});
