import type { Ending } from "./event.ts";
import type { Window, EventId, Instant, Millis } from "./units.ts";

/** The last report on a descriptor that was handed over for sending; what it covers is not reported again. */
export type Issued = Pick<ReportWindow, "k" | "moment">;

/**
 * What one descriptor of an event obliges us to, and how far that is. Stored once there is something to remember:
 * until then it follows from the event alone.
 */
export interface ReportObligation {
  readonly event: EventId;
  /** Index in `reportDescriptors`. */
  readonly descriptor: number;
  /** When the revision came that it stands in. */
  readonly receivedAt: Instant;
  /** The last report that was handed over; null: none yet. */
  readonly issued: Issued | null;
  /** What the event was when it was withdrawn, and when; null: it was not. */
  readonly withdrawn: Ending | null;
  /** `done`: every report was handed over. `flagged`: no further report will come, for `reason`. */
  readonly state: "open" | "done" | "flagged";
  readonly reason: string | null;
}

/** A report that was composed, and what became of it. Its body is stored beside it, and never changes. */
export interface ReportRecord {
  /** `<eventID>/<descriptor#>/<k>` */
  readonly name: string;
  readonly event: EventId;
  readonly descriptor: number;
  readonly k: number;
  readonly payloadType: string;
  readonly span: Window;
  /** For people: `3 vehicles, 4.2 kWh`. */
  readonly summary: string;
  /** What is odd about the ask and about this answer. */
  readonly flags: readonly string[];
  readonly composedAt: Instant;
  /** Where the time counts from after which it is given up: composed, or sent again by hand. */
  readonly since: Instant;
  /** `flagged`: not delivered, for `reason`; while there is a next try it may still be. */
  readonly state: "waiting" | "sent" | "flagged";
  /** Null: none. */
  readonly nextTry: Instant | null;
  readonly attempts: number;
  /** Of the last answer; null: there was none. */
  readonly status: number | null;
  /** Why it was not delivered: ours, or the partner's words. */
  readonly reason: string | null;
  /** What the partner answered when it took it, capped. */
  readonly receipt: string | null;
  readonly sentAt: Instant | null;
}

/** What tells one duty from another, in the store too. An id may hold a "/", a descriptor does not. */
export const obligationKey = ({
  event,
  descriptor,
}: Pick<ReportObligation, "event" | "descriptor">): string => `${event}/${descriptor}`;

/** What came of handing one report over. */
export type PostAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** What the partner said, capped, in one line. */
      readonly words: string;
      readonly retryAfter: Millis | null;
    }
  /** It was refused with 404, 409 or 410, and the partner told which reports on its event it has. */
  | {
      readonly kind: "checked";
      readonly status: number;
      readonly words: string;
      readonly isListed: boolean;
      readonly retryAfter: null;
    }
  /** It was not asked, or did not answer. */
  | { readonly kind: "silent"; readonly reason: string; readonly retryAfter: Millis | null };

/** One report that is due some day: what it holds, and when to send it. */
export interface ReportWindow {
  readonly event: EventId;
  /** Index in `reportDescriptors`. */
  readonly descriptor: number;
  /** Which of the reports on this descriptor. */
  readonly k: number;
  readonly wanted: Wanted;
  readonly basis: "history" | "forecast";
  readonly intervals: readonly ReportInterval[];
  /** What it is about: the end of its last interval, the start of its first for a forecast. */
  readonly moment: Instant;
  readonly due: Instant;
  /** What is odd about the ask and about this answer, in words. */
  readonly flags: readonly string[];
}

/** One interval of a report; ids count from the start of the event. */
export interface ReportInterval {
  readonly id: number;
  readonly span: Window;
}

/** What setpointd can say of a vehicle (openadr3 1.2). */
export type Quantity =
  | "usage"
  | "demand"
  | "reading"
  | "setpoint"
  | "operatingState"
  | "chargeLevel"
  | "baseline"
  | "deltaUsage"
  | "dataQuality";

/** How a value is obtained from readings (openadr3 1.3). */
export type Method = "direct" | "mean" | "peak" | "summed" | "estimated" | "forecast";

/** What a descriptor asks for, in our words. */
export interface Wanted {
  /** As the partner spells it: the report answers in the same words. */
  readonly payloadType: string;
  /** Null: not one of ours; it is answered with "not available". */
  readonly quantity: Quantity | null;
  readonly method: Method;
  readonly aggregate: boolean;
  /** What a setpoint is told in: the unit of the event's own ask. */
  readonly level: "A" | "W";
}
