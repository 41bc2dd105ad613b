// A client of the app-server protocol over a websocket: requests with answers, notifications, server requests,
// and a connection that is made again when it is lost. It knows nothing about the page.

/** An error that the server answered. */
export class RpcError extends Error {
  /** @param {{code: number, message: string, data?: unknown}} error */
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }
}

/** A request that had no answer when the connection was lost. Whether it was carried out is unknown. */
export class Disconnected extends Error {}

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 8000;

/** A connection that is not ready after this long is given up and made again. */
const READY_MS = 30_000;

/** A connection without a message for this long is asked for one, and given up without an answer for as long. */
const QUIET_MS = 20_000;

/**
 * @typedef {Object} Handlers
 * @property {(state: "connecting" | "connected" | "reconnecting" | "refused") => void} onState
 * @property {() => Promise<void>} onConnected  called after every handshake, before other messages are looked at
 * @property {(method: string, params: any, eventId?: string) => void} onNotification
 * @property {(id: number | string, method: string, params: any, eventId?: string) => void} onServerRequest
 */

export class Client {
  /** @param {string} url @param {Handlers} handlers */
  constructor(url, handlers) {
    this.url = url;
    this.handlers = handlers;
    this.nextId = 1;
    /** @type {Map<number, {resolve: Function, reject: Function}>} */
    this.waiting = new Map();
    this.retry = FIRST_RETRY_MS;
    this.wasConnected = false;
    this.timer = 0;
    this.lastMessage = 0;
    /** @type {Set<(method: string | null, params?: any) => void>} */
    this.listeners = new Set();
    setInterval(() => this.probe(), QUIET_MS);
    window.addEventListener("online", () => this.connectNow());
    document.addEventListener("visibilitychange", () => document.hidden || (this.connectNow(), this.probe()));
  }

  connect() {
    this.handlers.onState(this.wasConnected ? "reconnecting" : "connecting");
    const socket = new WebSocket(this.url);
    this.socket = socket;
    const tooLate = setTimeout(() => this.drop(socket), READY_MS);
    socket.onopen = () => this.handshake().then(() => clearTimeout(tooLate), () => this.drop(socket));
    socket.onmessage = (message) => {
      this.lastMessage = Date.now();
      if (this.socket === socket) this.receive(JSON.parse(message.data));
    };
    socket.onclose = () => this.socket === socket && this.lost();
  }

  /** Finds out whether a quiet connection still exists: a machine that slept keeps sockets that nobody answers. */
  async probe() {
    const socket = this.socket;
    if (socket?.readyState !== WebSocket.OPEN || !this.wasConnected || Date.now() - this.lastMessage < QUIET_MS) return;
    const timer = setTimeout(() => this.drop(socket), QUIET_MS);
    await this.request("thread/loaded/list", { limit: 1 }).catch(() => {});
    clearTimeout(timer);
  }

  /** Gives a connection up at once; its close may take minutes to be noticed. */
  drop(socket) {
    if (this.socket !== socket) return;
    socket.close();
    this.lost();
  }

  connectNow() {
    if (this.socket) return;
    clearTimeout(this.timer);
    this.connect();
  }

  async handshake() {
    await this.request("initialize", {
      clientInfo: { name: "loomd_console", title: "loomd console", version: "1" },
      // The last two are extensions of this server; others ignore them.
      capabilities: /** @type {any} */ ({ experimentalApi: true, protocolVersion: "0.166.0", eventIds: true }),
    });
    this.send({ method: "initialized" });
    this.wasConnected = true;
    this.retry = FIRST_RETRY_MS;
    await this.handlers.onConnected();
    this.handlers.onState("connected");
  }

  lost() {
    this.socket = null;
    for (const { reject } of this.waiting.values()) reject(new Disconnected("the connection was lost"));
    this.waiting.clear();
    for (const listener of [...this.listeners]) listener(null);
    this.handlers.onState(this.wasConnected ? "reconnecting" : "connecting");
    this.timer = setTimeout(() => this.connect(), this.retry * (0.75 + Math.random() / 2));
    this.retry = Math.min(this.retry * 2, LAST_RETRY_MS);
  }

  /** Resolves with the params of the first notification that `is` is true for; rejects when the connection is lost. */
  next(is) {
    return new Promise((resolve, reject) => {
      const listener = (method, params) => {
        if (method !== null && !is(method, params)) return;
        this.listeners.delete(listener);
        if (method === null) reject(new Disconnected("the connection was lost"));
        else resolve(params);
      };
      this.listeners.add(listener);
    });
  }

  /**
   * Sends a request; resolves with its result. The params are checked against those that `generate-ts` describes.
   * @template {import("protocol").Method} M
   * @param {M} method
   * @param {import("protocol").ParamsOf<M>} [params]
   * @returns {Promise<any>}
   */
  request(method, params = /** @type {any} */ ({})) {
    return new Promise((resolve, reject) => {
      if (this.socket?.readyState !== WebSocket.OPEN) {
        reject(new Disconnected("not connected"));
        return;
      }
      const id = this.nextId++;
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  /** Answers a server request. */
  answer(id, result) {
    if (this.socket?.readyState !== WebSocket.OPEN) throw new Disconnected("not connected");
    this.send({ id, result });
  }

  send(message) {
    this.socket?.send(JSON.stringify(message));
  }

  receive(message) {
    if (message.method !== undefined && message.id !== undefined) {
      this.handlers.onServerRequest(message.id, message.method, message.params, message.eventId);
    } else if (message.method !== undefined) {
      for (const listener of [...this.listeners]) listener(message.method, message.params);
      this.handlers.onNotification(message.method, message.params, message.eventId);
    } else {
      const waiting = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) waiting?.reject(new RpcError(message.error));
      else waiting?.resolve(message.result);
    }
  }
}
