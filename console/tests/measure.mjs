// Figures, not a test: the first paint, the size of the page, and long tasks while a stream of about 1,000 deltas a
// second arrives and a message is typed. Run it on a machine with nothing else to do.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Server, idle, launch, openPage, say, transcript } from "./kit.mjs";

const WORDS = 8000;
const server = new Server('approval_policy = "never"\n[loomd]\nscenario = "scenario.jsonl"\n');
const text = Array.from({ length: WORDS }, (_, index) => (index % 40 === 39 ? `word${index}.\n\n` : `**word${index}**`)).join(" ");
const lines = [{ say: "ready" }, { answer: {} }, { pace_ms: 1 }, { say: `${text} THE-END` }].map((line) => JSON.stringify(line)).join("\n");
for (const folder of [server.home, server.work]) writeFileSync(join(folder, "scenario.jsonl"), lines);

const link = await server.start();
const browser = await launch();
try {
  const page = await openPage(browser, link);
  await page.reload();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  const bytes = await page.evaluate(() => performance.getEntriesByType("resource").reduce((sum, entry) => sum + entry.encodedBodySize, 0));
  await page.getByRole("textbox", { name: "Folder" }).fill(server.work);
  await say(page, "one");
  await transcript(page).getByText("ready").waitFor();
  await idle(page);
  await page.evaluate(async () => {
    const { client } = await import("/console/src/live.js");
    window.measured = { tasks: [], deltas: 0, first: 0, last: 0 };
    new PerformanceObserver((list) => window.measured.tasks.push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: "longtask" });
    window.ended = client.next((method) => method === "turn/completed").then(() => new Promise((resolve) => requestAnimationFrame(resolve))).then(() => true);
    const take = client.handlers.onNotification;
    client.handlers.onNotification = (method, params, eventId) => {
      if (method === "item/agentMessage/delta") {
        window.measured.deltas++;
        window.measured.first ||= performance.now();
        window.measured.last = performance.now();
      }
      take(method, params, eventId);
    };
  });
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const costs = async () => Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  const start = await costs();
  await say(page, "two");
  let typed = 0;
  const box = page.getByRole("textbox", { name: "Message" });
  await box.focus();
  // Not a locator: looking for a text in every frame would be most of what is measured.
  const done = page.evaluate(() => window.ended).then(() => true);
  while (!(await Promise.race([done, page.keyboard.type("k").then(() => false)]))) typed++;
  const measured = await page.evaluate(() => window.measured);
  const end = await costs();
  const cost = Object.fromEntries(["TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration"].map((name) => [name, +(end[name] - start[name]).toFixed(2)]));
  const seconds = (measured.last - measured.first) / 1000;
  const kept = (await box.inputValue()).length;
  console.log(JSON.stringify({ firstPaintMs: Math.round(paint), kilobytesTransferred: Math.round(bytes / 1024), deltas: measured.deltas, deltasPerSecond: Math.round(measured.deltas / seconds), keysTyped: typed, keysShown: kept, cost, longTasksMs: measured.tasks }));
} finally {
  await browser.close();
  await server.close();
}
