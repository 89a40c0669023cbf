import type { AuditEntry } from "./audit.ts";
import type { CommandRecord, Hold } from "./command.ts";
import type { Rejected } from "./delivery.ts";
import type { KnownEvent, TrackedEvent } from "./event.ts";
import type { PriceSeries } from "./prices.ts";
import type { Reason } from "./reason.ts";
import type { ReportObligation, ReportRecord } from "./report.ts";
import type { ChargerId, EventId, Instant } from "./units.ts";

/** One thing to be remembered. All changes written in one turn of the loop are committed together, in order. */
export type Change =
  | { readonly kind: "event"; readonly known: KnownEvent }
  /** Over for so long that it need not be known any more; what it obliged us to report goes with it. */
  | { readonly kind: "eventForgotten"; readonly id: EventId }
  | { readonly kind: "command"; readonly record: CommandRecord }
  /** Nothing by us holds there any more: commissioning has left the charger as nobody had commanded it. */
  | { readonly kind: "commandForgotten"; readonly charger: ChargerId }
  | { readonly kind: "hold"; readonly hold: Hold }
  | { readonly kind: "holdEnded"; readonly charger: ChargerId }
  /** In the place of what was known of this series. */
  | { readonly kind: "prices"; readonly series: PriceSeries }
  | { readonly kind: "duty"; readonly duty: ReportObligation }
  /** `body`: as it goes to the partner, with the first of its records; null: as it was. */
  | { readonly kind: "report"; readonly record: ReportRecord; readonly body: string | null }
  | { readonly kind: "reportForgotten"; readonly name: string }
  | {
      readonly kind: "quarantine";
      readonly rejected: Rejected;
      readonly at: Instant;
      readonly source: string;
    }
  /** Everything that was due by then was looked at, whether or not anything came of it. */
  | { readonly kind: "looked"; readonly at: Instant }
  | { readonly kind: "audit"; readonly entry: AuditEntry }
  /** Rows of the record up to this one go; written together with the `checkpoint` row that carries the chain on. */
  | { readonly kind: "auditPruned"; readonly through: number };

export type Committed = { readonly ok: true } | FailedCommit;

/** One object for each commit that failed, whoever waited for it. */
export interface FailedCommit {
  readonly ok: false;
  readonly reason: string;
  /** The changes that it held, and those of failed commits just before it that nobody waited for: none was stored. */
  readonly dropped: readonly Change[];
}

/** The events and chargers that changes are about. */
export interface Scope {
  readonly events: ReadonlySet<EventId>;
  readonly chargers: ReadonlySet<ChargerId>;
}

/** The stored state of a scope. */
export interface StoredScope extends Pick<StoredState, "commands" | "reasons" | "holds"> {
  readonly events: readonly KnownEvent[];
}

/** A stored event that another program edited. */
export interface EditedEvent {
  readonly id: EventId;
  /** JSON text, as it was found. */
  readonly raw: string;
}

/** What survived the last stop. */
export interface StoredState {
  /** Whole while they may still have something open, summaries of the others. */
  readonly events: readonly TrackedEvent[];
  /** Not among the events: never acted on. */
  readonly edited: readonly EditedEvent[];
  readonly commands: readonly CommandRecord[];
  /** Why, by command id; absent: the record does not have it any more. */
  readonly reasons: ReadonlyMap<string, Reason>;
  readonly holds: readonly Hold[];
  readonly duties: readonly ReportObligation[];
  /** Those with a next try, the oldest first. */
  readonly outbox: readonly ReportRecord[];
  /** The last moment at which somebody certainly looked; null: never. */
  readonly evaluatedAt: Instant | null;
  /** When the last row was written: a clock that is behind it is doubted. Null: there is none. */
  readonly recordedAt: Instant | null;
  /** The last sign of life, to within a minute; null: never. */
  readonly aliveAt: Instant | null;
}
