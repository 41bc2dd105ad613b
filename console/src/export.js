// A thread as a Markdown file: all of its turns, also those that are not loaded.
import { allTurns } from "./load.js";

export async function exportMarkdown(model) {
  const parts = [`# ${model.thread.peek()?.name || model.thread.peek()?.preview?.split("\n")[0] || "Thread"}\n`];
  for (const turn of await allTurns(model)) {
    for (const item of turn.items) parts.push(...partsOf(item));
    if (turn.status === "failed") parts.push(`> The turn failed: ${turn.error?.message ?? ""}\n`);
    if (turn.status === "interrupted") parts.push("> The turn was interrupted.\n");
  }
  const url = URL.createObjectURL(new Blob([parts.join("\n")], { type: "text/markdown" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: `thread-${model.id}.md` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

function partsOf(item) {
  switch (item.type) {
    case "userMessage":
      return [`## User\n\n${item.content.map((part) => part.text ?? `[${part.type}]`).join("\n")}\n`];
    case "agentMessage":
    case "plan":
      return [`${item.text}\n`];
    case "commandExecution":
      return [fenced("console", `$ ${item.command}\n${item.aggregatedOutput ?? ""}`)];
    case "fileChange":
      return [fenced("diff", item.changes.map((change) => `${change.path}\n${change.diff}`).join("\n"))];
    default:
      return [];
  }
}

/** A fence that is longer than any inside. */
function fenced(language, text) {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}\n`;
}
