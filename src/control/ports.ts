import type { Change, Committed, Scope, StoredScope } from "../domain/changes.ts";
import type { Command, Sent } from "../domain/command.ts";
import type { Delivery, IngestResult } from "../domain/delivery.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerId, EventId, Instant, Millis } from "../domain/units.ts";

/** What a delivery is answered with: counts once it is durable, or that it could not be stored. */
export type IngestAnswer =
  | { readonly ok: true; readonly ingested: IngestResult }
  | { readonly ok: false; readonly reason: string };

/** A delivery on its way in; it is settled after the commit that holds it. */
export interface Arrival {
  readonly delivery: Delivery;
  /** More of the same list follows: chargers are evaluated once all of it is taken in. */
  readonly isPart?: boolean;
  readonly settle: (answer: IngestAnswer) => void;
}

/** Chargers that an operator frees; settled after the commit that holds it. */
export interface Freeing {
  readonly chargers: readonly ChargerId[];
  readonly settle: (committed: Committed) => void;
}

/** Someone asks the flow to look at a charger. */
export interface Reevaluation {
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
  /** The same for changes that outlive a failed commit; resolves once they are stored. */
  readonly writeUntilStored: (changes: readonly Change[]) => Promise<void>;
  /** Resolves after the commit that holds everything written so far. */
  readonly durable: () => Promise<Committed>;
  /** The stored state of what a failed commit was about. */
  readonly stored: (scope: Scope) => StoredScope;
  /**
   * One command, each publish of it with its deadline; never throws. `before`: what it was told before, by us;
   * `isDoubted`: it was seen not to follow this command.
   */
  readonly send: (
    command: Command,
    lease: Millis,
    before: Desired | null,
    isDoubted: boolean,
  ) => Promise<Sent>;
  readonly publishState: (charger: ChargerId, payload: string) => Promise<Sent>;
  /** Whether the broker of a charger is there, so that its silence would be its own. */
  readonly isLinked: (charger: ChargerId) => boolean;
  /** Events that only a fetch by id can settle. */
  readonly ask: (ids: readonly EventId[]) => void;
  /** A start was noticed this long after its moment. */
  readonly started: (lateBy: Millis) => void;
  /** A look was done: health wants to know that they are fresh. */
  readonly evaluated: () => void;
  /** Something that a person should hear of, and that changes nothing. */
  readonly warn: (words: string) => void;
}

/** What one request to the partner gave. */
export type Fetched =
  | { readonly kind: "read"; readonly delivery: Delivery }
  /** The list is byte for byte the one that was taken in last. */
  | { readonly kind: "unchanged"; readonly at: Instant }
  | {
      readonly kind: "failed";
      /** False: no request was made. */
      readonly asked: boolean;
      readonly reason: string;
      readonly retryAfter: Millis | null;
    };

export interface PollingPorts {
  /** Milliseconds that never jump. */
  readonly monotonic: () => Millis;
  readonly random: () => number;
  /** `isRequested`: someone asked for it. Waits that we impose on ourselves after an outage are then skipped. */
  readonly list: (isRequested: boolean) => Promise<Fetched>;
  readonly event: (id: EventId) => Promise<Fetched>;
}
