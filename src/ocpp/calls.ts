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

const isUrgent = (entry: Entry): boolean => entry.kind === "own" && entry.call.isUrgent;

/** Codes of a station that does not know an action. */
const UNSUPPORTED: ReadonlySet<string> = new Set(["NotImplemented", "NotSupported"]);

/** More waiting calls than this mean that the other side does not stop. */
const MOST_WAITING = 200;

/**
 * Our side of one connection: calls to the station, one in flight at a time, each with a deadline. Setpoints go before
 * all others that wait; those keep their order.
 */
export class Calls {
  readonly #options: CallsOptions;
  readonly #queue: Entry[] = [];
  #inFlight: Entry | null = null;
  #timer: NodeJS.Timeout | undefined;
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
    const entry = this.#inFlight;
    if (entry?.call.id !== frame.id) return null;
    this.#free();
    if (entry.kind === "own") entry.call.settle(answerOf(frame, entry.call.action));
    this.#next();
    return entry.kind;
  }

  /** Settles everything that waits. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const all = [...(this.#inFlight === null ? [] : [this.#inFlight]), ...this.#queue.splice(0)];
    this.#inFlight = null;
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
    if (this.#inFlight !== null || this.#isClosed) return;
    const entry = this.#queue.shift();
    if (entry === undefined) return;
    this.#inFlight = entry;
    const { deadline, send } = this.#options;
    this.#timer = setTimeout(() => this.#expire(entry), deadline);
    send(
      entry.kind === "own"
        ? writeCall(entry.call.id, entry.call.action, entry.call.payload)
        : entry.call.text,
    );
  }

  #expire(entry: Entry): void {
    this.#free();
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

  #free(): void {
    clearTimeout(this.#timer);
    this.#inFlight = null;
  }
}

function answerOf(frame: Extract<Frame, { kind: "result" | "error" }>, action: string): Answer<Payload> {
  if (frame.kind === "result") return { kind: "answered", value: frame.payload };
  const text = frame.description === "" ? frame.code : `${frame.code} (${frame.description})`;
  return UNSUPPORTED.has(frame.code)
    ? { kind: "unsupported", reason: `the charger does not support ${action}` }
    : { kind: "refused", reason: `the charger answered ${action} with ${text}` };
}
