// The start of the page: sign in, connect, show.
import { effect, html, render } from "./html.js";
import { signIn } from "./session.js";
import { client, openThread } from "./live.js";
import { App } from "./views/app.js";
import { SignedOut } from "./views/signed_out.js";
import { followKeys } from "./keys.js";
import * as state from "./state.js";

const root = document.getElementById("app");

async function start() {
  const wanted = location.hash.match(/^#\/thread\/(.+)$/)?.[1];
  const session = await signIn();
  root.replaceChildren();
  if (session.problem) {
    render(html`<${SignedOut} problem=${session.problem} />`, root);
    return;
  }
  state.role.value = session.role;
  render(html`<${App} />`, root);
  followKeys();
  effect(() => {
    const waiting = state.waitingCount.value;
    document.title = waiting ? `(${waiting}) waiting · loomd` : "loomd";
    if (waiting) navigator.setAppBadge?.(waiting)?.catch(() => {});
    else navigator.clearAppBadge?.()?.catch(() => {});
  });
  client.connect();
  if (wanted) {
    const stop = effect(() => {
      if (state.connection.value !== "connected") return;
      openThread(wanted).catch((error) => state.notify(error.message));
      queueMicrotask(() => stop());
    });
  }
}

window.addEventListener("hashchange", () => {
  const id = location.hash.match(/^#\/thread\/(.+)$/)?.[1];
  if (id && id !== state.open.peek()?.id) openThread(id).catch((error) => state.notify(error.message));
  else if (id) state.view.value = "thread";
});

start();
