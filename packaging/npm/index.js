// The path of the program of this machine. Throws if the package does not have it.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const platform = `${process.platform}-${process.arch}`;
const program = path.join(__dirname, "vendor", platform, "loomd");
if (!fs.existsSync(program)) {
  const others = fs.existsSync(path.join(__dirname, "vendor")) ? fs.readdirSync(path.join(__dirname, "vendor")) : [];
  throw new Error(`this package of loomd has no program for ${platform}, only for: ${others.join(", ") || "none"}`);
}

module.exports = { path: program };
