import type { Command, Sent } from "../core/control/command.ts";
import type { Delivery, Taken } from "../core/delivery.ts";
import type { Change, Committed, Remembered } from "../core/ledger.ts";
import type { ChargerId, EventId, Instant, Millis } from "../core/units.ts";

/** What a delivery is answered with: counts once it is durable, or that it could not be stored. */
export type TakeAnswer =
  | { readonly ok: true; readonly taken: Taken }
  | { readonly ok: false; readonly reason: string };

/** A delivery on its way in; it is settled after the commit that holds it. */
export interface Arrival {
  readonly delivery: Delivery;
  readonly settle: (answer: TakeAnswer) => void;
}

/** Someone asks the flow to look at a charger. */
export interface Touch {
  readonly charger: ChargerId;
  /** It came back: what holds now is sent, changed or not. */
  readonly reassert: boolean;
}

/** The edges as the control pipeline sees them: functions only. */
export interface ControlPorts {
  readonly now: () => Instant;
  /** Milliseconds that never jump. */
  readonly monotonic: () => Millis;
  /** In [0, 1). */
  readonly random: () => number;
  /** Stages changes; they reach the disk with the next `durable`. */
  readonly write: (changes: readonly Change[]) => void;
  /** Resolves after the commit that holds everything written so far. */
  readonly durable: () => Promise<Committed>;
  /** What is stored, for starting over after a failed commit. */
  readonly remembered: () => Remembered;
  /** One publish with its deadline; never throws. */
  readonly send: (command: Command, lease: Millis) => Promise<Sent>;
  readonly publishState: (charger: ChargerId, payload: string) => Promise<Sent>;
  /** Events that only a fetch by id can settle. */
  readonly ask: (ids: readonly EventId[]) => void;
  /** A start was noticed this long after its moment. */
  readonly started: (lateBy: Millis) => void;
  /** A look was done: health wants to know that they are fresh. */
  readonly looked: () => void;
  /** Something that a person should hear of, and that changes nothing. */
  readonly warn: (words: string) => void;
}

/** What one request to the partner gave. */
export type Fetched =
  | { readonly kind: "read"; readonly delivery: Delivery }
  /** The list is byte for byte the one that was taken in last. */
  | { readonly kind: "unchanged"; readonly at: Instant }
  | { readonly kind: "failed"; readonly reason: string; readonly retryAfter: Millis | null };

export interface PollingPorts {
  readonly now: () => Instant;
  readonly random: () => number;
  readonly list: () => Promise<Fetched>;
  readonly event: (id: EventId) => Promise<Fetched>;
}
