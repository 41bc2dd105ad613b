// The model's text is hostile: it must do nothing but be read.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, idle, launch, openPage, say, transcript } from "./kit.mjs";

const TEXT = [
  "<script>window.hacked = 1</script>",
  '<img src=x onerror="window.hacked = 2">',
  "[click](javascript:window.hacked=3)",
  "[data](data:text/html,<script>window.hacked=4</script>)",
  "![picture](http://outside.example/p.png)",
  '<iframe src="http://outside.example/"></iframe><style>*{display:none}</style>',
  "<a href=\"javascript:window.hacked=5\">x</a>",
  `${"a".repeat(200_000)}`,
  "**".repeat(5_000),
  "[".repeat(5_000),
  "> ".repeat(2_000) + "deep",
  "`".repeat(3_001),
  "‮ reversed \u0000 \u001b[31m",
  "THE END",
].join("\n\n");

const server = new Server('approval_policy = "never"\n[loomd]\nscenario = "scenario.jsonl"\n');
writeFileSync(join(server.home, "scenario.jsonl"), `${JSON.stringify({ say: TEXT })}\n`);
writeFileSync(join(server.work, "scenario.jsonl"), `${JSON.stringify({ say: TEXT })}\n`);
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

test("hostile text runs nothing, loads nothing and links nowhere", async () => {
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "<img src=x onerror='window.hacked = 6'>");
  await transcript(page).getByText("THE END").waitFor();
  await idle(page);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  const inside = await transcript(page).evaluate((log) => ({
    elements: log.querySelectorAll("script, iframe, style, object, embed, img[src^=http], [onerror], [onclick]").length,
    links: [...log.querySelectorAll("a")].map((link) => link.protocol).filter((scheme) => !["http:", "https:", "mailto:"].includes(scheme)),
  }));
  assert.deepEqual(inside, { elements: 0, links: [] });
  assert.deepEqual(page.problems, []);
});

test("a huge line does not widen the page", async () => {
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});
