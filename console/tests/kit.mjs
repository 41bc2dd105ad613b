// A server with the rehearsal model, and a real browser. Everything waits for events, never for time.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Where the packages of the tests are installed. */
export const MODULES = process.env.CONSOLE_TEST_MODULES ?? new URL("../../target/console-tests", import.meta.url).pathname;
const require = createRequire(join(MODULES, "package.json"));
export const { chromium } = require("playwright-core");
export const AXE = require.resolve("axe-core/axe.min.js");
export const LOOMD = process.env.LOOMD ?? new URL("../../target/debug/loomd", import.meta.url).pathname;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const OUT = process.env.CONSOLE_TEST_OUT ?? join(tmpdir(), "loomd-console-screens");
mkdirSync(OUT, { recursive: true });

/** A second browser, with a link of its own. */
export async function another(browser, server, role = "drive") {
  const [link] = await server.run("console", "link", "--no-qr", "--role", role, "--origin", `http://127.0.0.1:${server.port}`);
  return openPage(browser, link);
}

/** The longest wait for anything; reached only when something is broken. */
const WAIT = Number(process.env.CONSOLE_TEST_WAIT ?? 60_000);

export class Server {
  constructor(config = "", provider = "rehearsal") {
    this.root = mkdtempSync(join(tmpdir(), "loomd-console-"));
    this.home = join(this.root, "home");
    this.work = join(this.root, "work");
    mkdirSync(this.home);
    mkdirSync(this.work);
    writeFileSync(join(this.home, "config.toml"), `model_provider = "${provider}"\nmodel = "rehearsal"\n${config}`);
  }

  /** The profile of the user who runs the tests must not slow down or change the shells of commands. */
  env() {
    return { ...process.env, HOME: this.root, CODEX_HOME: this.home, ...this.more };
  }

  /** Starts, on the same port as before if there was one; returns a link. */
  async start(...more) {
    const args = ["console", "--no-open", "--port", String(this.port ?? 0), ...more];
    this.process = spawn(LOOMD, args, { cwd: this.work, env: this.env(), stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: this.process.stdout });
    const [link] = await Promise.race([once(lines, "line"), once(this.process, "exit").then(() => Promise.reject(new Error("the server ended")))]);
    this.port = Number(new URL(link).port);
    return link;
  }

  /** Starts a server for other clients; returns where it listens, or with `--console` the link to its page. */
  async listen(url, ...more) {
    this.process = spawn(LOOMD, ["app-server", "--listen", url, ...more], { cwd: this.work, env: this.env(), stdio: ["ignore", "ignore", "pipe"] });
    const said = more.includes("--console") ? /console: (\S+)/ : /listening on: (\S+)/;
    const lines = createInterface({ input: this.process.stderr });
    const all = [];
    this.address = new Promise((resolve) => lines.on("line", (line) => /listening on: /.test(line) && resolve(line.match(/listening on: (\S+)/)[1])));
    return new Promise((resolve, reject) => {
      lines.on("line", (line) => (all.push(line), said.test(line) && resolve(line.match(said)[1])));
      lines.on("close", () => reject(new Error(`the server ended: ${all.join(" ")}`)));
    });
  }

  async run(...args) {
    const child = spawn(LOOMD, args, { cwd: this.work, env: this.env(), stdio: ["ignore", "pipe", "inherit"] });
    const lines = [];
    for await (const line of createInterface({ input: child.stdout })) lines.push(line);
    return lines;
  }

  async kill() {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await ended;
  }

  async close() {
    await this.kill();
    rmSync(this.root, { recursive: true, force: true });
  }
}

export const launch = () => chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

/** A page that fails the test on an error of a script and on any request that leaves the origin. */
export async function openPage(browser, link, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  page.problems = [];
  const origin = new URL(link).origin;
  page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:") && !url.startsWith("blob:")) page.problems.push(`request: ${url}`);
  });
  page.on("console", (message) => /Content Security Policy|Trusted/.test(message.text()) && page.problems.push(message.text()));
  await page.goto(link);
  await connected(page).catch(async (error) => {
    throw new Error(`the page does not connect: ${await page.locator("body").innerText()} ${page.problems.join()}`, { cause: error });
  });
  return page;
}

export const connected = (page) => page.getByRole("status", { name: "Connection" }).filter({ hasText: /^connected$/ }).waitFor({ state: "attached" });

export async function say(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

/** Waits for the end of the running turn. */
export const idle = (page) => page.getByRole("button", { name: "Interrupt" }).waitFor({ state: "detached" });

export const transcript = (page) => page.getByRole("log", { name: "Transcript" });

/** A request over the page's own connection; an error of the server is returned as `{code, message}`. */
export const call = (page, method, params = {}) =>
  page.evaluate(async ([name, given]) => {
    const { client } = await import("/console/src/live.js");
    return client.request(name, given).catch(({ code, message }) => ({ code, message }));
  }, [method, params]);

/** What the page shows of the open thread, and what the server has of it: ids and texts in order. They must be equal. */
export async function shownAndStored(page) {
  return page.evaluate(async () => {
    const [{ client }, { open }, { allTurns }] = await Promise.all(["live", "state", "load"].map((name) => import(`/console/src/${name}.js`)));
    const model = open.peek();
    const brief = (item) => `${item.type} ${item.text ?? item.command ?? item.content?.map((part) => part.text).join() ?? ""} ${item.status ?? ""}`;
    const own = (item) => !["todo", "turnEnd"].includes(item.type);
    const shown = model.rows.peek().map((row) => row.item.peek()).filter(own).map(brief);
    const stored = (await allTurns(model, client)).flatMap((turn) => turn.items).map(brief);
    return { shown, stored };
  });
}

/** The menu of a thread in the list. */
export async function menu(page, thread, entry) {
  const row = page.getByRole("navigation", { name: "Threads" }).getByRole("listitem").filter({ has: page.getByRole("link", { name: thread, exact: true }) });
  await row.hover();
  await row.getByRole("button", { name: `Actions for ${thread}` }).click();
  await page.getByRole("menuitem", { name: entry, exact: true }).click();
}

export const threadLink = (page, name) => page.getByRole("navigation", { name: "Threads" }).getByRole("link", { name, exact: true });

export async function shoot(page, name) {
  await page.screenshot({ path: join(OUT, `${name}.png`) });
}

/** Serious and critical findings of axe-core. */
export async function audit(page) {
  const bytes = (await import("node:fs")).readFileSync(AXE, "utf8");
  // Evaluated by the debugger, so the page's policy does not apply to it.
  await page.evaluate(bytes);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return result.violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

