import type { Request } from "./wire/dialect.ts";
import { type Frame, type Payload, writeCall } from "./wire/frame.ts";

/** Answer to a request of ours. `unsupported`: the station does not know the action. */
export type Answer<T> =
  | { readonly kind: "answered"; readonly value: T }
  | { readonly kind: "unsupported" | "refused" | "unanswered" | "closed"; readonly reason: string };

interface Waiting {
  readonly isUrgent: boolean;
  readonly id: string;
  readonly action: string;
  readonly payload: Payload;
  readonly settle: (answer: Answer<Payload>) => void;
}

/** A message of another party to the station, in proxy mode. */
interface Passing {
  readonly id: string;
  readonly text: string;
  readonly onTimeout: () => void;
}

type Entry =
  | { readonly kind: "own"; readonly call: Waiting }
  | { readonly kind: "passing"; readonly call: Passing };

export interface CallsOptions {
  readonly send: (text: string) => void;
  /** Ids differ from those of every other party. */
  readonly nextId: () => string;
  /** A CALL that is not answered within it counts as failed, ms. */
  readonly deadline: number;
  readonly onUnanswered: (action: string) => void;
}

/** A CALL that is sent, and its deadline. */
interface Sent {
  readonly entry: Entry;
  readonly deadline: NodeJS.Timeout;
}

/** A request of ours that only asks or configures gives way to a setpoint after this time without an answer, ms. */
export const GIVES_WAY_AFTER = 2_000;

const isUrgent = (entry: Entry): boolean => entry.kind === "own" && entry.call.isUrgent;

/** Codes of a station that does not know an action. */
const UNSUPPORTED: ReadonlySet<string> = new Set(["NotImplemented", "NotSupported"]);

/** More waiting calls than this mean that the other side does not stop. */
const MOST_WAITING = 200;

/**
 * Our side of one connection: calls to the station, one in flight at a time, each with a deadline. Setpoints go before
 * all others that wait; those keep their order. A station that leaves a question open still gets a setpoint, and its late
 * answer counts.
 */
export class Calls {
  readonly #options: CallsOptions;
  readonly #queue: Entry[] = [];
  #inFlight: Sent | null = null;
  /** A request that gave way to a setpoint. Until its answer or its deadline setpoints only are sent. */
  #overtaken: Sent | null = null;
  #mayGiveWay = false;
  #patience: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async ask<T>({ action, payload, read, isUrgent = false }: Request<T>): Promise<Answer<T>> {
    const answer = await new Promise<Answer<Payload>>((settle) => {
      const call = { id: this.#options.nextId(), action, payload, settle, isUrgent };
      if (!this.#enqueue({ kind: "own", call }))
        settle({ kind: "closed", reason: "the station is not connected" });
    });
    return answer.kind === "answered" ? { kind: "answered", value: read(answer.value) } : answer;
  }

  /** Queues a CALL of another party, as it is. False: there is no room. */
  pass(call: Passing): boolean {
    return this.#enqueue({ kind: "passing", call });
  }

  /** Handles an answer of the station. `passing`: it belongs to another party. Null: it answers no request. */
  handle(frame: Extract<Frame, { kind: "result" | "error" }>): "own" | "passing" | null {
    const sent = [this.#inFlight, this.#overtaken].find((open) => open?.entry.call.id === frame.id) ?? null;
    if (sent === null) return null;
    const { entry } = sent;
    this.#end(sent);
    if (entry.kind === "own") entry.call.settle(answerOf(frame, entry.call.action));
    this.#next();
    return entry.kind;
  }

  /** Settles everything that waits. */
  close(): void {
    this.#isClosed = true;
    const sent = [this.#inFlight, this.#overtaken].filter((open) => open !== null);
    const all = [...sent.map(({ entry }) => entry), ...this.#queue.splice(0)];
    for (const open of sent) this.#end(open);
    for (const { kind, call } of all)
      if (kind === "own") call.settle({ kind: "closed", reason: "the station disconnected" });
  }

  #enqueue(entry: Entry): boolean {
    if (this.#isClosed || this.#queue.length >= MOST_WAITING) return false;
    const before = isUrgent(entry) ? this.#queue.findIndex((other) => !isUrgent(other)) : -1;
    this.#queue.splice(before === -1 ? this.#queue.length : before, 0, entry);
    this.#next();
    return true;
  }

  #next(): void {
    const [entry] = this.#queue;
    if (entry === undefined || this.#isClosed) return;
    if (isUrgent(entry)) this.#giveWay();
    else if (this.#overtaken !== null) return;
    if (this.#inFlight !== null) return;
    this.#queue.shift();
    const sent: Sent = { entry, deadline: setTimeout(() => this.#expire(sent), this.#options.deadline) };
    this.#inFlight = sent;
    this.#mayGiveWay = false;
    if (entry.kind === "own" && !isUrgent(entry))
      this.#patience = setTimeout(() => this.#onPatienceEnd(), GIVES_WAY_AFTER);
    this.#options.send(
      entry.kind === "own"
        ? writeCall(entry.call.id, entry.call.action, entry.call.payload)
        : entry.call.text,
    );
  }

  #onPatienceEnd(): void {
    this.#mayGiveWay = true;
    this.#next();
  }

  #giveWay(): void {
    if (!this.#mayGiveWay) return;
    this.#overtaken = this.#inFlight;
    this.#inFlight = null;
    this.#mayGiveWay = false;
  }

  #expire(sent: Sent): void {
    const { entry } = sent;
    this.#end(sent);
    if (entry.kind === "own") {
      const { action, settle } = entry.call;
      this.#options.onUnanswered(action);
      settle({
        kind: "unanswered",
        reason: `the charger did not answer ${action} within ${this.#options.deadline / 1000} s`,
      });
    } else entry.call.onTimeout();
    this.#next();
  }

  #end(sent: Sent): void {
    clearTimeout(sent.deadline);
    if (sent === this.#overtaken) this.#overtaken = null;
    if (sent !== this.#inFlight) return;
    clearTimeout(this.#patience);
    this.#inFlight = null;
    this.#mayGiveWay = false;
  }
}

export interface IncomingPorts {
  /** True: the station is within its pace. */
  readonly mayPass: () => boolean;
  readonly pass: (text: string) => void;
  readonly onTooMany: () => void;
}

/** A charger has one CALL in flight, so more that wait are a flood. */
const MOST_INCOMING = 20;
/** Pause of a station that is beyond its pace, ms. */
export const FLOOD_PAUSE = 1_000;

/** Back-pressure: the messages of a station wait in the network, and cost no other station anything. */
export function slowDown(socket: { readonly pause: () => void; readonly resume: () => void }): void {
  socket.pause();
  setTimeout(() => socket.resume(), FLOOD_PAUSE).unref();
}

const isAnswer = (text: string): boolean => /^\s*\[\s*[34]\s*,/.test(text);
/** The begin or the end of a session. The upstream bills by it. */
const isOfRecord = (text: string): boolean =>
  /"(?:Start|Stop)Transaction"|"eventType"\s*:\s*"(?:Started|Ended)"/.test(text);

/**
 * The station's side of one connection. Beyond its pace its calls wait, and the oldest ones are dropped without an answer:
 * a begin or an end of a session only where nothing else waits. Its answers wait behind no flood: a setpoint would count as
 * unanswered.
 */
export class Incoming implements Disposable {
  readonly #ports: IncomingPorts;
  readonly #waiting: { readonly text: string; readonly isOfRecord: boolean }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: IncomingPorts) {
    this.#ports = ports;
  }

  receive(text: string): void {
    const { mayPass, pass, onTooMany } = this.#ports;
    const isFirst = this.#waiting.length === 0;
    if (isAnswer(text) || (isFirst && mayPass())) return pass(text);
    if (isFirst) {
      onTooMany();
      this.#timer = setTimeout(() => this.#passOn(), FLOOD_PAUSE);
    }
    if (this.#waiting.push({ text, isOfRecord: isOfRecord(text) }) <= MOST_INCOMING) return;
    const other = this.#waiting.findIndex((each) => !each.isOfRecord);
    this.#waiting.splice(Math.max(0, other), 1);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #passOn(): void {
    for (const { text } of this.#waiting.splice(0)) this.#ports.pass(text);
  }
}

function answerOf(frame: Extract<Frame, { kind: "result" | "error" }>, action: string): Answer<Payload> {
  if (frame.kind === "result") return { kind: "answered", value: frame.payload };
  const text = frame.description === "" ? frame.code : `${frame.code} (${frame.description})`;
  return UNSUPPORTED.has(frame.code)
    ? { kind: "unsupported", reason: `the charger does not support ${action}` }
    : { kind: "refused", reason: `the charger answered ${action} with ${text}` };
}
