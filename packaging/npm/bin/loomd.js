#!/usr/bin/env node
// Runs the program with the arguments, the input and the outputs of this process, and ends as it does.
"use strict";

const { spawn } = require("node:child_process");

let program;
try {
  program = require("../index.js").path;
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
for (const signal of signals) {
  // A terminal sends its signals to both; loomd must not get them twice, as the second one ends it at once.
  process.on(signal, () => {
    if (!process.stdin.isTTY || signal === "SIGTERM" || signal === "SIGHUP") child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`error: cannot run ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const name of signals) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
