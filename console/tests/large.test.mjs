// A thread of 20,000 items: a bounded document, from its end to its start.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, launch, openPage, say, transcript } from "./kit.mjs";

const COUNT = 20_000;
const server = new Server('approval_policy = "never"\n[loomd]\nscenario = "scenario.jsonl"\n');
const scenario = Array.from({ length: COUNT }, (_, index) => JSON.stringify({ say: `Item ${index} of many.` })).join("\n");
for (const folder of [server.home, server.work]) writeFileSync(join(folder, "scenario.jsonl"), scenario);
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

test("a thread of 20,000 items keeps the document small and shows both of its ends", { timeout: 240_000 }, async () => {
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "go");
  await transcript(page).getByText(`Item ${COUNT - 1} of many.`).waitFor({ timeout: 200_000 });
  await page.reload();
  await transcript(page).getByText(`Item ${COUNT - 1} of many.`).waitFor({ timeout: 60_000 });
  assert.ok((await page.getByRole("article").count()) < 200);
  await transcript(page).evaluate((log) => (log.scrollTop = 0));
  await transcript(page).getByText("Item 0 of many.").waitFor();
  assert.ok((await page.getByRole("article").count()) < 200);
  assert.deepEqual(page.problems, []);
});
