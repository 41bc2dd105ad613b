// Pictures that the agent looked at or made.
import { html } from "../html.js";

export function Picture({ item }) {
  const data = item.type === "imageGeneration" && /^[A-Za-z0-9+/=\s]+$/.test(item.result ?? "") ? `data:image/png;base64,${item.result}` : null;
  return html`<article class="picture" aria-label="Picture">
    <p class="hint">${item.type === "imageView" ? `Looked at ${item.path}` : item.revisedPrompt ?? "A picture"}</p>
    ${data && html`<img src=${data} alt=${item.revisedPrompt ?? "A picture that the agent made"} />`}
  </article>`;
}
