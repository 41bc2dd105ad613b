// Commands of the message: `/compact` and the like, and `!` for a command of the user.
import * as state from "../state.js";
import { archive, compact, fork, rename, review, shell } from "../actions.js";
import { exportMarkdown } from "../export.js";

export const COMMANDS = {
  compact: ["summarise the context", (model) => compact(model)],
  review: ["review the uncommitted changes", (model) => review(model)],
  fork: ["go on in a copy of this thread", (model) => fork(model.id)],
  rename: ["name this thread", (model, rest) => rename(model.id, rest)],
  archive: ["archive this thread", (model) => archive(model.id)],
  export: ["save this thread as Markdown", (model) => exportMarkdown(model)],
  new: ["start a thread", () => (state.view.value = "new")],
  settings: ["open the settings", () => (state.view.value = "settings")],
};

/** Runs a text that is a command; returns whether it was one. */
export async function runSlash(model, text) {
  if (text.startsWith("!") && text.length > 1) {
    await shell(model, text.slice(1).trim());
    return true;
  }
  const [, name, rest] = text.match(/^\/([a-z]+)(?:\s+(.*))?$/s) ?? [];
  const command = COMMANDS[name];
  if (!command) return false;
  await command[1](model, rest?.trim() ?? "");
  return true;
}
