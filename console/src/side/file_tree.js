// Changed files as a tree of folders. A folder with one folder inside is shown in one line with it.
import { html } from "../html.js";

export function FileTree({ files, onPick }) {
  return html`<nav class="tree" aria-label="Changed files"><${Level} node=${treeOf(files)} onPick=${onPick} /></nav>`;
}

function Level({ node, onPick }) {
  const folders = [...node.folders].map(([name, inner]) => shortened(name, inner)).sort(([a], [b]) => a.localeCompare(b));
  return html`<ul>
    ${folders.map(([name, inner]) => html`<li key=${`${name}/`}><span class="folder-name">${name}/</span><${Level} node=${inner} onPick=${onPick} /></li>`)}
    ${node.files.map(({ name, index, file }) => html`<li key=${name}><button class="plain" onClick=${() => onPick(index)}><span class="path">${name}</span>
      <span class="count"><b class="plus">+${file.added}</b> <b class="minus">−${file.removed}</b></span></button></li>`)}
  </ul>`;
}

const empty = () => ({ folders: new Map(), files: [] });

export function treeOf(files) {
  const root = empty();
  files.forEach((file, index) => {
    const parts = file.path.split(" → ")[0].split("/");
    let node = root;
    for (const part of parts.slice(0, -1)) {
      if (!node.folders.has(part)) node.folders.set(part, empty());
      node = node.folders.get(part);
    }
    node.files.push({ name: parts.at(-1), index, file });
  });
  return root;
}

function shortened(name, node) {
  while (node.folders.size === 1 && !node.files.length) {
    const [[inner, next]] = node.folders;
    [name, node] = [`${name}/${inner}`, next];
  }
  return [name, node];
}
