// Files of the workspace, folder by folder. What is shown is read again when a turn has ended.
import { html, useEffect, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { familyOf } from "../highlight.js";
import { Lines } from "../parts/code.js";

const LARGEST = 200_000;
/** Larger files are shown without colours. */
const COLOURED = 60_000;

export function Files({ model }) {
  const root = model.settings.value?.cwd;
  const [path, setPath] = useState(root);
  const [entries, setEntries] = useState(null);
  const [file, setFile] = useState(null);
  const [problem, setProblem] = useState("");
  const read = (full) => client.request("fs/readFile", { path: full }).then((answer) => setFile(shownFile(full, answer.dataBase64)), (error) => setProblem(error.message));
  useEffect(() => {
    setProblem("");
    client.request("fs/readDirectory", { path }).then((answer) => setEntries(sorted(answer.entries)), (error) => setProblem(error.message));
    if (file) read(file.path);
  }, [path, model.turn.value === null]);
  if (!state.mayDrive.value) return html`<p class="empty">This session may not read files.</p>`;
  const mention = () => window.dispatchEvent(new CustomEvent("loomd:compose", { detail: `@${file.path.slice(root.length + 1)} ` }));
  return html`<section class="files" aria-label="Files">
    <${Crumbs} root=${root} path=${file?.path ?? path} go=${(to) => (setFile(null), setPath(to))} />
    ${problem && html`<p class="problem">${problem}</p>`}
    ${file ? html`<div class="bar"><span class="hint">${file.size}</span><button class="plain" onClick=${mention}>Mention in the message</button></div>
      ${file.picture ? html`<img src=${file.picture} alt=${file.path} />` : html`<pre tabindex="0" aria-label=${file.path}><${Lines} text=${file.text} family=${file.text.length < COLOURED ? familyOf(file.path) : null} /></pre>`}`
    : html`<ul>${(entries ?? []).map((entry) => html`<li key=${entry.fileName}><button class=${`plain ${entry.isDirectory ? "directory" : ""}`} onClick=${() => (entry.isDirectory ? setPath(`${path}/${entry.fileName}`) : read(`${path}/${entry.fileName}`))}>${entry.fileName}${entry.isDirectory ? "/" : ""}</button></li>`)}
      ${entries?.length === 0 && html`<li class="empty">The folder is empty.</li>`}</ul>`}
  </section>`;
}

/** The way from the workspace down to here, each part a button. */
function Crumbs({ root, path, go }) {
  const parts = path.slice(root.length).split("/").filter(Boolean);
  const name = root.split("/").filter(Boolean).at(-1) ?? "/";
  return html`<nav class="crumbs" aria-label="Folder of the workspace"><button class="plain" title=${root} onClick=${() => go(root)}>${name}</button>
    ${parts.map((part, index) => html`<span aria-hidden="true">/</span>${index === parts.length - 1 ? html`<span class="path">${part}</span>` : html`<button class="plain" onClick=${() => go(`${root}/${parts.slice(0, index + 1).join("/")}`)}>${part}</button>`}`)}
  </nav>`;
}

const sorted = (entries) => [...entries].sort((a, b) => b.isDirectory - a.isDirectory || a.fileName.localeCompare(b.fileName)).slice(0, 1000);

const PICTURES = { png: "png", jpg: "jpeg", jpeg: "jpeg", gif: "gif", webp: "webp" };

function shownFile(path, base64) {
  const type = PICTURES[path.split(".").at(-1).toLowerCase()];
  const size = `${Math.ceil((base64.length * 3) / 4 / 1024)} KB`;
  if (type) return { path, size, picture: `data:image/${type};base64,${base64}` };
  const bytes = Uint8Array.from(atob(base64.slice(0, LARGEST * 2)), (char) => char.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  if (text.slice(0, 8000).includes("\0")) return { path, size, text: "A file that is no text." };
  return { path, size, text: text.length > LARGEST ? `${text.slice(0, LARGEST)}…` : text };
}
