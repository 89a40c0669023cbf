import type { AuditEntry } from "../domain/audit.ts";
import type { Change, Committed, StoredState } from "../domain/changes.ts";
import type { Reading } from "../domain/reading.ts";
import type { PostAnswer } from "../domain/report.ts";
import type { ChargerId, EventId, Instant, Millis, VehicleId } from "../domain/units.ts";
import type { Calendar, WallClock } from "../platform/text.ts";
import type { Report } from "./report.ts";
import type { ReportSettings } from "./settings.ts";

/** The knobs of the flow; those of the reports themselves are in `settings`. */
export interface ReportRules {
  readonly settings: ReportSettings;
  /** False: each descriptor is flagged, what waits goes on waiting, and readings are kept all the same. */
  readonly enabled: boolean;
  /** Tried for this long, then given up. */
  readonly giveUpAfter: Millis;
  readonly keepReadings: Millis;
}

/** `composed`, `sent`, `retried`, or `flagged`. */
export type ReportOutcome = "composed" | "sent" | "retried" | "flagged";

/** A row of the record with its number, which the next page goes on from. */
type NumberedRow = AuditEntry & { readonly seq: number };

/** The edges as the pipeline of reporting sees them. */
export interface ReportPorts {
  readonly now: () => Instant;
  /** Milliseconds that never jump. */
  readonly monotonic: () => Millis;
  /** In [0, 1). */
  readonly random: () => number;
  readonly wallClock: WallClock;
  readonly calendar: Calendar;
  /** Stages changes; they reach the disk with the next `durable`. */
  readonly write: (changes: readonly Change[]) => void;
  readonly durable: () => Promise<Committed>;
  /** The stored state of what is owed: for starting over after a failed commit. */
  readonly owed: () => Pick<StoredState, "duties" | "outbox">;
  /** True while the broker of this charger is connected. */
  readonly isLinked: (charger: ChargerId) => boolean;
  /** On disk within ten seconds. */
  readonly keep: (readings: readonly Reading[]) => void;
  /** Forgets a few readings that are older than `keep`, or too many; null: only those that are too many. */
  readonly prune: (keep: Millis | null) => void;
  /** True while the partner's clock confirms ours. */
  readonly clockAgrees: () => boolean;
  /** Lead of our clock over the partner's. 0: none, or unknown. */
  readonly ahead: () => Millis;
  /** Readings of these chargers in [from, until). */
  readonly readings: (chargers: Iterable<ChargerId>, from: Instant, until: Instant) => readonly Reading[];
  /** The chargers that a vehicle was on, and a few more. */
  readonly seats: (vehicle: VehicleId, from: Instant, until: Instant) => readonly ChargerId[];
  /** A page of the record on one event, oldest first. */
  readonly record: (event: EventId, after: number) => readonly NumberedRow[];
  /** The body as it goes to the partner. */
  readonly spell: (report: Report) => string;
  /** Null: it is not there any more, or was changed on the disk. */
  readonly body: (name: string) => string | null;
  /** Sends one request, with a deadline. Never throws. */
  readonly post: (body: string) => Promise<PostAnswer>;
  readonly counted: (outcome: ReportOutcome) => void;
}
