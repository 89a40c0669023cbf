import type { Logger } from "pino";
import { WebSocket } from "ws";

import { type Millis, millis, minutes } from "../domain/units.ts";
import { backoff } from "../platform/clock.ts";
import { type Call, type Frame, readFrame, type Reply } from "./wire/frame.ts";

export interface UpstreamLinkOptions {
  /** Without the identity. */
  readonly url: string;
  readonly identity: string;
  /** Text of the charger, unchanged. Null: it sent none. */
  readonly authorization: string | null;
  /** Authority of the upstream's certificate, read at each attempt. Null: those of the system. */
  readonly ca: () => string | null;
  readonly subprotocol: string;
  /** A CALL that the upstream does not answer within it counts as unanswered. */
  readonly deadline: Millis;
  /** The upstream refuses `subprotocol`, as far as an attempt shows. */
  readonly onVersionRefused: () => void;
  /** The end of the charger's former connection. Two of one identity would end each other. */
  readonly former: Promise<void>;
  readonly random: () => number;
  readonly log: Logger;
}

export interface UpstreamEvents {
  readonly onUp: () => void;
  readonly onDown: () => void;
  readonly onCall: (call: Call, text: string) => void;
  /** An answer after its deadline. */
  readonly onLate: (id: string, reply: Reply) => void;
}

/** The upstream's answer, as it came and as read. */
export interface Answered {
  readonly text: string;
  readonly reply: Reply;
}

interface Pending {
  readonly settle: (answered: Answered | null) => void;
  readonly timer: NodeJS.Timeout;
}

const LARGEST_MESSAGE_BYTES = 1024 * 1024;
const FIRST_RETRY = millis(500);
const SLOWEST_RETRY = minutes(1);
const PING_EVERY = millis(30_000);

/** Some systems answer a version that they do not speak without one, others (SteVe) with 404, as an unknown charger. */
const VERSION_REFUSED = /subprotocol|response: 40[04]$/;

/** The connection to another central system, for one charger. It is opened again for as long as the charger is there. */
export class UpstreamLink implements Disposable {
  readonly #options: UpstreamLinkOptions;
  readonly #events: UpstreamEvents;
  readonly #pending = new Map<string, Pending>();
  #socket: WebSocket | null = null;
  #isUp = false;
  #hasBeenUp = false;
  /** False: no message and no pong since the last ping. */
  #isAlive = true;
  #attempt = 0;
  readonly #firstAttempt = Promise.withResolvers<void>();
  #retry: NodeJS.Timeout | undefined;
  readonly #pinging: NodeJS.Timeout;
  #isClosed = false;
  /** Connections that ended, and attempts that failed. */
  lost = 0;

  constructor(options: UpstreamLinkOptions, events: UpstreamEvents) {
    this.#options = options;
    this.#events = events;
    this.#pinging = setInterval(() => this.#ping(), PING_EVERY);
    void options.former.then(() => {
      if (!this.#isClosed) this.#connect();
    });
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** The charger has disconnected. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolved when the first attempt has succeeded or failed. */
  get tried(): Promise<void> {
    return this.#firstAttempt.promise;
  }

  /** The charger has disconnected. Answers that are under way can still come, until the end. */
  leave(): void {
    this.#isClosed = true;
    this.#isUp = false;
    clearTimeout(this.#retry);
    clearInterval(this.#pinging);
    this.#firstAttempt.resolve();
  }

  /** Null: no answer within the deadline, or the connection ended. */
  call(id: string, text: string): Promise<Answered | null> {
    const { promise, resolve } = Promise.withResolvers<Answered | null>();
    const timer = setTimeout(() => {
      this.#pending.delete(id);
      resolve(null);
    }, this.#options.deadline);
    this.#pending.set(id, { settle: resolve, timer });
    this.send(text);
    return promise;
  }

  send(text: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text, () => undefined);
  }

  /** Ends the connection, and opens another one. */
  renew(): void {
    this.#socket?.terminate();
  }

  [Symbol.dispose](): void {
    this.leave();
    this.#socket?.close(1000, "the charger disconnected");
    this.#fail();
  }

  #connect(): void {
    const { url, identity, authorization, subprotocol, log } = this.#options;
    const ca = this.#options.ca();
    const socket = new WebSocket(`${url}/${encodeURIComponent(identity)}`, [subprotocol], {
      ...(authorization === null ? {} : { headers: { authorization } }),
      ...(ca === null ? {} : { ca }),
      handshakeTimeout: 10_000,
      maxPayload: LARGEST_MESSAGE_BYTES,
      perMessageDeflate: false,
    });
    this.#socket = socket;
    let reason = "";
    socket.on("open", () => {
      log.info({ station: identity }, "the upstream is connected");
      this.#isUp = true;
      this.#hasBeenUp = true;
      this.#isAlive = true;
      this.#attempt = 0;
      this.#firstAttempt.resolve();
      this.#events.onUp();
    });
    socket.on("pong", () => (this.#isAlive = true));
    socket.on("message", (content: Buffer) => {
      this.#isAlive = true;
      this.#onText(content.toString("utf8"));
    });
    socket.on("error", (error) => (reason = error.message));
    socket.on("close", (code) => {
      // A proxy answers 404 as well, while the system behind it is away.
      if (VERSION_REFUSED.test(reason) && !this.#hasBeenUp) this.#options.onVersionRefused();
      this.#firstAttempt.resolve();
      if (this.#isClosed) return this.#fail();
      this.lost += 1;
      if (this.#isUp || this.#attempt === 0)
        log.warn({ station: identity, reason: reason || `closed with code ${code}` }, "the upstream is away");
      this.#isUp = false;
      this.#fail();
      this.#retry = setTimeout(
        () => this.#connect(),
        backoff((this.#attempt += 1), this.#options.random(), FIRST_RETRY, SLOWEST_RETRY),
      );
    });
  }

  /** Finds a connection that the network has lost. */
  #ping(): void {
    if (!this.#isUp) return;
    if (!this.#isAlive) this.#socket?.terminate();
    this.#isAlive = false;
    this.#socket?.ping();
  }

  #onText(text: string): void {
    const frame = readFrame(text);
    if (frame.kind === "call") this.#events.onCall(frame, text);
    else if (frame.kind !== "malformed") this.#settle(frame, text);
  }

  #settle(frame: Extract<Frame, { kind: "result" | "error" }>, text: string): void {
    const reply: Reply =
      frame.kind === "result" ? { ok: true, payload: frame.payload } : { ok: false, ...frame };
    const pending = this.#pending.get(frame.id);
    if (pending === undefined) return this.#events.onLate(frame.id, reply);
    this.#pending.delete(frame.id);
    clearTimeout(pending.timer);
    pending.settle({ text, reply });
  }

  #fail(): void {
    for (const { settle, timer } of this.#pending.values()) {
      clearTimeout(timer);
      settle(null);
    }
    this.#pending.clear();
    this.#events.onDown();
  }
}
