// The changes beside the transcript: a tree, colours, two ways to look, and comments that steer.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, audit, idle, launch, openPage, say, shoot, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "never"\nsandbox_mode = "workspace-write"\n[loomd]\nscenario = "scenario.jsonl"\n');
mkdirSync(join(server.work, "src/net"), { recursive: true });
writeFileSync(join(server.work, "src/net/link.rs"), 'pub struct Link {\n    name: String,\n    retries: u32,\n}\n');
writeFileSync(join(server.work, "main.py"), 'def main():\n    print("hello")\n');
const PATCH = [
  "*** Begin Patch", "*** Update File: src/net/link.rs", "@@", "     name: String,", "-    retries: u32,", "+    // How often it is tried.", "+    retries: u8,", " }",
  "*** Update File: main.py", "@@", " def main():", '-    print("hello")', '+    print("hello", 42)', "*** Add File: docs/a/notes.md", "+# Notes", "*** End Patch",
].join("\n");
const plan = (...states) => ({ call: "update_plan", arguments: { plan: ["Read the code", "Change the type", "Say what changed"].map((step, index) => ({ step, status: states[index] })) } });
const SCENARIO = [
  { think: "**Looking for the type**\n\nThe retries are a number of 32 bits." }, plan("in_progress", "pending", "pending"),
  { answer: {} }, { run: "cat src/net/link.rs" },
  { answer: {} }, { patch: PATCH },
  { answer: {} }, plan("completed", "completed", "in_progress"),
  { answer: {} }, { say: "A link counts its tries in a **byte** now:\n\n```rust\nlet link = Link { name, retries: 3 }; // at most 255\n```\n\nThe greeting has a number, and there are notes in `docs/a/notes.md`." },
];
for (const folder of [server.home, server.work]) writeFileSync(join(folder, "scenario.jsonl"), SCENARIO.map((line) => JSON.stringify(line)).join("\n"));
let browser, page;
before(async () => {
  const link = await server.start();
  browser = await launch();
  page = await openPage(browser, link);
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "Links are never tried more than 255 times: count that in a byte. And greet with a number.");
  await transcript(page).getByText("A link counts its tries in a").waitFor();
  await idle(page);
});
after(async () => {
  await browser?.close();
  await server.close();
});
const changes = () => page.getByRole("region", { name: "Changes" });

test("the files are a tree that leads to their diffs", async () => {
  const tree = page.getByRole("navigation", { name: "Changed files" });
  await tree.getByText("docs/a/", { exact: true }).waitFor();
  await tree.getByText("src/net/", { exact: true }).waitFor();
  await tree.getByRole("button", { name: "link.rs" }).click();
  await page.waitForFunction(() => document.activeElement?.textContent.startsWith("src/net/link.rs"));
  await shoot(page, "changes-tree");
});

test("code has colours, and its text stays what it is", async () => {
  const diff = changes().getByRole("group", { name: "Diff of main.py" });
  assert.deepEqual(await diff.locator(".add .c-number").allInnerTexts(), ["42"]);
  assert.deepEqual(await diff.locator(".add .c-string").allInnerTexts(), ['"hello"']);
  assert.equal(await diff.locator(".add .text").innerText(), '    print("hello", 42)');
  assert.deepEqual(await changes().locator(".add .c-comment").allInnerTexts(), ["// How often it is tried."]);
});

test("the split view has both sides, and is remembered", async () => {
  await changes().getByRole("button", { name: "Split" }).click();
  const pair = changes().getByRole("group", { name: "Diff of main.py" }).locator(".pair").filter({ has: page.locator(".add") });
  assert.equal(await pair.locator(".del .text").innerText(), '    print("hello")');
  assert.equal(await pair.locator(".add .text").innerText(), '    print("hello", 42)');
  assert.deepEqual(await audit(page), []);
  await shoot(page, "changes-split");
  await page.reload();
  await changes().locator(".split").first().waitFor();
  await changes().getByRole("button", { name: "Split" }).click();
});

test("a comment on a line is one message, which steers the running turn", async () => {
  await say(page, "run `sleep 300`\nsay never");
  await transcript(page).getByRole("article", { name: "Command" }).filter({ hasText: "sleep 300" }).waitFor();
  await changes().getByRole("group", { name: "Diff of main.py" }).getByRole("button", { name: "Comment on line 2" }).last().click();
  const box = page.getByRole("textbox", { name: "Comment on line 2" });
  await box.fill("Why 42?");
  assert.deepEqual(await audit(page), []);
  await changes().getByRole("button", { name: "Comment", exact: true }).click();
  await box.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Interrupt" }).click();
  await idle(page);
  const sent = transcript(page).getByRole("article", { name: "Message" }).filter({ hasText: "main.py:2" });
  await sent.filter({ hasText: "Why 42?" }).waitFor();
  assert.equal(await sent.count(), 1);
});

test("comments gather in the draft, and Escape leaves one out", async () => {
  const diff = changes().getByRole("group", { name: "Diff of src/net/link.rs" });
  await diff.getByRole("button", { name: "Comment on line 4" }).last().click();
  await page.getByRole("textbox", { name: "Comment on line 4" }).fill("Too small?");
  await changes().getByRole("button", { name: "Add to the draft" }).click();
  await page.waitForFunction(() => document.getElementById("message").value.includes("Too small?"));
  await diff.getByRole("button", { name: "Comment on line 3" }).last().click();
  await page.getByRole("textbox", { name: "Comment on line 3" }).press("Escape");
  await page.getByRole("textbox", { name: "Comment on line 3" }).waitFor({ state: "detached" });
  assert.equal((await page.getByRole("textbox", { name: "Message" }).inputValue()).split("\n").length, 1);
  await page.getByRole("textbox", { name: "Message" }).fill("");
});

test("the changes of the thread are those of all its turns", async () => {
  await say(page, 'write other.txt with "one"\nsay written');
  await transcript(page).getByText("written", { exact: true }).waitFor();
  await idle(page);
  await changes().getByRole("group", { name: "Diff of other.txt" }).waitFor();
  assert.equal(await changes().getByRole("group", { name: "Diff of main.py" }).count(), 0);
  await changes().getByRole("button", { name: "Thread", exact: true }).click();
  for (const path of ["other.txt", "main.py", "src/net/link.rs"]) await changes().getByRole("group", { name: `Diff of ${path}` }).waitFor();
});

test("no script failed and nothing left the origin", () => assert.deepEqual(page.problems, []));
