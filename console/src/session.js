// Who this browser is to the server: a link's code becomes a cookie that scripts cannot read.

const RETRY_MS = 1000;

/** Exchanges the code of the address, if there is one, and returns the role of the session, or why there is none. */
export async function signIn() {
  const code = location.hash.slice(1);
  if (!code || code.includes("/")) return known();
  history.replaceState(null, "", "/");
  const opened = await ask({ method: "POST", body: JSON.stringify({ code }) });
  if (opened.ok) return opened.json();
  // The link was used before, perhaps by this browser.
  const session = await known();
  return session.problem ? { problem: await opened.text() } : session;
}

async function known() {
  const answer = await ask();
  return answer.ok ? answer.json() : { problem: await answer.text() };
}

/** Asks until there is an answer: a server that is away or starting says nothing about the session. */
async function ask(request = {}) {
  for (;;) {
    const answer = await fetch("/console/session", request).catch(() => null);
    if (answer && answer.status < 500) return answer;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
