// A unified diff as data: files, hunks and numbered lines.

/** @returns {{path: string, added: number, removed: number, lines: {kind: string, text: string, old?: number, new?: number}[]}[]} */
export function parseDiff(text) {
  const files = [];
  /** @type {any} */
  let file = null;
  let oldLine = 0;
  let newLine = 0;
  let inHunk = false;
  const begin = (path) => {
    file = { path, added: 0, removed: 0, lines: [] };
    files.push(file);
    inHunk = false;
  };
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const git = line.match(/^diff --git a\/.* b\/(.*)$/);
    const hunk = line.match(/^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/);
    if (git) {
      begin(git[1]);
    } else if (hunk) {
      file ?? begin("");
      [oldLine, newLine, inHunk] = [Number(hunk[1]), Number(hunk[2]), true];
      file.lines.push({ kind: "hunk", text: line });
    } else if (!inHunk) {
      const name = line.match(/^\+\+\+ (?:b\/)?(.*)$/);
      if (name && file && name[1] !== "/dev/null" && !file.path) file.path = name[1];
      else if (name && !file) begin(name[1]);
    } else if (line.startsWith("+")) {
      file.added++;
      file.lines.push({ kind: "add", text: line.slice(1), new: newLine++ });
    } else if (line.startsWith("-")) {
      file.removed++;
      file.lines.push({ kind: "del", text: line.slice(1), old: oldLine++ });
    } else if (!line.startsWith("\\")) {
      file.lines.push({ kind: "same", text: line.slice(1), old: oldLine++, new: newLine++ });
    }
  }
  return files;
}

const relative = (path, cwd) => (cwd && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path);

/** The files of a `fileChange` item. A new or deleted file comes as its bare content. */
export function filesOfChanges(changes, cwd = null) {
  return (changes ?? []).map((change) => {
    const kind = change.kind?.type ?? change.kind;
    const path = [change.path, change.kind?.move_path].filter(Boolean).map((one) => relative(one, cwd)).join(" → ");
    if (kind === "update" || /^@@ /m.test(change.diff)) {
      const parsed = parseDiff(change.diff.startsWith("diff --git") ? change.diff : `+++ ${change.path}\n${change.diff}`);
      return { ...(parsed[0] ?? { added: 0, removed: 0, lines: [] }), path };
    }
    const texts = change.diff.replace(/\n$/, "").split("\n");
    const lines = texts.map((text, index) => (kind === "delete" ? { kind: "del", text, old: index + 1 } : { kind: "add", text, new: index + 1 }));
    return { path, lines, added: kind === "delete" ? 0 : lines.length, removed: kind === "delete" ? lines.length : 0 };
  });
}

/** Pairs of old and new lines, for the split view. */
export function pairs(lines) {
  const out = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at].kind === "hunk" || lines[at].kind === "same") {
      out.push([lines[at], lines[at]]);
      at++;
      continue;
    }
    const [dels, adds] = [[], []];
    while (lines[at]?.kind === "del") dels.push(lines[at++]);
    while (lines[at]?.kind === "add") adds.push(lines[at++]);
    for (let row = 0; row < Math.max(dels.length, adds.length); row++) out.push([dels[row] ?? null, adds[row] ?? null]);
  }
  return out;
}
