import type { Ending } from "./event.ts";
import type { Window, EventId, Instant, Millis } from "./units.ts";

/** Share of the common budget that reports may use. The rest is left to events. */
export const REPORT_REQUESTS_PER_HOUR = 120;

/** Last report of a descriptor that was handed to the outbox. Its period is not reported again. */
export type Issued = Pick<ReportWindow, "k" | "moment">;

/**
 * Obligation from one report descriptor of an event, and its progress. Until there is progress it follows from the
 * event and is not stored.
 */
export interface ReportObligation {
  readonly event: EventId;
  /** Index in `reportDescriptors`. */
  readonly descriptor: number;
  /** Receipt of the revision that contains the descriptor. */
  readonly receivedAt: Instant;
  /** Last report that was handed to the outbox. Null: none yet. */
  readonly issued: Issued | null;
  /** The event at its withdrawal. Null: not withdrawn. */
  readonly withdrawn: Ending | null;
  /** `done`: all reports are in the outbox. `flagged`: no further report, for `reason`. */
  readonly state: "open" | "done" | "flagged";
  readonly reason: string | null;
}

/** A composed report and its delivery state. Its body is stored beside it and never changes. */
export interface ReportRecord {
  /** `<eventID>/<descriptor#>/<k>` */
  readonly name: string;
  readonly event: EventId;
  readonly descriptor: number;
  readonly k: number;
  readonly payloadType: string;
  readonly span: Window;
  /** Short text for people, e.g. `3 vehicles, 4.2 kWh`. */
  readonly summary: string;
  /** Sentences about odd values in the descriptor or in this report. */
  readonly flags: readonly string[];
  readonly composedAt: Instant;
  /** Start of the delivery period: composed, or sent again by an operator. */
  readonly since: Instant;
  /** `flagged`: not delivered, for `reason`. With a next try, delivery may still succeed. */
  readonly state: "waiting" | "sent" | "flagged";
  /** Null: no further try. */
  readonly nextTry: Instant | null;
  readonly attempts: number;
  /** HTTP status of the last answer. Null: no answer. */
  readonly status: number | null;
  /** Cause of the failure, from us or in the partner's text. */
  readonly reason: string | null;
  /** The partner's answer to the accepted report, capped. */
  readonly receipt: string | null;
  readonly sentAt: Instant | null;
}

/** Key of an obligation, also in the store. An event id may contain "/"; a descriptor index does not. */
export const obligationKey = ({
  event,
  descriptor,
}: Pick<ReportObligation, "event" | "descriptor">): string => `${event}/${descriptor}`;

/** Result of one delivery attempt. */
export type PostAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** The partner's text, one line, capped. */
      readonly text: string;
      readonly retryAfter: Millis | null;
    }
  /** Refused with 404, 409 or 410. Then the partner's list of reports on this event was read. */
  | {
      readonly kind: "checked";
      readonly status: number;
      readonly text: string;
      readonly isListed: boolean;
      readonly retryAfter: null;
    }
  /** The report was not sent, or not answered. */
  | { readonly kind: "silent"; readonly reason: string; readonly retryAfter: Millis | null };

/** A future report: content and due time. */
export interface ReportWindow {
  readonly event: EventId;
  /** Index in `reportDescriptors`. */
  readonly descriptor: number;
  /** Number of the report within the descriptor. */
  readonly k: number;
  readonly wanted: Wanted;
  readonly basis: "history" | "forecast";
  readonly intervals: readonly ReportInterval[];
  /** Moment that the report describes: the end of its last interval. For a forecast: the start of its first. */
  readonly moment: Instant;
  readonly due: Instant;
  /** Sentences about odd values in the descriptor or in this report. */
  readonly flags: readonly string[];
}

/** An interval of a report. Ids count from the start of the event. */
export interface ReportInterval {
  readonly id: number;
  readonly span: Window;
}

/** Values that reports can carry (openadr3 1.2). */
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

/** Computation of a value from readings (openadr3 1.3). */
export type Method = "direct" | "mean" | "peak" | "summed" | "estimated" | "forecast";

/** A descriptor, translated. */
export interface Wanted {
  /** Payload type as the partner writes it. The report repeats it unchanged. */
  readonly payloadType: string;
  /** Null: unsupported, answered with "not available". */
  readonly quantity: Quantity | null;
  readonly method: Method;
  readonly aggregate: boolean;
  /** Unit of a setpoint: that of the event's level. */
  readonly level: "A" | "W";
}
