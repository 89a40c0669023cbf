import type { Retention } from "./retention.ts";

/** The kinds of stored things that grow with the site. */
export type Retained = "readings" | "record" | "events";

/** Share of `retention.bytes` of each kind. */
const SHARES: Readonly<Record<Retained, number>> = { readings: 0.6, record: 0.3, events: 0.1 };
/** One message of a charger, with its HMAC. Measured: 114 in a full table. */
const READING_BYTES = 130;
/** One row of the record, with its indexes. */
const RECORD_ROW_BYTES = 1000;

/** How much of each kind is kept; beyond it the oldest go before their age. */
export interface RetentionCaps {
  /** Stored messages of chargers. */
  readonly readings: number;
  /** Rows of the record. */
  readonly record: number;
  /** Bytes of ended events. */
  readonly events: number;
}

export const capsOf = ({
  bytes,
  maxAuditRows,
}: Pick<Retention, "bytes" | "maxAuditRows">): RetentionCaps => ({
  readings: Math.floor((bytes * SHARES.readings) / READING_BYTES),
  record: Math.min(maxAuditRows, Math.floor((bytes * SHARES.record) / RECORD_ROW_BYTES)),
  events: Math.floor(bytes * SHARES.events),
});

/** Decimal units: 4.1 GB. */
export function formatBytes(bytes: number): string {
  const [size, unit] = bytes < 1e9 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"];
  return `${Math.round(size * 10) / 10} ${unit}`;
}
