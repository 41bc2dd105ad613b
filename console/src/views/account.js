// The account: who is signed in, and the ways to sign in.
import { html, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { attempt } from "../actions.js";
import { useAnswer } from "./settings.js";

export function Account() {
  const [again, setAgain] = useState(0);
  const [key, setKey] = useState("");
  const [device, setDevice] = useState(null);
  const answer = useAnswer("account/read", { refreshToken: false }, again);
  const account = answer?.result?.account;
  const reload = () => setAgain(again + 1);
  const withKey = (event) => {
    event.preventDefault();
    attempt(async () => {
      await client.request("account/login/start", { type: "apiKey", apiKey: key });
      setKey("");
      reload();
    });
  };
  const withDevice = () => attempt(async () => setDevice(await client.request("account/login/start", { type: "chatgptDeviceCode" })));
  const signOut = () => attempt(() => client.request("account/logout").then(reload));
  return html`<section class="card"><h2>Account</h2>
    ${answer?.error && html`<p class="problem">${answer.error.message}</p>`}
    <p>${account ? `Signed in${account.email ? ` as ${account.email}` : " with an API key"}` : answer?.result?.requiresOpenaiAuth ? "Not signed in." : "The provider needs no account."}</p>
    ${state.mayDrive.value && (account ? html`<button onClick=${signOut}>Sign out</button>` : html`
      <form onSubmit=${withKey}><label class="field"><span>API key</span><input type="password" autocomplete="off" value=${key} onInput=${(event) => setKey(event.target.value)} /></label>
        <button disabled=${!key.trim()}>Sign in with the key</button> <button type="button" onClick=${withDevice}>Sign in with ChatGPT</button></form>
      ${device && html`<p>Open <a href=${safe(device.verificationUrl)} target="_blank" rel="noopener noreferrer">${device.verificationUrl}</a> and enter <code>${device.userCode}</code>. <button class="plain" onClick=${reload}>Done</button></p>`}`)}
  </section>`;
}

const safe = (url) => (/^https?:\/\//i.test(url) ? url : null);
