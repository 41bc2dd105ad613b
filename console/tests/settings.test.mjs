// The settings: account, providers, defaults and checks.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, another, audit, launch, openPage } from "./kit.mjs";

const server = new Server('approval_policy = "never"\nsandbox_mode = "read-only"\n');
let browser, page;
before(async () => {
  const link = await server.start();
  browser = await launch();
  page = await openPage(browser, link);
  await page.getByRole("button", { name: "Settings" }).click();
});
after(async () => {
  await browser?.close();
  await server.close();
});
const card = (name, of = page) => of.locator(".card").filter({ has: of.getByRole("heading", { name, exact: true }) });
const config = () => readFileSync(join(server.home, "config.toml"), "utf8");
const saved = async () => {
  await page.getByText("Saved.").first().waitFor();
  await page.getByRole("button", { name: "Dismiss" }).first().click();
};

test("an API key signs in, is not shown, and signs out", async () => {
  const vendor = new Server('cli_auth_credentials_store = "file"\n', "openai");
  try {
    const signing = await openPage(browser, await vendor.start());
    await signing.getByRole("button", { name: "Settings" }).click();
    const account = card("Account", signing);
    await account.getByText("Not signed in.").waitFor();
    await account.getByLabel("API key").fill("sk-test-0123456789");
    await account.getByRole("button", { name: "Sign in with the key" }).click();
    await account.getByText("Signed in with an API key.").waitFor();
    assert.ok(!(await signing.content()).includes("sk-test"));
    await account.getByRole("button", { name: "Sign out" }).click();
    await account.getByText("Not signed in.").waitFor();
    await signing.context().close();
  } finally {
    await vendor.close();
  }
});

test("a provider is added and used", async () => {
  const providers = card("Providers");
  await providers.getByRole("button", { name: "Add a provider" }).click();
  await providers.getByLabel("Name").fill("local");
  await providers.getByLabel("Address").fill("http://127.0.0.1:1/v1");
  await providers.getByLabel("Variable with the key").fill("LOCAL_KEY");
  assert.deepEqual(await audit(page), []);
  await providers.getByRole("button", { name: "Add", exact: true }).click();
  await saved();
  assert.match(config(), /\[model_providers\.local\]/);
  await providers.getByRole("button", { name: "Use" }).click();
  await saved();
  assert.match(config(), /model_provider = "local"/);
  await providers.getByText("in use").waitFor();
});

test("a default is written to the configuration", async () => {
  const provider = card("Defaults of new threads").getByLabel("Provider");
  await provider.selectOption("rehearsal");
  await saved();
  assert.match(config(), /model_provider = "rehearsal"/);
});

test("the checks find what works, and ask the model", async () => {
  const checks = card("Checks");
  await checks.getByRole("button", { name: "Check", exact: true }).click();
  await checks.getByText(/commands run in the sandbox|no sandbox is available/).waitFor();
  await checks.getByText(/config\.toml/).first().waitFor();
  await checks.getByRole("button", { name: "Ask the model" }).click();
  await checks.getByText(/rehearsal of rehearsal answers in/).waitFor();
  assert.deepEqual(await audit(page), []);
});

test("a viewer sees no forms", async () => {
  const viewer = await another(browser, server, "view");
  await viewer.getByRole("button", { name: "Settings" }).click();
  await card("Diagnostics", viewer).getByText("Memory", { exact: true }).waitFor();
  assert.equal(await viewer.getByRole("main").getByRole("textbox").count(), 0);
  assert.equal(await viewer.locator(".problem").count(), 0);
  assert.deepEqual(viewer.problems, []);
});

test("no script failed and nothing left the origin", () => assert.deepEqual(page.problems, []));
