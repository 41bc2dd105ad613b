// Requests that the check must find, else it checks nothing.
import { client } from "../../src/live.js";

export function wrong() {
  // @ts-expect-error: there is no such method
  client.request("thread/begin", {});
  // @ts-expect-error: there is no such member
  client.request("thread/start", { folder: "/" });
  // @ts-expect-error: the member is a string
  client.request("thread/start", { cwd: 1 });
}
