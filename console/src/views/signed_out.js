// What a browser without a session sees.
import { html } from "../html.js";

export function SignedOut({ problem }) {
  return html`<main class="center">
    <h1>loomd</h1>
    <p>${problem}</p>
    <p>Make a link at the terminal and open it here:</p>
    <pre tabindex="0"><code>loomd console link</code></pre>
  </main>`;
}
