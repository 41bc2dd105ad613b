// The requests of the page, by method. `generated` is the output of `loomd app-server generate-ts`.
import type { ClientRequest as Generated } from "generated/ClientRequest";

/** Requests that a server may not have; the page does without them then. */
type Optional = { method: "approval/list"; params: { threadId?: string; state?: "open" | "decided"; cursor?: string; limit?: number } };

export type Method = (Generated | Optional)["method"];
/** Members of params beyond the schemas: see docs/events.md and docs/operations.md. */
type Extensions = { idempotencyKey?: string; afterEvent?: string; budget?: Record<string, number> };
/** Names and types of members are checked. Which may be left out is not: the schemas do not say it of all. */
type Lenient<P> = P extends object ? Partial<P> & Extensions : {};
export type ParamsOf<M extends Method> = Lenient<Extract<Generated | Optional, { method: M }>["params"]>;
export type { SandboxPolicy } from "generated/v2/SandboxPolicy";
export type { ThreadSourceKind } from "generated/v2/ThreadSourceKind";
export type { UserInput } from "generated/v2/UserInput";
