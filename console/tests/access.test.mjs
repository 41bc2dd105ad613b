// Who may: links, cookies, hosts, origins, roles and revocation, in the browser and beside it.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { Server, another, call, connected, idle, launch, openPage, say, transcript } from "./kit.mjs";

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
const UPGRADE = { connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==" };

/** A request beside the browser, as any program or page could send it. */
const ask = (path, headers = {}, { method = "GET", body } = {}) => new Promise((resolve, reject) => {
  const sent = request({ port: server.port, host: "127.0.0.1", path, method, headers }, (answer) => {
    let text = "";
    answer.setEncoding("utf8").on("data", (piece) => (text += piece)).on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
  });
  sent.on("upgrade", (answer, socket) => (socket.destroy(), resolve({ status: answer.statusCode, headers: answer.headers, text: "" })));
  sent.on("error", reject).end(body);
});
const cookieOf = async (of) => (await of.context().cookies())[0];

test("a link works once", async () => {
  const context = await browser.newContext();
  const stranger = await context.newPage();
  await stranger.goto(link);
  await stranger.getByText("the link was used before").waitFor();
  await context.close();
});

test("the cookie is HttpOnly and SameSite=Strict, and stays when the browser is closed", async () => {
  assert.equal(await page.evaluate(() => document.cookie), "");
  const cookie = await cookieOf(page);
  assert.equal(cookie.httpOnly, true);
  assert.equal(cookie.sameSite, "Strict");
  assert.equal(cookie.path, "/");
  assert.ok(cookie.expires > Date.now() / 1000 + 300 * 24 * 3600);
  assert.equal(page.url(), `${origin()}/`, "the code is not in the address");
});

test("a request for another host is refused, with and without the cookie", async () => {
  const { name, value } = await cookieOf(page);
  const cookie = `${name}=${value}`;
  for (const host of ["evil.example", `evil.example:${server.port}`, "127.0.0.1", `127.0.0.1.evil.example:${server.port}`]) {
    for (const path of ["/", "/console/session", "/console/src/main.js"]) assert.equal((await ask(path, { host, cookie })).status, 403, `${host} ${path}`);
    assert.equal((await ask("/console/socket", { ...UPGRADE, host, origin: `http://${host}`, cookie })).status, 403, host);
  }
});

test("a page of another origin reaches nothing, also with the cookie", async () => {
  const { name, value } = await cookieOf(page);
  const cookie = `${name}=${value}`;
  for (const foreign of ["http://evil.example", "null", `https://127.0.0.1:${server.port}`, "http://127.0.0.1:1"]) {
    assert.equal((await ask("/console/socket", { ...UPGRADE, origin: foreign, cookie })).status, 403, foreign);
    assert.equal((await ask("/", { ...UPGRADE, origin: foreign, cookie })).status, 403, foreign);
    assert.equal((await ask("/console/session", { origin: foreign, cookie }, { method: "POST", body: '{"code":"x"}' })).status, 403, foreign);
  }
  assert.equal((await ask("/console/socket", { ...UPGRADE, cookie })).status, 403, "without an origin");
  assert.equal((await ask("/console/socket", { ...UPGRADE, origin: origin(), cookie })).status, 101, "the page's own");
});

test("without a cookie, or with a wrong one, there is no websocket", async () => {
  const { name, value } = await cookieOf(page);
  for (const cookie of ["", `${name}=`, `${name}=${value.slice(0, -1)}`, `${name}=${value.split(".")[0]}.guess`]) {
    assert.equal((await ask("/console/socket", { ...UPGRADE, origin: origin(), cookie })).status, 401, cookie);
    assert.equal((await ask("/console/session", { cookie })).status, 401, cookie);
  }
});

test("every answer keeps the page to its origin", async () => {
  for (const path of ["/", "/console/src/main.js", "/console/style/base.css", "/console/nothing", "/console/session"]) {
    const { headers } = await ask(path);
    assert.match(headers["content-security-policy"], /^default-src 'self'; script-src 'self';/, path);
    assert.match(headers["content-security-policy"], /frame-ancestors 'none'/, path);
    assert.equal(headers["x-content-type-options"], "nosniff", path);
    assert.equal(headers["referrer-policy"], "no-referrer", path);
  }
});

test("a viewer follows a turn and can neither send nor approve", async () => {
  const viewer = await another(browser, server, "view");
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "run `touch seen.txt`");
  await page.getByRole("group", { name: "Approval" }).waitFor();
  await viewer.getByRole("navigation", { name: "Threads" }).getByRole("link").first().click();
  await viewer.getByRole("group", { name: "Approval" }).getByText("touch seen.txt").first().waitFor();
  assert.equal(await viewer.getByRole("button", { name: "Allow once" }).count(), 0);
  assert.equal(await viewer.getByRole("textbox", { name: "Message" }).count(), 0);
  for (const method of ["turn/start", "thread/start", "thread/delete", "fs/readFile", "command/exec", "config/value/write", "account/logout", "thread/readState/update"]) {
    assert.equal((await call(viewer, method)).message, `the role \`view\` may not call \`${method}\``);
  }
  // An answer to the approval, as a page that was tampered with could send it, has no effect.
  await viewer.evaluate(async () => {
    const [{ client }, { requests }] = await Promise.all([import("/console/src/live.js"), import("/console/src/state.js")]);
    for (const id of requests.peek().keys()) client.answer(id, { decision: "accept" });
    await client.request("thread/loaded/list", {});
  });
  await page.getByRole("group", { name: "Approval" }).waitFor();
  const approver = await another(browser, server, "approve");
  await approver.getByRole("navigation", { name: "Threads" }).getByRole("link").first().click();
  assert.equal((await call(approver, "turn/start")).message, "the role `approve` may not call `turn/start`");
  await approver.getByRole("button", { name: "Allow once" }).click();
  await idle(page);
  for (const one of [viewer, page]) await transcript(one).getByText("Done.").waitFor();
});

test("sessions stay valid over restarts, until they are revoked one by one or all", async () => {
  const kept = await cookieOf(page);
  await server.kill();
  await server.start();
  await connected(page);
  await page.reload();
  await connected(page);
  assert.equal((await cookieOf(page)).value, kept.value);
  const viewer = await another(browser, server, "view");
  const id = (await cookieOf(viewer)).value.split(".")[0];
  assert.ok((await server.run("console", "links")).some((line) => line.startsWith(id) && line.includes("view")));
  await server.run("console", "revoke", id);
  await viewer.getByText("This session was revoked.").waitFor();
  await page.getByRole("status", { name: "Connection" }).filter({ hasText: /^connected$/ }).waitFor();
  await server.run("console", "revoke", "--all");
  await page.getByText("This session was revoked.").waitFor();
  await page.reload();
  await page.getByText("loomd console link").first().waitFor();
});
