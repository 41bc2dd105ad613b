// The list of threads, and what can be done with one: for all browsers, and over restarts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Server, another, connected, idle, launch, menu, openPage, say, threadLink, transcript } from "./kit.mjs";

const server = new Server('approval_policy = "never"\nsandbox_mode = "workspace-write"\n');
let browser, page, other;
before(async () => {
  const link = await server.start();
  browser = await launch();
  page = await openPage(browser, link);
  other = await another(browser, server);
});
after(async () => {
  await browser?.close();
  await server.close();
});
const nav = (of = page) => of.getByRole("navigation", { name: "Threads" });
const group = (of, name) => nav(of).locator("section").filter({ has: of.getByRole("heading", { name, exact: true }) });

async function newThread(text, of = page) {
  await nav(of).getByRole("button", { name: "New thread", exact: true }).click();
  await of.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(of, text);
  await transcript(of).getByText("Done.").or(transcript(of).getByText(/^said/)).first().waitFor();
  await idle(of);
}

/** The accessible description of a thread's link. */
const described = (link) => link.evaluate((element) => document.getElementById(element.getAttribute("aria-describedby")).textContent);

test("a thread that is pinned is pinned for every browser, and after a restart", async () => {
  await newThread("say said first");
  await newThread("say said second");
  await menu(page, "say said first", "Pin");
  await group(page, "Pinned").getByRole("link", { name: "say said first" }).waitFor();
  await other.reload();
  await group(other, "Pinned").getByRole("link", { name: "say said first" }).waitFor();
  await server.kill();
  await server.start();
  await connected(page);
  await group(page, "Pinned").getByRole("link", { name: "say said first" }).waitFor();
  await menu(page, "say said first", "Unpin");
  await group(page, "Pinned").waitFor({ state: "detached" });
});

test("a thread that another browser let run is unread until somebody looks", async () => {
  await threadLink(page, "say said first").click();
  await transcript(page).getByText("said first", { exact: true }).waitFor();
  await threadLink(other, "say said second").click();
  await transcript(other).getByText("said second", { exact: true }).waitFor();
  await say(other, "say said more");
  await transcript(other).getByText("said more", { exact: true }).waitFor();
  await idle(other);
  // The other browser looks at it, so it is read for both when the lists are loaded again.
  await other.waitForFunction(async () => {
    const state = await import("/console/src/state.js");
    return state.readStates.get(state.open.peek().id)?.firstUnread === null;
  });
  await page.reload();
  await threadLink(page, "say said second").waitFor();
  assert.equal(await described(threadLink(page, "say said second")), "");
  await menu(page, "say said second", "Mark as unread");
  await nav().locator("li.unread").waitFor();
  await page.waitForFunction(async () => [...(await import("/console/src/state.js")).readStates.values()].some((one) => one.firstUnread !== null));
  await page.reload();
  await nav().locator("li.unread").getByRole("link", { name: "say said second" }).waitFor();
  assert.equal(await described(threadLink(page, "say said second")), "unread");
  await threadLink(page, "say said second").click();
  await nav().locator("li.unread").waitFor({ state: "detached" });
  await page.waitForFunction(async () => [...(await import("/console/src/state.js")).readStates.values()].every((one) => one.firstUnread === null));
  await page.reload();
  await threadLink(page, "say said second").waitFor();
  assert.equal(await nav().locator("li.unread").count(), 0);
});

test("a failed thread says so", async () => {
  await newThread("say said third");
  await say(page, "fail with quota");
  await transcript(page).getByRole("article", { name: "Error" }).waitFor();
  await nav().locator("li.failed").waitFor();
  assert.equal(await described(threadLink(page, "say said third")), "failed");
});

test("a thread is renamed, archived, taken back and deleted", async () => {
  await menu(page, "say said third", "Rename");
  const dialog = page.getByRole("dialog", { name: "Rename the thread" });
  await dialog.getByRole("textbox", { name: "Name of the thread" }).fill("A better name");
  await dialog.getByRole("button", { name: "Save" }).click();
  await threadLink(page, "A better name").waitFor();
  await threadLink(other, "A better name").waitFor();
  await menu(page, "A better name", "Archive");
  await threadLink(page, "A better name").waitFor({ state: "detached" });
  await nav().getByRole("button", { name: "Archived" }).click();
  await menu(page, "A better name", "Unarchive");
  await nav().getByRole("button", { name: "Back to threads" }).click();
  await menu(page, "A better name", "Delete");
  const sure = page.getByRole("dialog", { name: "Delete the thread?" });
  await sure.getByRole("button", { name: "Cancel" }).click();
  await threadLink(page, "A better name").waitFor();
  await menu(page, "A better name", "Delete");
  await sure.getByRole("button", { name: "Delete" }).click();
  for (const one of [page, other]) await threadLink(one, "A better name").waitFor({ state: "detached" });
});

test("a thread goes on from an earlier message, in a fork or in itself", async () => {
  await newThread("say said apple");
  await say(page, "say said pear");
  await transcript(page).getByText("said pear", { exact: true }).waitFor();
  await idle(page);
  const original = page.url();
  const message = (text) => transcript(page).getByRole("article", { name: "Message" }).filter({ has: page.getByText(text, { exact: true }) });
  const act = async (text, entry) => {
    await message(text).hover();
    await message(text).getByRole("button", { name: "Actions for this message" }).click();
    await page.getByRole("menuitem", { name: entry }).click();
  };
  await act("say said apple", "Fork from here");
  await page.waitForURL((url) => url.href !== original);
  await transcript(page).getByText("said apple", { exact: true }).waitFor();
  assert.equal(await transcript(page).getByText("said pear", { exact: true }).count(), 0);
  await page.goBack();
  await transcript(page).getByText("said pear", { exact: true }).waitFor();
  await act("say said pear", "Revert to here");
  await page.getByRole("dialog", { name: "Revert to here?" }).getByRole("button", { name: "Revert" }).click();
  await transcript(page).getByText("said pear", { exact: true }).waitFor({ state: "detached" });
  await transcript(page).getByText("said apple", { exact: true }).waitFor();
  await page.waitForFunction(() => document.getElementById("message").value === "say said pear");
  await page.getByRole("textbox", { name: "Message" }).fill("");
});

test("a thread is saved as Markdown", async () => {
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Actions for this thread" }).click();
  await page.getByRole("menuitem", { name: "Export as Markdown" }).click();
  const text = readFileSync(await (await download).path(), "utf8");
  assert.match(text, /## User\n\nsay said apple/);
  assert.match(text, /\nsaid apple\n/);
});

test("no script failed and nothing left the origin", () => assert.deepEqual([...page.problems, ...other.problems], []));
