// Beside the changes: files, background terminals, agents, decisions, usage. And the composer's further ways.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, audit, idle, launch, openPage, say, shoot, transcript } from "./kit.mjs";

const PRICES = "[loomd.prices.rehearsal]\ninput = 1000.0\noutput = 1000.0\n";
const server = new Server(`approval_policy = "untrusted"\nsandbox_mode = "workspace-write"\n[loomd.budgets.day]\ndollars = 5000.0\n${PRICES}`);
mkdirSync(join(server.work, "src"));
writeFileSync(join(server.work, "src/main.py"), "def main():\n    return 42\n");
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
const tab = (name) => page.getByRole("tab", { name, exact: true }).click();
const panel = () => page.getByRole("tabpanel");
const look = async (name) => {
  assert.deepEqual(await audit(page), []);
  await shoot(page, name);
};

test("a thread is started with a model, a sandbox and a budget", async () => {
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await page.getByRole("combobox", { name: "Sandbox" }).selectOption("dangerFullAccess");
  await page.getByRole("combobox", { name: "Effort" }).selectOption("high");
  await page.getByText("Budget", { exact: true }).click();
  await page.getByRole("spinbutton", { name: "Tokens" }).fill("1000000");
  await look("start-with-a-budget");
  await say(page, "say begun");
  await transcript(page).getByText("begun", { exact: true }).waitFor();
  await idle(page);
  assert.equal(await page.getByRole("combobox", { name: "Sandbox" }).inputValue(), "dangerFullAccess");
  assert.equal(await page.getByRole("combobox", { name: "Effort" }).inputValue(), "high");
  await page.getByRole("combobox", { name: "Sandbox" }).selectOption("workspaceWrite");
});

test("the usage has tokens, context, price and budget", async () => {
  const usage = page.getByRole("status", { name: "Usage" });
  await usage.filter({ hasText: /tokens · \d+% context left · \$\d+\.\d\d · \d+% of the budget/ }).waitFor();
  await tab("Usage");
  await panel().getByRole("meter", { name: /^This thread: \d+% used/ }).waitFor();
  await panel().getByText("$5000.00").waitFor();
  await panel().getByText(/rehearsal\/rehearsal/).waitFor();
  await look("usage");
});

test("a turn beyond its budget fails and says why", async () => {
  const threadUrl = page.url();
  await page.getByRole("button", { name: "New thread", exact: true }).click();
  await page.getByText("Budget", { exact: true }).click();
  await page.getByRole("spinbutton", { name: "Tokens" }).fill("1");
  await say(page, "say one");
  await transcript(page).getByText("one", { exact: true }).waitFor();
  await idle(page);
  await say(page, "say two");
  await transcript(page).getByRole("article", { name: "Error" }).filter({ hasText: "budget exceeded" }).waitFor();
  await page.goto(threadUrl);
  await transcript(page).getByText("begun", { exact: true }).waitFor();
});

test("files are read, with colours", async () => {
  await tab("Files");
  await panel().getByRole("button", { name: "src/" }).click();
  await panel().getByRole("button", { name: "main.py" }).click();
  await panel().locator("pre .c-number").filter({ hasText: "42" }).waitFor();
  await look("files");
  await panel().getByRole("button", { name: "Mention in the message" }).click();
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "@src/main.py ");
  await page.getByRole("textbox", { name: "Message" }).fill("");
  await panel().getByRole("button", { name: "work", exact: true }).click();
  await panel().getByRole("button", { name: "src/" }).waitFor();
});

test("@ finds files, / commands and $ skills", async () => {
  const box = page.getByRole("textbox", { name: "Message" });
  const options = page.getByRole("listbox", { name: "Suggestions" }).getByRole("option");
  await box.pressSequentially("look at @mai");
  await options.filter({ hasText: "@src/main.py" }).waitFor();
  await box.press("Tab");
  assert.equal(await box.inputValue(), "look at @src/main.py ");
  await box.fill("");
  await box.pressSequentially("/comp");
  await options.filter({ hasText: "/compact" }).waitFor();
  await box.fill("");
  await box.pressSequentially("$skill");
  await options.filter({ hasText: "$skill-creator" }).waitFor();
  await box.fill("");
});

test("a picture is pasted, shown and sent", async () => {
  const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await page.getByRole("textbox", { name: "Message" }).evaluate((box, data) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(data), (char) => char.charCodeAt(0))], "dot.png", { type: "image/png" }));
    box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true }));
  }, dot);
  await page.getByRole("button", { name: "Remove picture 1" }).waitFor();
  await say(page, "say seen it");
  await transcript(page).getByText(/^seen it/).waitFor();
  await transcript(page).getByRole("img", { name: "Picture of the user" }).waitFor();
  await idle(page);
});

test("who allowed and who declined is listed", async () => {
  for (const [command, decision] of [["touch one", "Allow once"], ["touch two", "Decline"]]) {
    await say(page, `run \`${command}\``);
    await page.getByRole("group", { name: "Approval" }).getByRole("button", { name: decision }).click();
    await idle(page);
  }
  await tab("Decisions");
  const list = panel().getByRole("list", { name: "Decisions" }).getByRole("listitem");
  await list.filter({ hasText: /Allow/ }).filter({ hasText: "touch one" }).waitFor();
  await list.filter({ hasText: /Decline/ }).filter({ hasText: "touch two" }).waitFor();
  await look("decisions");
});

test("approvals that the server keeps are shown with who decided", async () => {
  // As a server answers that keeps them, whatever this one does.
  await page.evaluate(async () => {
    const { open } = await import("/console/src/state.js");
    const model = open.peek();
    const item = model.rows.peek().map((row) => row.item.peek()).find((one) => one.type === "commandExecution" && one.command.includes("touch one"));
    const kept = { threadId: model.id, turnId: "t", method: "item/commandExecution/requestApproval", params: { command: item.command }, askedAt: 1794839150 };
    model.approvals.value = [
      { ...kept, id: "2", itemId: "none", state: "open" },
      { ...kept, id: "1", itemId: item.id, state: "decided", decision: "accept", decidedAt: 1794839160, decidedBy: { connection: "7", client: "loomd_console", role: "approve" } },
    ];
  });
  const list = panel().getByRole("list", { name: "Decisions" }).getByRole("listitem");
  await list.filter({ hasText: "Allowed once by the console (approve)" }).waitFor();
  await list.filter({ hasText: "Waiting" }).waitFor();
  await transcript(page).getByText("Allowed once by the console (approve)").waitFor();
});

test("a command in the background is shown with its output, and ended", async () => {
  await page.getByRole("combobox", { name: "Sandbox" }).selectOption("workspaceWrite");
  await say(page, "run `echo tick; exec sleep 300` in the background\nsay it runs");
  await page.getByRole("group", { name: "Approval" }).getByRole("button", { name: "Allow once" }).click();
  await transcript(page).getByText("it runs", { exact: true }).waitFor();
  await idle(page);
  await tab("Terminals");
  const list = panel().getByRole("list", { name: "Background terminals" });
  await list.getByText("sleep 300").waitFor();
  await list.getByLabel("Output").filter({ hasText: "tick" }).waitFor();
  await look("terminals");
  await list.getByRole("button", { name: "End" }).click();
  await list.waitFor({ state: "detached" });
});

test("agents are a tree, and each can be opened", async () => {
  await say(page, 'spawn an agent to "say hello from the child"\nwait for agents\nsay they are done');
  await transcript(page).getByText("they are done", { exact: true }).waitFor();
  await idle(page);
  await tab("Agents");
  const agent = panel().getByRole("region", { name: "Agents" }).getByRole("listitem").first();
  await agent.waitFor();
  await look("agents");
  await agent.getByRole("button").first().click();
  await transcript(page).getByText("hello from the child", { exact: true }).waitFor();
  await panel().getByRole("button", { name: "the agent that started this one" }).click();
  await transcript(page).getByText("they are done", { exact: true }).waitFor();
});

test("a queue that an interrupt has stopped goes on", async () => {
  await say(page, "run `sleep 301`");
  await page.getByRole("group", { name: "Approval" }).getByRole("button", { name: "Allow once" }).click();
  await page.getByRole("textbox", { name: "Message" }).fill("say from the queue");
  await page.getByRole("textbox", { name: "Message" }).press("Control+Enter");
  const queue = page.getByRole("region", { name: "Queue" });
  await queue.getByText("say from the queue").waitFor();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await queue.getByRole("button", { name: "Go on" }).click();
  await transcript(page).getByText("from the queue", { exact: true }).waitFor();
  await queue.waitFor({ state: "detached" });
  await idle(page);
});

test("no script failed and nothing left the origin", () => assert.deepEqual(page.problems, []));
