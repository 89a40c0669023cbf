import { millis } from "../domain/units.ts";
import { NEXT_REMOVAL, type RelayStore, type StoredMessage, TransactionNames } from "./relayStore.ts";
import { type OwnAnswer, pauseAfter, refusal, type Relayed, renamedReply, Repeats, FULL } from "./repeats.ts";
import { type Answered, UpstreamLink, type UpstreamLinkOptions } from "./upstreamLink.ts";
import type { Dialect } from "./wire/dialect.ts";
import { type Call, type Payload, type Reply, writeCall, writeReply } from "./wire/frame.ts";
import { messageOf } from "../platform/text.ts";

export interface UpstreamOptions extends Omit<UpstreamLinkOptions, "subprotocol"> {
  readonly dialect: Dialect;
  readonly store: RelayStore;
  /** A CALL of the upstream to the charger, as it is. False: there is no room. */
  readonly toStation: (call: Call, text: string) => boolean;
}

/** Why the oldest stored message waits. */
interface Hold {
  /** Id of the CALL whose answer may still come. Null: the upstream refused it for now, or it cannot be removed. */
  readonly id: string | null;
  readonly stored: StoredMessage;
  readonly timer: NodeJS.Timeout;
}

/** Calls of one charger that wait for the upstream. A charger has one in flight. */
const MOST_QUEUED = 100;
/** Connectors whose missed status is kept. */
const MOST_MISSED = 200;
/** Longest wait for the answer to a start or a stop after the charger has disconnected. */
const LONGEST_FAREWELL = millis(5_000);

/**
 * The connection to another central system, for one charger: with its identity, protocol and credentials.
 *
 * A message belongs to the bridge from the moment in which the bridge answers it. So it is stored before that answer,
 * and only then. The charger repeats what got no answer. Towards the upstream one CALL is in flight at a time.
 *
 * A CALL whose answer was lost because the upstream's connection was cut is sent again under its own id: whether the
 * upstream had received it cannot be known.
 */
export class Upstream {
  readonly #options: UpstreamOptions;
  readonly #link: UpstreamLink;
  readonly #repeats: Repeats;
  /** A start or a stop was sent, and its answer can still come. */
  #isOnceInFlight = false;
  /** The latest boot and the latest status of each connector that the upstream has not received. */
  readonly #missed = new Map<string, Call>();
  readonly #names: TransactionNames;
  /** End of the last CALL to the upstream that was queued. */
  #last: Promise<unknown> = Promise.resolve();
  #queued = 0;
  /** Null: the oldest stored message may be sent. */
  #hold: Hold | null = null;
  /** Refusals of the oldest stored message. */
  #refusals = 0;
  readonly #counts = { relayed: 0, answeredHere: 0, stored: 0, delivered: 0, repeated: 0, refused: 0 };

  constructor(options: UpstreamOptions) {
    this.#options = options;
    const { store, identity, dialect, log } = options;
    this.#names = new TransactionNames(store, identity, dialect, log);
    this.#repeats = new Repeats(store, identity, dialect, log);
    this.#link = new UpstreamLink(
      { ...options, subprotocol: dialect.subprotocol },
      {
        onUp: () => void this.#catchUp(),
        onDown: () => this.#release(),
        onCall: (call, text) => this.#onCall(call, text),
        onLate: (id, reply) => this.#onLate(id, reply),
      },
    );
  }

  get isUp(): boolean {
    return this.#link.isUp;
  }

  get counts() {
    return { ...this.#counts, lost: this.#link.lost };
  }

  /** Messages of transactions that wait for the upstream. */
  get waiting(): number {
    return this.#options.store.count(this.#options.identity);
  }

  /** Passes a CALL of the charger on, after those that came before it. */
  relay(call: Call, text: string, own: OwnAnswer): Promise<Relayed> {
    if (this.#queued >= MOST_QUEUED) return Promise.resolve(FULL);
    return this.#enqueue(() => this.#relayNow(call, text, own));
  }

  /** Passes an answer of the charger to the upstream. */
  answer(text: string): void {
    this.#link.send(text);
  }

  /**
   * The charger has disconnected. It will repeat a start or a stop that got no answer: the answer is awaited for a
   * while, and kept for then. Resolved when the connection to the upstream is closed.
   */
  async close(): Promise<void> {
    this.#link.leave();
    using link = this.#link;
    if (!this.#isOnceInFlight) return;
    const { deadline } = this.#options;
    const timer = setTimeout(() => link[Symbol.dispose](), Math.min(deadline, LONGEST_FAREWELL));
    await this.#last;
    clearTimeout(timer);
  }

  #enqueue<T>(step: () => Promise<T>): Promise<T> {
    this.#queued += 1;
    const result = this.#last.then(step).finally(() => (this.#queued -= 1));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #relayNow(call: Call, text: string, own: OwnAnswer): Promise<Relayed> {
    const { dialect } = this.#options;
    // A charger that connects and starts at once is not answered here before the upstream could be reached.
    await this.#link.tried;
    const known = this.#repeats.answerTo(call);
    if (known !== null) {
      this.#counts.repeated += 1;
      return { text: null, reply: known };
    }
    const key = dialect.snapshotKey(call);
    // Transactions keep their order: nothing passes what waits.
    const isHeld = dialect.isOfTransaction(call) && this.waiting > 0;
    const isSent = this.isUp && !isHeld;
    const answered = isSent ? await this.#send(call, this.#outgoing(call, text)) : null;
    if (answered !== null) {
      this.#names.onAnswered(answered.reply);
      this.#repeats.remember(call, answered.reply);
      this.#counts.relayed += 1;
      if (key !== null) this.#missed.delete(key);
      return answered;
    }
    const here: Relayed = { text: null, reply: own.reply };
    // The charger has disconnected without an answer. It repeats the message, so the bridge must not.
    if (this.#link.isClosed || !own.reply.ok) return here;
    this.#counts.answeredHere += 1;
    if (key !== null) this.#miss(key, call);
    return dialect.isOfTransaction(call) ? this.#keep(call, own, isSent) : here;
  }

  async #send(call: Call, text: string): Promise<Answered | null> {
    this.#isOnceInFlight = this.#options.dialect.isOnce(call);
    const answered = await this.#link.call(call.id, text);
    this.#isOnceInFlight = false;
    return answered;
  }

  #miss(key: string, call: Call): void {
    // After a boot the charger sends every status again.
    if (key === "boot") this.#missed.clear();
    this.#missed.delete(key);
    if (this.#missed.size < MOST_MISSED) this.#missed.set(key, call);
  }

  /** Stores a message that is answered here. It is on disk before the charger gets its answer. */
  #keep(call: Call, { reply, transaction }: OwnAnswer, isSent: boolean): Relayed {
    const { store, identity, dialect, deadline, log } = this.#options;
    const { id, action } = call;
    const payload = JSON.stringify(call.payload);
    try {
      // A start and a stop are always kept.
      if (dialect.isReading(call) && store.isFull(identity)) return FULL;
      // The charger repeats a message whose answer was lost. It starts one transaction, under one id.
      const before = store.find(identity, action, payload);
      if (before !== null) {
        this.#counts.repeated += 1;
        return { text: null, reply: renamedReply(dialect, reply, transaction, before.localTransaction) };
      }
      const message = { action, payload, localTransaction: transaction, sentAs: isSent ? id : null };
      const stored = { ...message, seq: store.add(identity, message) };
      this.#counts.stored += 1;
      this.#repeats.remember(call, reply);
      // A slow upstream may still answer. Sent a second time now, a start would become two transactions there.
      if (isSent && this.isUp)
        this.#hold = { id, stored, timer: setTimeout(() => this.#link.renew(), deadline) };
      else void this.#deliver();
      return { text: null, reply };
    } catch (error) {
      const reason = messageOf(error);
      log.error({ station: identity, action, reason }, "a message for the upstream cannot be stored");
      return refusal("the message cannot be stored now");
    }
  }

  #onCall(frame: Call, text: string): void {
    const call = this.#incoming(frame);
    const asSent = call === frame ? text : writeCall(call.id, call.action, call.payload);
    if (!this.#options.toStation(call, asSent))
      this.#link.send(
        writeReply(call.id, { ok: false, code: "InternalError", description: "too many requests wait" }),
      );
  }

  #onLate(id: string, reply: Reply): void {
    if (this.#hold?.id !== id) return;
    const { stored } = this.#hold;
    this.#release();
    if (this.#onDelivered(stored, reply)) void this.#deliver();
  }

  #release(): void {
    clearTimeout(this.#hold?.timer);
    this.#hold = null;
  }

  /** The upstream is back: what it missed, in the order of a start, then the transactions. */
  async #catchUp(): Promise<void> {
    while (await this.#enqueue(() => this.#sendMissed()));
    await this.#deliver();
  }

  /** False: nothing more can be sent. */
  async #sendMissed(): Promise<boolean> {
    const [next] = this.#missed;
    if (next === undefined || !this.isUp) return false;
    const [key, call] = next;
    await this.#link.call(call.id, writeCall(call.id, call.action, call.payload));
    // A status without an answer is not sent again: the next one replaces it.
    if (this.isUp) this.#missed.delete(key);
    return this.isUp;
  }

  /** Sends stored messages until none is left, or the upstream is away. */
  async #deliver(): Promise<void> {
    try {
      while (await this.#enqueue(() => this.#deliverNext()));
    } catch (error) {
      const reason = messageOf(error);
      this.#options.log.error({ station: this.#options.identity, reason }, "stored messages cannot be read");
    }
  }

  async #deliverNext(): Promise<boolean> {
    if (!this.isUp || this.#hold !== null) return false;
    const { store, identity } = this.#options;
    const stored = store.first(identity);
    if (stored === null) return false;
    const payload = this.#names.forUpstream(JSON.parse(stored.payload) as Payload);
    const { action } = stored;
    const id = stored.sentAs ?? `stored-${stored.seq}`;
    const answered = await this.#send({ kind: "call", id, action, payload }, writeCall(id, action, payload));
    // An upstream that leaves a message unanswered gets it again on a new connection.
    if (answered === null) this.#link.renew();
    return answered !== null && this.#onDelivered(stored, answered.reply);
  }

  /** False: the message waits, because the upstream has a fault. */
  #onDelivered(stored: StoredMessage, reply: Reply): boolean {
    if (reply.ok) return this.#remove(stored, reply);
    const { identity, log } = this.#options;
    const { action, payload } = stored;
    this.#counts.refused += 1;
    this.#refusals += 1;
    const pause = pauseAfter(reply.code, this.#refusals);
    log.error(
      { station: identity, action, reason: reply.code, payload, isDropped: pause === null },
      "the upstream refused a stored message",
    );
    return pause === null ? this.#remove(stored, reply) : this.#wait(stored, pause, () => true);
  }

  /** False: the disk fails. The message is removed later. It is not sent again, because the upstream has it. */
  #remove(stored: StoredMessage, reply: Reply): boolean {
    if (!this.#names.onDelivered(stored, reply))
      return this.#wait(stored, NEXT_REMOVAL, () => this.#remove(stored, reply));
    this.#refusals = 0;
    this.#counts.delivered += 1;
    return true;
  }

  /** Holds the stored messages back. `then`: true, and they are delivered. */
  #wait(stored: StoredMessage, pause: number, then: () => boolean): false {
    const onEnd = (): void => {
      this.#hold = null;
      if (then()) void this.#deliver();
    };
    this.#hold = { id: null, stored, timer: setTimeout(onEnd, pause) };
    return false;
  }

  /** A CALL of the charger in a transaction that the upstream knows by another id. */
  #outgoing(call: Call, text: string): string {
    const payload = this.#names.forUpstream(call.payload);
    return payload === call.payload ? text : writeCall(call.id, call.action, payload);
  }

  #incoming(call: Call): Call {
    const payload = this.#names.forStation(call.payload);
    return payload === call.payload ? call : { ...call, payload };
  }
}
