import type { AuditRow } from "../domain/audit.ts";
import type { Reading } from "../domain/reading.ts";
import type { PostAnswer } from "../domain/report.ts";
import type { Store } from "../domain/store.ts";
import type { ChargerId, EventId, Instant, Millis } from "../domain/units.ts";
import type { Calendar, WallClock } from "../platform/clock.ts";
import type { Report } from "./report.ts";
import type { ReportSettings } from "./settings.ts";

/** Settings of the flow. `settings` has those of the reports. */
export interface ReportRules {
  readonly settings: ReportSettings;
  /** False: each descriptor is flagged, reports that wait go on waiting, and readings are still kept. */
  readonly enabled: boolean;
  /** Tried for this long, then given up. */
  readonly giveUpAfter: Millis;
  readonly keepReadings: Millis;
}

/** `composed`, `sent`, `retried`, or `flagged`. */
export type ReportOutcome = "composed" | "sent" | "retried" | "flagged";

/** The edges as the pipeline of reporting sees them. */
export interface ReportPorts extends Pick<
  Store,
  "write" | "writeUntilStored" | "committed" | "owed" | "readings" | "seats"
> {
  readonly now: () => Instant;
  /** Monotonic clock, ms. */
  readonly monotonic: () => Millis;
  /** In [0, 1). */
  readonly random: () => number;
  readonly wallClock: WallClock;
  readonly calendar: Calendar;
  /** True while the broker of this charger is connected. */
  readonly isLinked: (charger: ChargerId) => boolean;
  /** On disk within ten seconds. */
  readonly keep: (readings: readonly Reading[]) => void;
  /** Forgets a few readings that are older than `keep`, or too many; null: only those that are too many. */
  readonly prune: (keep: Millis | null) => Promise<void>;
  /** True while the partner's clock confirms ours. */
  readonly clockAgrees: () => boolean;
  /** Lead of our clock over the partner's. 0: none, or unknown. */
  readonly ahead: () => Millis;
  /** A page of the record on one event, oldest first. */
  readonly record: (event: EventId, after: number) => Promise<readonly AuditRow[]>;
  /** The body as it goes to the partner. */
  readonly serialize: (report: Report) => string;
  /** Null: it is not there any more, or was changed on the disk. */
  readonly body: (name: string) => Promise<string | null>;
  /** Sends one request, with a deadline. Never throws. */
  readonly post: (body: string) => Promise<PostAnswer>;
  readonly counted: (outcome: ReportOutcome) => void;
}
