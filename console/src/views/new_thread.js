// The start of a thread: a folder and the first message.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { send, startThread } from "../actions.js";
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
          <input type="text" aria-label="Folder" list="folders" value=${chosen} placeholder="The folder of the server" spellcheck="false" onInput=${(event) => setFolder(event.target.value)} />
          <datalist id="folders">${folders.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>
        </label>
        <${Composer} model=${null} onFirst=${onFirst} />` : html`<p>Choose a thread to follow it.</p>`}
    </div>
  </main>`;
}
