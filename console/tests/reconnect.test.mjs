// The server is killed in the middle of a stream and started again: nothing is lost or shown twice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, connected, idle, launch, openPage, say, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "never"\n');
let browser, page;
before(async () => {
  const link = await server.start();
  browser = await launch();
  page = await openPage(browser, link);
});
after(async () => {
  await browser?.close();
  await server.close();
});

/** A message of the agent, and not the one that asked for it. */
const answer = (of, text) => transcript(of).getByRole("article", { name: "Message" }).filter({ hasText: text, hasNotText: "slowly" });

test("a killed server is found again, with what was finished, once", async () => {
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "say alpha");
  await transcript(page).getByText("alpha", { exact: true }).waitFor();
  await idle(page);
  await say(page, "run `echo bravo`\nslowly\nsay " + Array.from({ length: 400 }, (_, index) => `w${index}`).join(" "));
  await answer(page, /\bw3\b/).waitFor();
  await server.kill();
  await page.getByRole("status", { name: "Connection" }).filter({ hasText: "reconnecting" }).waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("kept while away");
  await server.start();
  await connected(page);
  assert.equal(await transcript(page).getByText("alpha", { exact: true }).count(), 1);
  assert.equal(await transcript(page).getByRole("article", { name: "Command" }).count(), 1);
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "kept while away");
});

test("the session goes on after the restart", async () => {
  // A turn that a server takes up again is ended first.
  await page.waitForFunction(() => document.querySelector("#message"));
  const interrupt = page.getByRole("button", { name: "Interrupt" });
  if (await interrupt.count()) await interrupt.click();
  await idle(page);
  await say(page, "say charlie");
  await transcript(page).getByText("charlie", { exact: true }).waitFor();
  await idle(page);
  assert.equal(await transcript(page).getByText("charlie", { exact: true }).count(), 1);
});

test("a broken connection resumes the running stream without a gap or a repeat", async () => {
  const words = Array.from({ length: 60 }, (_, index) => `x${index}y`);
  await say(page, `slowly\nsay ${words.join(" ")}`);
  await answer(page, /x5y/).waitFor();
  await page.evaluate(async () => (await import("/console/src/live.js")).client.socket.close());
  await page.getByRole("status", { name: "Connection" }).filter({ hasText: "reconnecting" }).waitFor();
  await connected(page);
  await idle(page);
  const text = await transcript(page).getByRole("article", { name: "Message" }).last().innerText();
  assert.deepEqual(text.match(/x\d+y/g), words);
});

test("no script failed", () => assert.deepEqual(page.problems.filter((one) => one.startsWith("error")), []));
