// The requests of the page are those that the protocol describes: names of methods and types of their params.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { LOOMD, MODULES } from "./kit.mjs";

test("the requests of the page follow the generated types", () => {
  execFileSync(LOOMD, ["app-server", "generate-ts", "--experimental", "--out", join(MODULES, "protocol")]);
  const project = new URL("types/tsconfig.json", import.meta.url).pathname;
  const checked = spawnSync(process.execPath, [join(MODULES, "node_modules/typescript/bin/tsc"), "-p", project], { encoding: "utf8" });
  assert.equal(checked.stdout, "");
  assert.equal(checked.status, 0);
});
