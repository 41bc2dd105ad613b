// The account: who is signed in, and the ways to sign in.
import { html, useEffect, useState } from "../html.js";
import * as state from "../state.js";
import { client } from "../live.js";
import { attempt } from "../actions.js";
import { useAnswer } from "./settings.js";

export function Account() {
  const [key, setKey] = useState("");
  const [login, setLogin] = useState(null);
  const [again, setAgain] = useState(0);
  const answer = useAnswer("account/read", { refreshToken: false }, state.accountChanges.value + again);
  const account = answer?.result?.account;
  const ended = state.loginEnded.value;
  useEffect(() => {
    if (!login || !ended || ended.loginId !== login.loginId) return;
    setLogin(null);
    if (!ended.success) state.notify(ended.error ?? "The sign-in failed.");
  }, [ended, login]);
  const withKey = (event) => {
    event.preventDefault();
    attempt(async () => {
      await client.request("account/login/start", { type: "apiKey", apiKey: key });
      setKey("");
      state.notify("Signed in.", "info");
      setAgain(again + 1);
    });
  };
  const start = (type) => attempt(async () => {
    const started = await client.request("account/login/start", { type });
    setLogin(started);
    if (safe(started.authUrl)) window.open(started.authUrl, "_blank", "noopener");
  });
  const cancel = () => attempt(async () => {
    await client.request("account/login/cancel", { loginId: login.loginId });
    setLogin(null);
  });
  const signOut = () => attempt(() => client.request("account/logout").then(() => setAgain(again + 1)));
  return html`<section class="card"><h2>Account</h2>
    ${answer?.error && html`<p class="problem">${answer.error.message}</p>`}
    ${answer?.result && html`<p>${words(answer.result)}</p>`}
    ${state.mayDrive.value && account && html`<button onClick=${signOut}>Sign out</button>`}
    ${state.mayDrive.value && answer && !account && !login && html`
      <form onSubmit=${withKey}><label class="field"><span>API key</span><input type="password" autocomplete="off" value=${key} onInput=${(event) => setKey(event.target.value)} /></label>
        <div class="decisions"><button disabled=${!key.trim()}>Sign in with the key</button></div></form>
      <div class="decisions"><button onClick=${() => start("chatgpt")}>Sign in with ChatGPT</button><button onClick=${() => start("chatgptDeviceCode")}>With a code</button></div>
      <p class="hint">The first needs a browser on the machine of the server; the code works from any.</p>`}
    ${login && html`<div class="login" role="status" aria-label="Sign-in">${login.userCode
      ? html`<p>Open <a href=${safe(login.verificationUrl)} target="_blank" rel="noopener noreferrer">${login.verificationUrl}</a> and enter <code class="user-code">${login.userCode}</code></p>`
      : html`<p>Go on in <a href=${safe(login.authUrl)} target="_blank" rel="noopener noreferrer">the other tab</a>.</p>`}
      <div class="decisions"><span class="hint">Waiting for the sign-in to end.</span><button onClick=${cancel}>Cancel</button></div></div>`}
  </section>`;
}

function words({ account, requiresOpenaiAuth }) {
  if (!account) return requiresOpenaiAuth ? "Not signed in." : "The provider in use needs no account.";
  if (account.type === "apiKey") return "Signed in with an API key.";
  return `Signed in${account.email ? ` as ${account.email}` : ""}${account.planType ? `, plan ${account.planType}` : ""}.`;
}

const safe = (url) => (/^https?:\/\//i.test(url ?? "") ? url : null);
