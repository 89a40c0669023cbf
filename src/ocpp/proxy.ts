import type { Logger } from "pino";
import { WebSocket } from "ws";

import { millis, minutes } from "../domain/units.ts";
import { backoff } from "../platform/clock.ts";
import type { Dialect } from "./wire/dialect.ts";
import {
  type Call,
  type Frame,
  type Payload,
  readFrame,
  type Reply,
  writeCall,
  writeReply,
} from "./wire/frame.ts";
import type { RelayStore } from "./relayStore.ts";

export interface UpstreamOptions {
  /** Without the identity. */
  readonly url: string;
  readonly identity: string;
  /** As the charger sent it. Null: it sent none. */
  readonly authorization: string | null;
  readonly ca: string | null;
  readonly dialect: Dialect;
  /** A CALL that the upstream does not answer within it is answered here, ms. */
  readonly deadline: number;
  readonly store: RelayStore;
  readonly random: () => number;
  readonly log: Logger;
  /** A CALL of the upstream to the charger, as it is. False: there is no room. */
  readonly toStation: (call: Call, text: string) => boolean;
}

/** Result of a CALL of the charger. `text`: the upstream's answer as it came. Null: it has to be answered here. */
export type Relayed = { readonly text: string; readonly reply: Reply } | null;

interface Pending {
  readonly settle: (relayed: Relayed) => void;
  readonly timer: NodeJS.Timeout;
}

const LARGEST_MESSAGE_BYTES = 1024 * 1024;
const FIRST_RETRY = millis(500);
const SLOWEST_RETRY = minutes(1);

/** The connection to another central system, for one charger: with its identity, protocol and credentials. */
export class Upstream implements Disposable {
  readonly #options: UpstreamOptions;
  readonly #pending = new Map<string, Pending>();
  /** The latest boot and the latest status of each connector that the upstream has not received. */
  readonly #missed = new Map<string, Call>();
  #renamed: ReadonlyMap<string, string>;
  #socket: WebSocket | null = null;
  #isUp = false;
  #isDelivering = false;
  #attempt = 0;
  /** Resolved when the first attempt has succeeded or failed. */
  readonly #firstAttempt = Promise.withResolvers<void>();
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly counts = { relayed: 0, answeredHere: 0, stored: 0, delivered: 0, lost: 0 };

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#renamed = options.store.renamed(options.identity);
    this.#connect();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Messages of transactions that wait for the upstream. */
  get waiting(): number {
    return this.#options.store.count(this.#options.identity);
  }

  /** Passes a CALL of the charger on. */
  async relay(call: Call, text: string): Promise<Relayed> {
    const { dialect } = this.#options;
    // A charger that connects and starts at once is not answered here before the upstream could be reached.
    await this.#firstAttempt.promise;
    // Transactions keep their order: nothing passes what waits.
    const mustWait = dialect.isOfTransaction(call) && this.#isBehind;
    const relayed = this.#isUp && !mustWait ? await this.#send(call, this.#outgoing(call, text)) : null;
    if (relayed !== null) {
      this.counts.relayed += 1;
      return relayed;
    }
    this.counts.answeredHere += 1;
    const key = dialect.snapshotKey(call);
    if (key !== null) this.#missed.set(key, call);
    return null;
  }

  /** Keeps a message that was answered here. It is on disk before the charger gets its answer. */
  keep(call: Call, localTransaction: string | null): void {
    const { store, identity, dialect } = this.#options;
    if (!dialect.isOfTransaction(call)) return;
    store.add(identity, call.action, JSON.stringify(call.payload), localTransaction);
    this.counts.stored += 1;
    if (this.#isUp) void this.#deliver();
  }

  /** Passes an answer of the charger to the upstream. */
  answer(text: string): void {
    this.#write(text);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#socket?.close(1000, "the charger disconnected");
    this.#fail();
  }

  get #isBehind(): boolean {
    return this.#isDelivering || this.waiting > 0;
  }

  #connect(): void {
    const { url, identity, authorization, ca, dialect, log } = this.#options;
    const socket = new WebSocket(`${url}/${encodeURIComponent(identity)}`, [dialect.subprotocol], {
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
      this.#attempt = 0;
      this.#firstAttempt.resolve();
      void this.#catchUp();
    });
    socket.on("message", (content: Buffer) => this.#onText(content.toString("utf8")));
    socket.on("error", (error) => (reason = error.message));
    socket.on("close", (code) => {
      this.#firstAttempt.resolve();
      if (this.#isClosed) return;
      this.counts.lost += 1;
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

  #onText(text: string): void {
    const frame = readFrame(text);
    if (frame.kind === "call") {
      const call = this.#incoming(frame);
      const asSent = call === frame ? text : writeCall(call.id, call.action, call.payload);
      if (!this.#options.toStation(call, asSent))
        this.#write(
          writeReply(call.id, { ok: false, code: "InternalError", description: "too many requests wait" }),
        );
    } else if (frame.kind !== "malformed") this.#settle(frame, text);
  }

  #settle(frame: Extract<Frame, { kind: "result" | "error" }>, text: string): void {
    const pending = this.#pending.get(frame.id);
    if (pending === undefined) return;
    this.#pending.delete(frame.id);
    clearTimeout(pending.timer);
    const reply: Reply =
      frame.kind === "result" ? { ok: true, payload: frame.payload } : { ok: false, ...frame };
    pending.settle({ text, reply });
  }

  #send({ id }: Pick<Call, "id">, text: string): Promise<Relayed> {
    const { promise, resolve } = Promise.withResolvers<Relayed>();
    const timer = setTimeout(() => {
      this.#pending.delete(id);
      resolve(null);
    }, this.#options.deadline);
    this.#pending.set(id, { settle: resolve, timer });
    this.#write(text);
    return promise;
  }

  #write(text: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text, () => undefined);
  }

  /** Unanswered calls of the charger are answered here. */
  #fail(): void {
    for (const { settle, timer } of this.#pending.values()) {
      clearTimeout(timer);
      settle(null);
    }
    this.#pending.clear();
  }

  /** The upstream is back: what it missed, in the order of a start, then the transactions. */
  async #catchUp(): Promise<void> {
    const missed = [...this.#missed.values()];
    this.#missed.clear();
    for (const call of missed) {
      const relayed = await this.#send(call, writeCall(call.id, call.action, call.payload));
      if (relayed === null) return;
    }
    await this.#deliver();
  }

  async #deliver(): Promise<void> {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    const { store, identity, dialect, log } = this.#options;
    try {
      for (
        let stored = store.first(identity);
        stored !== null && this.#isUp;
        stored = store.first(identity)
      ) {
        const payload = dialect.renameTransaction(JSON.parse(stored.payload) as Payload, this.#renamed);
        const id = `stored-${stored.seq}`;
        const relayed = await this.#send({ id }, writeCall(id, stored.action, payload));
        // An upstream that leaves a message unanswered gets it again on a new connection.
        if (relayed === null) return this.#socket?.terminate();
        if (!relayed.reply.ok)
          log.error(
            { station: identity, action: stored.action, reason: relayed.reply.code },
            "the upstream refused a stored message",
          );
        else if (stored.localTransaction !== null)
          this.#learn(stored.localTransaction, relayed.reply.payload);
        store.remove(stored.seq);
        this.counts.delivered += 1;
      }
    } finally {
      this.#isDelivering = false;
    }
  }

  #learn(local: string, payload: Payload): void {
    const { store, identity, dialect } = this.#options;
    const upstream = dialect.transactionIn(payload);
    if (upstream === null || upstream === local) return;
    store.rename(identity, local, upstream);
    this.#renamed = store.renamed(identity);
  }

  /** A CALL of the charger in a transaction that the upstream knows by another id. */
  #outgoing(call: Call, text: string): string {
    const payload = this.#options.dialect.renameTransaction(call.payload, this.#renamed);
    return payload === call.payload ? text : writeCall(call.id, call.action, payload);
  }

  #incoming(call: Call): Call {
    const local = new Map([...this.#renamed].map(([ours, theirs]) => [theirs, ours]));
    const payload = this.#options.dialect.renameTransaction(call.payload, local);
    return payload === call.payload ? call : { ...call, payload };
  }
}
