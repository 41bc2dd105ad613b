// Every view at three widths, light and dark: no serious finding of axe-core, nothing wider than the window.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, audit, idle, launch, openPage, say, shoot, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "untrusted"\nsandbox_mode = "workspace-write"\n');
let browser, page;
before(async () => {
  const link = await server.start();
  browser = await launch();
  page = await openPage(browser, link);
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
});
after(async () => {
  await browser?.close();
  await server.close();
});

const SIZES = [[1440, 900], [1024, 768], [360, 740]];

async function look(name) {
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      await shoot(page, `${name}-${width}-${scheme}`);
      assert.deepEqual(await audit(page), [], `${name} at ${width} px, ${scheme}`);
      // The frame hides what is too wide, so each of its parts is looked at.
      const wide = await page.evaluate(() => [...document.querySelectorAll("html, main, .start, .column, .head, .foot, .composer, .approval, .cards, .side, .bar")].filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.className || part.tagName));
      assert.deepEqual(wide, [], `${name} is too wide at ${width} px`);
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}

test("the first view", () => look("new"));

test("a thread with items of many kinds", async () => {
  await say(page, 'think about the release\nplan Look around, Write the notes, Check them\nrun `echo hello`\nwrite notes.md with "# Notes\\n\\n- one\\n- two"\nsay "## Done\\n\\nThe notes are in `notes.md`."');
  for (;;) {
    const next = await Promise.race([
      page.getByRole("button", { name: "Allow once" }).waitFor().then(() => true),
      transcript(page).getByRole("heading", { name: "Done" }).waitFor().then(() => false),
    ]);
    if (!next) break;
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.getByRole("group", { name: "Approval" }).waitFor({ state: "detached" });
  }
  await idle(page);
  await page.getByRole("button", { name: "Hide the changes" }).click();
  await look("thread");
  await page.getByRole("button", { name: "Changes", exact: true }).click();
  await look("changes");
});

test("an approval", async () => {
  await page.getByRole("button", { name: "Hide the changes" }).click();
  await say(page, 'write other.txt with "one\\ntwo\\nthree"');
  await page.getByRole("group", { name: "Approval" }).waitFor();
  await look("approval");
  await page.getByRole("button", { name: "Decline" }).click();
  await idle(page);
});

test("the settings", async () => {
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("heading", { name: "Diagnostics" }).waitFor();
  await look("settings");
});

test("at 360 px the connection and a new thread are in reach without the list", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole("status", { name: "Connection" }).filter({ hasText: /^connected$/ }).waitFor();
  await page.getByRole("button", { name: "New thread" }).click();
  await page.getByRole("textbox", { name: "Folder" }).waitFor();
  await page.getByRole("status", { name: "Connection" }).filter({ hasText: /^connected$/ }).waitFor();
  await page.getByRole("button", { name: "Show the threads" }).click();
  assert.equal(await page.getByRole("button", { name: "New thread", exact: true }).count(), 1);
  assert.equal(await page.getByRole("status", { name: "Connection" }).count(), 1);
  await page.getByRole("button", { name: "Close the list of threads" }).click({ position: { x: 350, y: 400 } });
});

test("the list of threads at 360 px", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole("button", { name: "Show the threads" }).click();
  await page.getByRole("navigation", { name: "Threads" }).getByRole("link").first().waitFor();
  assert.deepEqual(await audit(page), []);
  await shoot(page, "threads-360");
});

test("no script failed and nothing left the origin", () => assert.deepEqual(page.problems, []));
