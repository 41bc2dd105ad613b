// Turns: the first start, items of every kind, steering, interrupting, threads of the list.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, idle, launch, openPage, say, shoot, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "never"\nsandbox_mode = "workspace-write"\n');
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

test("the first start asks for a folder and a message", async () => {
  await page.getByRole("textbox", { name: "Folder" }).waitFor();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  assert.equal(new URL(page.url()).hash, "", "the link's code is gone from the address");
  await shoot(page, "first-start");
});

test("a turn shows its plan, command, change and message", async () => {
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, 'think about it\nplan Look, Write\nrun `echo one two`\nwrite notes.md with "# Notes"\nsay The *end* of it.');
  const log = transcript(page);
  await log.getByText("The end of it.").waitFor();
  await idle(page);
  for (const kind of ["Message", "Reasoning", "Plan", "Command", "Change"]) await log.getByRole("article", { name: kind }).first().waitFor();
  assert.equal(await log.getByRole("list", { name: "Plan" }).getByRole("listitem").count(), 2);
  await log.getByRole("article", { name: "Command" }).getByRole("button").click();
  await log.getByLabel("Output").filter({ hasText: "one two" }).waitFor();
  const changes = page.getByRole("region", { name: "Changes" });
  await changes.getByText("# Notes").waitFor();
  await page.getByRole("status", { name: "Usage" }).filter({ hasText: "tokens" }).waitFor();
  await shoot(page, "turn");
});

test("a thread of the list has its first words and its state", async () => {
  const nav = page.getByRole("navigation", { name: "Threads" });
  await nav.getByRole("link", { name: "think about it" }).waitFor();
});

test("a message steers the running turn, and Interrupt ends it", async () => {
  await say(page, "run `sleep 300`\nsay never");
  await transcript(page).getByText("sleep 300").last().waitFor();
  await page.getByRole("navigation", { name: "Threads" }).locator("li.running").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("say steered");
  await page.getByRole("textbox", { name: "Message" }).press("Enter");
  await page.getByRole("button", { name: "Interrupt" }).click();
  await transcript(page).getByRole("article", { name: "Interrupted" }).waitFor();
  await idle(page);
});

test("messages that are queued while a turn runs can be reordered and removed", async () => {
  await say(page, "run `sleep 300`");
  await page.getByRole("button", { name: "Interrupt" }).waitFor();
  for (const text of ["say first", "say second"]) {
    await page.getByRole("textbox", { name: "Message" }).fill(text);
    await page.getByRole("button", { name: "Queue", exact: true }).click();
    await page.getByRole("region", { name: "Queue" }).getByText(text).waitFor();
  }
  const queue = page.getByRole("region", { name: "Queue" });
  await queue.getByRole("button", { name: "Later" }).first().click();
  await queue.getByRole("listitem").first().filter({ hasText: "say second" }).waitFor();
  await queue.getByRole("button", { name: "Remove from the queue" }).first().click();
  await queue.getByText("say second").waitFor({ state: "detached" });
  await queue.getByRole("button", { name: "Remove from the queue" }).click();
  await queue.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Interrupt" }).click();
  await idle(page);
});

test("a failed turn shows its error and can be tried again", async () => {
  await say(page, "fail with quota");
  await transcript(page).getByRole("article", { name: "Error" }).waitFor();
  await transcript(page).getByRole("button", { name: "Retry" }).waitFor();
});

test("a draft, the plan and the usage survive a reload", async () => {
  await page.getByRole("textbox", { name: "Message" }).fill("half a thought");
  await page.reload();
  await transcript(page).getByText("The end of it.").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "half a thought");
  assert.equal(await transcript(page).getByRole("list", { name: "Plan" }).count(), 1);
  await page.getByRole("status", { name: "Usage" }).filter({ hasText: "context left" }).waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("");
});

test("search finds a thread by its text", async () => {
  await page.getByRole("searchbox", { name: "Search threads" }).fill("Notes");
  await page.getByRole("navigation", { name: "Threads" }).getByRole("link").first().waitFor();
  await page.getByRole("searchbox", { name: "Search threads" }).fill("");
});

test("no script failed and nothing left the origin", () => assert.deepEqual(page.problems, []));
