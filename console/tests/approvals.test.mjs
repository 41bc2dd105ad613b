// Approvals: what is asked is in view before the decision; keyboard alone is enough; two browsers agree.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, idle, launch, openPage, say, shoot, transcript } from "./kit.mjs";

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
const approval = (of = page) => of.getByRole("group", { name: "Approval" });

test("a command is shown before it is allowed, and runs then", async () => {
  await say(page, "run `touch made.txt`");
  await approval().getByText("touch made.txt").first().waitFor();
  assert.ok(!existsSync(join(server.work, "made.txt")));
  assert.match(await page.title(), /^\(1\) waiting/);
  await page.getByRole("navigation", { name: "Threads" }).getByRole("heading", { name: "Waiting for you" }).waitFor();
  await shoot(page, "approval-command");
  await approval().getByRole("button", { name: "Allow once" }).click();
  await idle(page);
  assert.ok(existsSync(join(server.work, "made.txt")));
  assert.equal(await page.title(), "loomd");
});

test("a change is shown as a diff before it is allowed", async () => {
  await say(page, 'write shown.txt with "a line of it"');
  await approval().getByText("a line of it").waitFor();
  assert.ok(!existsSync(join(server.work, "shown.txt")));
  await shoot(page, "approval-change");
  await approval().getByRole("button", { name: "Allow once" }).click();
  await idle(page);
  assert.ok(existsSync(join(server.work, "shown.txt")));
});

test("a command is allowed for the session, and not asked for again", async () => {
  for (const round of ["first", "second"]) {
    await say(page, `run \`touch session.txt\`\nsay ${round} time`);
    if (round === "first") await approval().getByRole("button", { name: "Allow for this session" }).click();
    await transcript(page).getByText(`${round} time`, { exact: true }).waitFor();
    await idle(page);
  }
});

test("a command is always allowed, by the rule that is shown", async () => {
  for (const round of ["third", "fourth"]) {
    await say(page, `run \`touch rule.txt\`\nsay ${round} time`);
    if (round === "third") {
      await approval().getByText("touch rule.txt").last().waitFor();
      await approval().getByRole("button", { name: "Always allow" }).click();
    }
    await transcript(page).getByText(`${round} time`, { exact: true }).waitFor();
    await idle(page);
  }
});

test("a command is declined with a word about what to do instead", async () => {
  await say(page, "run `touch instead.txt`");
  await approval().getByRole("textbox", { name: "What to do instead" }).fill("say something else");
  await approval().getByRole("button", { name: "Decline" }).click();
  await transcript(page).getByText("something else", { exact: true }).waitFor();
  await idle(page);
  assert.ok(!existsSync(join(server.work, "instead.txt")));
});

test("a command that is declined does not run", async () => {
  await say(page, "run `touch declined.txt`");
  await approval().getByRole("button", { name: "Decline" }).click();
  await idle(page);
  assert.ok(!existsSync(join(server.work, "declined.txt")));
  await transcript(page).getByText("declined", { exact: true }).first().waitFor();
});

test("the keyboard alone starts a turn and allows its command", async () => {
  await page.getByRole("textbox", { name: "Message" }).focus();
  await page.keyboard.type("run `touch keyboard.txt`");
  await page.keyboard.press("Enter");
  await approval().waitFor();
  await page.keyboard.press("Alt+a");
  await page.waitForFunction(() => document.activeElement?.textContent === "Allow once");
  await page.keyboard.press("Enter");
  await idle(page);
  assert.ok(existsSync(join(server.work, "keyboard.txt")));
});

test("a question of the agent is answered, in the mode that offers them", async () => {
  const mode = page.getByRole("combobox", { name: "Mode", exact: true });
  await mode.selectOption("plan");
  await say(page, "ask Which one? with options red, blue");
  const question = page.getByRole("group", { name: "Question" });
  await question.getByLabel("red").check();
  await question.getByRole("button", { name: "Answer" }).click();
  await question.waitFor({ state: "detached" });
  await idle(page);
  await mode.selectOption("default");
});

test("two browsers show the same approval, and one decision ends it in both", async () => {
  const [link] = (await server.run("console", "link", "--no-qr", "--origin", `http://127.0.0.1:${server.port}`));
  const other = await openPage(browser, link);
  await other.getByRole("navigation", { name: "Threads" }).getByRole("link").first().click();
  await transcript(other).getByText("touch keyboard.txt").first().waitFor();
  await say(page, "run `touch two.txt`\nsay both see this");
  await approval(other).getByText("touch two.txt").first().waitFor();
  await approval(page).waitFor();
  await approval(other).getByRole("button", { name: "Allow once" }).click();
  await approval(page).waitFor({ state: "detached" });
  for (const one of [page, other]) await transcript(one).getByText("both see this", { exact: true }).waitFor();
  assert.deepEqual(other.problems, []);
});

test("no script failed and nothing left the origin", () => assert.deepEqual(page.problems, []));
