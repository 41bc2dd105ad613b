// A thread of 20,000 items: a bounded document, from its end to its start.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, launch, openPage, transcript } from "./kit.mjs";

const [TURNS, EACH] = [100, 200];
const server = new Server('approval_policy = "never"\n');
writeRollout("0199a213-81c0-7800-8aa1-bbab2a035a53");

/** Stores a thread of 20,000 items, as a server writes it. */
function writeRollout(id) {
  const timestamp = "2025-09-30T12:00:00.000Z";
  const line = (type, payload) => JSON.stringify({ timestamp, type, payload });
  const event = (type, fields) => line("event_msg", { type, ...fields });
  const lines = [line("session_meta", { id, timestamp, cwd: server.work, originator: "test", cli_version: "0.0.1", source: "vscode", model_provider: "rehearsal", base_instructions: null })];
  for (let turn = 0; turn < TURNS; turn++) {
    const turn_id = `turn-${turn}`;
    lines.push(event("task_started", { turn_id, model_context_window: 1000, collaboration_mode_kind: "default" }));
    lines.push(event("user_message", { message: `Ask ${turn}`, images: [], local_images: [], text_elements: [] }));
    for (let item = 1; item < EACH; item++) lines.push(event("agent_message", { message: `Item ${turn * EACH + item} of many.` }));
    lines.push(event("task_complete", { turn_id, last_agent_message: null }));
  }
  const folder = join(server.home, "sessions", "2025", "09", "30");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `rollout-2025-09-30T12-00-00-${id}.jsonl`), `${lines.join("\n")}\n`);
}

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
  await page.getByRole("navigation", { name: "Threads" }).getByRole("link", { name: "Ask 0" }).click();
  await transcript(page).getByText(`Item ${TURNS * EACH - 1} of many.`).waitFor();
  assert.ok((await page.getByRole("article").count()) < 200);
  const first = transcript(page).getByText("Item 1 of many.", { exact: true });
  // Each look at the start loads an older page, until there is none.
  while (!(await first.count())) {
    await transcript(page).evaluate((log) => {
      log.scrollTop = 0;
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    });
  }
  assert.ok((await page.getByRole("article").count()) < 200);
  assert.deepEqual(page.problems, []);
});
