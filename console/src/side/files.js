// Files of the workspace, folder by folder.
import { html, useEffect, useState } from "../html.js";
import { client } from "../live.js";

const LARGEST = 200_000;

export function Files({ model }) {
  const root = model.settings.value?.cwd;
  const [path, setPath] = useState(root);
  const [entries, setEntries] = useState([]);
  const [file, setFile] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setProblem("");
    client.request("fs/readDirectory", { path }).then((answer) => setEntries(sorted(answer.entries)), (error) => setProblem(error.message));
  }, [path]);
  const show = (name) => client.request("fs/readFile", { path: `${path}/${name}` }).then((answer) => setFile({ name, text: decode(answer.dataBase64) }), (error) => setProblem(error.message));
  return html`<section class="files" aria-label="Files">
    <p class="hint">${path}</p>
    ${problem && html`<p class="problem">${problem}</p>`}
    ${file ? html`<button class="plain" onClick=${() => setFile(null)}>← ${file.name}</button><pre tabindex="0" aria-label=${file.name}>${file.text}</pre>`
    : html`<ul>
      ${path !== root && html`<li><button class="plain" onClick=${() => setPath(path.replace(/\/[^/]*$/, ""))}>..</button></li>`}
      ${entries.map((entry) => html`<li key=${entry.fileName}><button class="plain" onClick=${() => (entry.isDirectory ? setPath(`${path}/${entry.fileName}`) : show(entry.fileName))}>${entry.fileName}${entry.isDirectory ? "/" : ""}</button></li>`)}
    </ul>`}
  </section>`;
}

const sorted = (entries) => [...entries].sort((a, b) => b.isDirectory - a.isDirectory || a.fileName.localeCompare(b.fileName)).slice(0, 1000);

function decode(base64) {
  const bytes = Uint8Array.from(atob(base64.slice(0, LARGEST * 2)), (char) => char.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  return text.length > LARGEST ? `${text.slice(0, LARGEST)}…` : text;
}
