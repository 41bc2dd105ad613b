// The server is killed in the middle of streams and started again, and connections break without it: nothing is lost or
// shown twice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, call, connected, idle, launch, openPage, say, shownAndStored, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "on-request"\nsandbox_mode = "workspace-write"\n');
let browser, page;
before(async () => {
  const link = await server.start();
  browser = await launch();
  page = await openPage(browser, link);
  // The answers to `thread/resume`, as they come.
  await page.evaluate(async () => {
    const { client } = await import("/console/src/live.js");
    const request = client.request.bind(client);
    window.replays = [];
    client.request = async (method, params) => {
      const answer = await request(method, params);
      if (method === "thread/resume") window.replays.push(answer.replay ?? null);
      return answer;
    };
  });
});
after(async () => {
  await browser?.close();
  await server.close();
});

/** A message of the agent, and not the one that asked for it. */
const answer = (text) => transcript(page).getByRole("article", { name: "Message" }).filter({ hasText: text, hasNotText: "slowly" });
const reconnecting = () => page.getByRole("status", { name: "Connection" }).filter({ hasText: "reconnecting" }).waitFor();
const words = (letter, count) => Array.from({ length: count }, (_, index) => `${letter}${index}${letter}`);

async function drop() {
  await page.evaluate(async () => {
    const { client } = await import("/console/src/live.js");
    client.drop(client.socket);
  });
  await connected(page);
}

/** Ends a turn that runs, or that a server takes up again. */
async function settle() {
  const interrupt = page.getByRole("button", { name: "Interrupt" });
  if (await interrupt.count()) await interrupt.click({ timeout: 2000 }).catch(() => {});
  await idle(page);
}

async function checkSame() {
  const { shown, stored } = await shownAndStored(page);
  assert.deepEqual(shown, stored);
}

test("a server that is killed again and again is found again, with everything that was finished, once", async () => {
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "say alpha");
  await answer(/^alpha/).waitFor();
  await idle(page);
  for (const round of ["one", "two", "three"]) {
    await say(page, `run \`echo ${round}\`\nslowly\nsay ${words(round, 400).join(" ")}`);
    await answer(new RegExp(`${round}3${round}`)).waitFor();
    await server.kill();
    await reconnecting();
    await page.getByRole("textbox", { name: "Message" }).fill(`kept ${round}`);
    await server.start();
    await connected(page);
    assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), `kept ${round}`);
    await settle();
    await checkSame();
  }
  const { shown } = await shownAndStored(page);
  for (const round of ["one", "two", "three"]) assert.equal(shown.filter((item) => item.startsWith("commandExecution") && item.includes(`echo ${round}`)).length, 1, round);
  assert.equal(shown.filter((item) => item.startsWith("agentMessage alpha")).length, 1);
});

test("a turn that the restarted server takes up shows each word once; another one shows as interrupted", async () => {
  const expected = words("t", 60);
  await say(page, `slowly\nsay ${expected.join(" ")}`);
  await answer("t3t").waitFor();
  await server.kill();
  await reconnecting();
  await server.start();
  await connected(page);
  await idle(page);
  await checkSame();
  const { shown } = await shownAndStored(page);
  const said = shown.filter((item) => item.startsWith("agentMessage t0t")).flatMap((item) => item.match(/t\d+t/g));
  const interrupted = await page.evaluate(async () => (await import("/console/src/state.js")).open.peek().rows.peek().at(-1).item.peek().status === "interrupted");
  assert.ok(interrupted || said.length === expected.length, said.join(" "));
  assert.deepEqual(said, expected.slice(0, said.length));
});

test("the session goes on after the restarts", async () => {
  await say(page, "say charlie");
  await answer(/^charlie/).waitFor();
  await idle(page);
  await checkSame();
});

test("a connection that breaks again and again replays what was missed, and nothing twice", async () => {
  const expected = words("x", 120);
  await page.evaluate(() => (window.replays = []));
  await say(page, `slowly\nsay ${expected.join(" ")}`);
  for (const word of ["x5x", "x20x", "x40x", "x60x"]) {
    await answer(word).waitFor();
    await drop();
  }
  await idle(page);
  const text = await transcript(page).getByRole("article", { name: "Message" }).last().innerText();
  assert.deepEqual(text.match(/x\d+x/g), expected);
  assert.deepEqual(await page.evaluate(() => window.replays), ["complete", "complete", "complete", "complete"]);
  await checkSame();
});

test("an approval that is open when the connection breaks stays, with what was typed", async () => {
  await say(page, "run `touch one` without the sandbox\nsay after the break");
  const approval = page.getByRole("group", { name: "Approval" });
  await approval.getByRole("textbox", { name: "What to do instead" }).fill("half a word");
  await drop();
  await approval.waitFor();
  assert.equal(await approval.getByRole("textbox", { name: "What to do instead" }).inputValue(), "half a word");
  // The request has an old id when it is sent again; a second break must not replay from there.
  await drop();
  await approval.getByRole("button", { name: "Allow once" }).click();
  await answer(/^after the break/).waitFor();
  await idle(page);
  await checkSame();
});

test("an approval that was open when the server was killed is not left behind", async () => {
  await say(page, "run `touch two` without the sandbox\nsay decided");
  const approval = page.getByRole("group", { name: "Approval" });
  await approval.waitFor();
  await server.kill();
  await reconnecting();
  await server.start();
  await connected(page);
  await settle();
  await approval.waitFor({ state: "detached" });
  await checkSame();
});

test("a message that was sent into a broken connection is sent once", async () => {
  const threadId = await page.evaluate(async () => (await import("/console/src/state.js")).open.peek().id);
  await page.getByRole("textbox", { name: "Message" }).fill("say only once");
  // The request leaves, and its answer never comes.
  await page.evaluate(async () => {
    const { client } = await import("/console/src/live.js");
    const socket = client.socket;
    const send = client.send.bind(client);
    client.send = (message) => {
      send(message);
      if (message.method !== "turn/start") return;
      client.send = send;
      client.drop(socket);
    };
  });
  await page.getByRole("button", { name: "Send" }).click();
  await connected(page);
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "say only once");
  await idle(page);
  await page.getByRole("button", { name: "Send" }).click();
  await page.waitForFunction(() => document.getElementById("message").value === "");
  await idle(page);
  const turns = await call(page, "thread/turns/list", { threadId, limit: 10, sortDirection: "desc", itemsView: "full" });
  const sent = turns.data.flatMap((turn) => turn.items).filter((item) => item.type === "userMessage" && item.content[0].text === "say only once");
  assert.equal(sent.length, 1);
  await checkSame();
});

test("no script failed", () => assert.deepEqual(page.problems.filter((one) => one.startsWith("error")), []));
