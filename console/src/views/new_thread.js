// The start of a thread: a folder and the first message.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { send, startThread } from "../actions.js";
import { folderName } from "./sidebar.js";
import { Composer } from "../composer/composer.js";

export function NewThread() {
  const folders = [...new Set([...state.threads.value.values()].map((thread) => thread.cwd))].slice(0, 30);
  const [folder, setFolder] = useState(null);
  const chosen = folder ?? state.read("folder", null) ?? folders[0] ?? "";
  const onFirst = async (input) => {
    const model = await startThread(chosen.trim());
    state.keep("folder", chosen.trim());
    await send(model, input);
  };
  return html`<main class="new">
    <header class="head only-small"><button class="plain" aria-label="Show the threads" onClick=${() => (state.sidebarShown.value = true)}>☰</button></header>
    <div class="start">
      <h1>What should be done?</h1>
      ${state.mayDrive.value ? html`
        <label class="folder"><span>Folder</span>
          <input type="text" aria-label="Folder" value=${chosen} placeholder="The folder of the server" spellcheck="false" onInput=${(event) => setFolder(event.target.value)} />
        </label>
        ${folders.length > 1 && html`<div class="folders" role="group" aria-label="Known folders">${folders.slice(0, 6).map((one) => html`<button key=${one} title=${one} aria-pressed=${one === chosen} onClick=${() => setFolder(one)}>${folderName(one)}</button>`)}</div>`}
        <${Composer} model=${null} onFirst=${onFirst} />` : html`<p>Choose a thread to follow it.</p>`}
    </div>
  </main>`;
}
