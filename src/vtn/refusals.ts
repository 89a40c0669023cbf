import type { Logger } from "pino";
import { type Instant, iso } from "../core/units.ts";
import type { AuthReason } from "./headerFault.ts";
import { type Monotonic, type Pace, bucket, bucketPerAddress } from "./rate.ts";

/** Why a request, or a connection, was turned away. The labels of a metric: few, and none of them foreign text. */
export type RefusalReason =
  | AuthReason
  | "contentType"
  | "contentEncoding"
  | "notFound"
  | "method"
  | "echo"
  | "tooLarge"
  | "unreadable"
  | "tooMany"
  | "noRoom"
  | "notStored"
  | "pipelined"
  | "bodyDropped"
  | "tooManyConnections";

export interface Refusal {
  readonly reason: RefusalReason;
  /** One sentence for the operator. */
  readonly explanation: string;
  readonly from: string;
  /** Null: the connection was closed without an answer. */
  readonly status: number | null;
}

/** What happened last for one reason, and how often. */
export type RefusalCount = {
  readonly count: number;
  /** ISO. */
  readonly lastAt: string;
  readonly lastFrom: string;
  readonly explanation: string;
};

/** Deliveries that were not believed, and the newest of them. */
export interface RefusedDeliveries {
  readonly count: number;
  readonly at: Instant;
  readonly reason: string;
}

const AUTH_REASONS: ReadonlySet<RefusalReason> = new Set<AuthReason>([
  "headerMissing",
  "headerRepeated",
  "hexInsteadOfBase64",
  "base64InsteadOfHex",
  "malformed",
  "timestamp",
  "signatureDiffers",
]);

/** For each address: so many unproven requests are answered in full. */
const ANSWERED: Pace = { perSecond: 5, burst: 60 };
/** Beyond that, so many get a 429 and lose their connection; the rest lose it without an answer. */
const TOLD_TO_WAIT: Pace = { perSecond: 5, burst: 60 };
const LOG_PACE: Pace = { perSecond: 1, burst: 5 };

/** Paces, counts and logs what the webhook listener turns away. A flood fills neither the log nor the memory. */
export class Refusals {
  readonly #now: () => Instant;
  readonly #log: Logger;
  readonly #onRefused: (reason: RefusalReason) => void;
  readonly #mayAnswer: (address: string) => boolean;
  readonly #mayTellToWait: (address: string) => boolean;
  readonly #mayLog: () => boolean;
  #refusedDeliveries: RefusedDeliveries | null = null;
  readonly #counts = new Map<RefusalReason, RefusalCount>();

  constructor(options: {
    readonly now: () => Instant;
    readonly monotonic: Monotonic;
    readonly log: Logger;
    readonly onRefused: (reason: RefusalReason) => void;
  }) {
    this.#now = options.now;
    this.#log = options.log;
    this.#onRefused = options.onRefused;
    this.#mayAnswer = bucketPerAddress(ANSWERED, options.monotonic);
    this.#mayTellToWait = bucketPerAddress(TOLD_TO_WAIT, options.monotonic);
    this.#mayLog = bucket(LOG_PACE, options.monotonic);
  }

  /** How the next unproven request of this address is treated. */
  treatment(address: string): "answer" | "tooMany" | "close" {
    if (this.#mayAnswer(address)) return "answer";
    return this.#mayTellToWait(address) ? "tooMany" : "close";
  }

  note({ reason, explanation, from, status }: Refusal): void {
    const count = (this.#counts.get(reason)?.count ?? 0) + 1;
    this.#counts.set(reason, { count, lastAt: iso(this.#now()), lastFrom: from, explanation });
    if (AUTH_REASONS.has(reason))
      this.#refusedDeliveries = {
        count: (this.#refusedDeliveries?.count ?? 0) + 1,
        at: this.#now(),
        reason: explanation,
      };
    this.#onRefused(reason);
    if (this.#mayLog()) this.#log.warn({ reason, why: explanation, from, status }, "webhook request refused");
  }

  /** A delivery was believed: those before it that were not are no problem any more. */
  believed(): void {
    this.#refusedDeliveries = null;
  }

  /** Null: none since the last one that was believed. */
  refusedDeliveries(): RefusedDeliveries | null {
    return this.#refusedDeliveries;
  }

  /** By reason, for the status page. */
  view(): Readonly<Record<string, RefusalCount>> {
    return Object.fromEntries(this.#counts);
  }
}
