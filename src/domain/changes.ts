import type { Alarm } from "./alarm.ts";
import type { AuditEntry } from "./audit.ts";
import type { CommandRecord } from "./command.ts";
import type { PlugIn, SetDeparture } from "./departure.ts";
import type { Rejected } from "./delivery.ts";
import type { KnownEvent, TrackedEvent } from "./event.ts";
import type { Hold, ObservePeriod } from "./hold.ts";
import type { PriceSeries } from "./prices.ts";
import type { Reason } from "./reason.ts";
import type { ReportObligation, ReportRecord } from "./report.ts";
import type { ChargerId, EventId, Instant } from "./units.ts";
import type { Binding } from "./vehicle.ts";

/** A change of the stored state. All changes of one event-loop tick are committed together, in order. */
export type Change =
  | { readonly kind: "event"; readonly known: KnownEvent }
  /** Deletes an event that ended long ago, and its report obligations. */
  | { readonly kind: "eventForgotten"; readonly id: EventId }
  | { readonly kind: "command"; readonly record: CommandRecord }
  /** Deletes the command of a charger. Commissioning has put the charger back into its uncommanded state. */
  | { readonly kind: "commandForgotten"; readonly charger: ChargerId }
  /** A hold that was opened, changed or ended. */
  | { readonly kind: "hold"; readonly hold: Hold }
  | { readonly kind: "holdForgotten"; readonly id: string }
  /** A person has named the vehicle on a charger. It replaces an earlier one of that charger. */
  | { readonly kind: "binding"; readonly binding: Binding }
  | { readonly kind: "bindingForgotten"; readonly charger: ChargerId }
  /** Null: the period is over, and the mode is as configured. */
  | { readonly kind: "observePeriod"; readonly period: ObservePeriod | null }
  /** An alarm that opened, was acknowledged or cleared. */
  | { readonly kind: "alarm"; readonly alarm: Alarm }
  | { readonly kind: "alarmForgotten"; readonly key: string }
  /** A departure that a person or a file has set. */
  | { readonly kind: "departure"; readonly departure: SetDeparture }
  | { readonly kind: "departureForgotten"; readonly key: string }
  /** A vehicle was plugged in. */
  | { readonly kind: "plugIn"; readonly charger: ChargerId; readonly plugIn: PlugIn }
  | { readonly kind: "plugInForgotten"; readonly charger: ChargerId }
  /** Replaces the stored series of the same region and kind. */
  | { readonly kind: "prices"; readonly series: PriceSeries }
  | { readonly kind: "duty"; readonly duty: ReportObligation }
  /** `body`: JSON as the partner receives it, given with the first record only. Null: unchanged. */
  | { readonly kind: "report"; readonly record: ReportRecord; readonly body: string | null }
  | { readonly kind: "reportForgotten"; readonly name: string }
  | {
      readonly kind: "quarantine";
      readonly rejected: Rejected;
      readonly at: Instant;
      readonly source: string;
    }
  /** Deletes a delivery of a stand-in. It is committed with what the delivery changed. */
  | { readonly kind: "deliveryTaken"; readonly stored: number }
  /** All chargers that were due at `at` were evaluated, with or without a decision. */
  | { readonly kind: "evaluated"; readonly at: Instant }
  | { readonly kind: "audit"; readonly entry: AuditEntry }
  /**
   * Deletes audit rows up to and including `through`. Written together with the `checkpoint` row that continues the
   * chain.
   */
  | { readonly kind: "auditPruned"; readonly through: number };

/** `lost`: changes of earlier commits, which failed while control did not wait for them. Absent: none. */
export type Committed = { readonly ok: true; readonly lost?: Lost } | FailedCommit;

/** Outcome for a room that restores its own state after a failed commit. */
export type Stored = { readonly ok: true } | NotStored;

/** Outcome of a commit that failed. */
export interface NotStored {
  readonly ok: false;
  readonly reason: string;
  /** The answer of the database was lost: all of it may be stored. Absent: nothing is stored. */
  readonly isUnsure?: true;
  /** The outcome, where `isUnsure`. True: all of it is stored. Never resolves if the lease is lost first. */
  readonly isStored?: Promise<boolean>;
}

/** A failed commit, and the changes that are lost with it. */
export interface FailedCommit extends Lost, NotStored {}

/** Changes of failed commits, each handed over once. */
export interface Lost {
  readonly dropped: readonly Change[];
  /**
   * The stored rows of their scope, for a rollback. They come with the failure, so that nothing is decided in between.
   * Null: it cannot be read, or nothing was dropped.
   */
  readonly stored: StoredScope | null;
}

/** Events and chargers that a list of changes concerns. */
export interface Scope {
  readonly events: ReadonlySet<EventId>;
  readonly chargers: ReadonlySet<ChargerId>;
  /** Ids of holds. */
  readonly holds: ReadonlySet<string>;
  /** The mode of the site was changed. */
  readonly mode: boolean;
}

/** Stored state of these events and chargers only. */
export interface StoredScope extends Pick<
  StoredState,
  "commands" | "reasons" | "holds" | "bindings" | "observePeriod"
> {
  readonly events: readonly KnownEvent[];
}

/** A stored event that another program edited. It is shown, and never acted on. */
export interface EditedEvent {
  readonly id: EventId;
  /** JSON text as stored. */
  readonly raw: string;
}

/** State as loaded from the store. */
export interface StoredState {
  /** Whole events that may still be open, and summaries of the others. */
  readonly events: readonly TrackedEvent[];
  /** Not contained in `events`. */
  readonly edited: readonly EditedEvent[];
  readonly commands: readonly CommandRecord[];
  /** Reasons by command id. Absent: the audit row was pruned. */
  readonly reasons: ReadonlyMap<string, Reason>;
  readonly holds: readonly Hold[];
  readonly bindings: readonly Binding[];
  /** Null: the mode is as configured. */
  readonly observePeriod: ObservePeriod | null;
  readonly duties: readonly ReportObligation[];
  /** Reports that have a next try, oldest first. */
  readonly outbox: readonly ReportRecord[];
  /** Last evaluation that was committed. Null: never. */
  readonly evaluatedAt: Instant | null;
  /** Time of the last audit row. A clock behind this moment is doubted. Null: no row. */
  readonly recordedAt: Instant | null;
  /** Last time this program was alive, to within a minute. Null: never. */
  readonly aliveAt: Instant | null;
}

/** The events and chargers whose stored state may differ from memory after these changes were dropped. */
export function scopeOf(dropped: readonly Change[]): Scope {
  const events = new Set<EventId>();
  const chargers = new Set<ChargerId>();
  const holds = new Set<string>();
  const mode = dropped.some(({ kind }) => kind === "observePeriod");
  for (const change of dropped) {
    if (change.kind === "event") events.add(change.known.id);
    else if (change.kind === "command") chargers.add(change.record.command.charger);
    else if (change.kind === "hold") {
      holds.add(change.hold.id);
      if (change.hold.scope.kind === "charger") chargers.add(change.hold.scope.charger);
    } else if (change.kind === "holdForgotten") holds.add(change.id);
    else if (change.kind === "binding") chargers.add(change.binding.charger);
    else if (change.kind === "commandForgotten" || change.kind === "bindingForgotten")
      chargers.add(change.charger);
    else if (change.kind === "audit" && change.entry.charger !== null) chargers.add(change.entry.charger);
  }
  return { events, chargers, holds, mode };
}

/** True: the other scope has all of this one. */
export const isWithin = (scope: Scope, other: Scope): boolean =>
  [...scope.events].every((id) => other.events.has(id)) &&
  [...scope.chargers].every((id) => other.chargers.has(id)) &&
  [...scope.holds].every((id) => other.holds.has(id)) &&
  (other.mode || !scope.mode);
