// Pictures that the agent looked at or made.
import { html, useEffect, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";

export function Picture({ item }) {
  const made = item.type === "imageGeneration" && /^[A-Za-z0-9+/=\s]+$/.test(item.result ?? "") ? `data:image/png;base64,${item.result}` : null;
  const seen = useFile(item.type === "imageView" ? item.path : null);
  const source = made ?? seen;
  return html`<article class="picture" aria-label="Picture">
    <p class="hint">${item.type === "imageView" ? `Looked at ${item.path}` : item.revisedPrompt ?? "A picture"}</p>
    ${source && html`<img src=${source} alt=${item.revisedPrompt ?? item.path ?? "A picture that the agent made"} />`}
  </article>`;
}

const TYPES = { png: "png", jpg: "jpeg", jpeg: "jpeg", gif: "gif", webp: "webp" };

/** A picture of the server's disk, for sessions that may read files. */
function useFile(path) {
  const [source, setSource] = useState(null);
  useEffect(() => {
    const type = TYPES[path?.split(".").at(-1).toLowerCase()];
    if (!type || !state.mayDrive.peek()) return;
    client.request("fs/readFile", { path }).then((answer) => setSource(`data:image/${type};base64,${answer.dataBase64}`), () => {});
  }, [path]);
  return source;
}
