// Who this browser is to the server: a link's code becomes a cookie that scripts cannot read.

/** Exchanges the code of the address, if there is one, and returns the role of the session, or why there is none. */
export async function signIn() {
  const code = location.hash.slice(1);
  if (code && !code.includes("/")) {
    history.replaceState(null, "", "/");
    const opened = await fetch("/console/session", { method: "POST", body: JSON.stringify({ code }) });
    if (opened.ok) return opened.json();
    const known = await fetch("/console/session");
    return known.ok ? known.json() : { problem: await opened.text() };
  }
  const known = await fetch("/console/session");
  return known.ok ? known.json() : { problem: await known.text() };
}
