// What approvals say, in words. `approval/list` is an extension; its times are Unix seconds.

const WORDS = {
  accept: "Allowed once",
  approved: "Allowed once",
  acceptForSession: "Allowed for the session",
  approved_for_session: "Allowed for the session",
  decline: "Declined",
  denied: "Declined",
  cancel: "Declined, turn ended",
  abort: "Declined, turn ended",
};

/** A decision as it was sent: a word, an object with one member that is a rule, or an answer. */
export function decisionWords(decision) {
  if (decision == null) return "Settled";
  const inner = typeof decision === "object" && "decision" in decision ? decision.decision : decision;
  if (typeof inner === "string") return WORDS[inner] ?? inner;
  if (inner.acceptWithExecpolicyAmendment || inner.applyNetworkPolicyAmendment) return "Always allowed";
  if (inner.action) return WORDS[inner.action] ?? inner.action;
  if (inner.permissions) return Object.keys(inner.permissions).length ? "Granted" : "Declined";
  return "Answered";
}

/** What became of an approval. */
export function outcomeWords({ state, decision, defaultDecision }) {
  if (state === "open") return "Waiting";
  if (state === "cancelled") return "Not decided";
  return decisionWords(decision ?? defaultDecision);
}

/** Who decided: a client, the role of its session, or the server itself. */
export function decider(by) {
  if (!by) return "";
  if (by.connection === "deadline") return "the deadline";
  const client = { loomd_console: "the console" }[by.client] ?? by.client ?? (by.connection ? `connection ${by.connection}` : "the server");
  return [client, by.role && by.role !== "drive" && `(${by.role})`, by.client && by.connection && `· connection ${by.connection}`].filter(Boolean).join(" ");
}

/** What was asked, in a line. */
export function subject({ method, params }) {
  if (params?.command) return params.command;
  if (method?.includes("fileChange")) return "a change of files";
  if (params?.questions) return params.questions.map((question) => question.question).join(" ");
  return params?.message ?? params?.reason ?? method ?? "";
}

export const timeOf = (seconds) => (seconds == null ? null : new Date(seconds * 1000));
