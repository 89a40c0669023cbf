import * as z from "zod";

import type { Retention } from "../../retention/rules.ts";
import { duration, count, reads } from "../fields/quantities.ts";

/** Whole bytes. Decimal units, as for disks. */
const bytes = reads((text) => {
  const [, digits, unit] = /^(\d{1,6})(MB|GB|TB)$/.exec(text) ?? [];
  const size = Number(digits) * (unit === "MB" ? 1e6 : unit === "GB" ? 1e9 : 1e12);
  return size >= 100e6 && size <= 1e12 ? size : null;
}, "a size from 100MB to 1TB: a whole number with its unit, e.g. 500MB, 8GB or 1TB");

/** The minimum is longer than any retry of a delivery, and than any report waits to be sent. */
export const retentionSection = z.strictObject({
  events: duration("8d", "3650d")
    .prefault("90d")
    .describe(
      "How long an event is kept after its last window has ended, 8d to 3650d. Default 90d. Ages count only while the partner's clock agrees with ours.",
    ),
  maxEvents: count(100, 1_000_000)
    .prefault(20_000)
    .describe(
      "Ended events beyond this number are deleted early, oldest first, unless the partner still lists them. Default 20000.",
    ),
  withdrawn: duration("8d", "3650d")
    .prefault("400d")
    .describe(
      "How long a withdrawal is stored, so that a late delivery cannot revive the event. Default 400d.",
    ),
  reports: duration("8d", "3650d")
    .prefault("400d")
    .describe(
      "How long reports are kept, 8d to 3650d. Default 400d. A report that is not sent yet is always kept.",
    ),
  audit: duration("8d", "3650d")
    .prefault("400d")
    .describe(
      "How long rows of the record are kept, 8d to 3650d. Default 400d. Export them with audit --json first if you must keep them longer.",
    ),
  maxAuditRows: count(10_000, 100_000_000)
    .prefault(100_000_000)
    .describe(
      "Rows of the record beyond this number are deleted early; a thousand rows need about 1 MB. Default 100000000, so that bytes decides.",
    ),
  bytes: bytes
    .nullable()
    .prefault(null)
    .describe(
      "Disk space for stored data, 100MB to 1TB: 60 % for readings, 30 % for the record, 10 % for ended events. Beyond it the oldest are deleted early. There is a warning from 80 % on. Default null: 4 GB and 10 MB for each charger, twice that with PostgreSQL. setpointd check shows how long that lasts.",
    ),
});

const MOST_BYTES = 1e12;
const LEAST_BYTES = 4e9;
const BYTES_OF_CHARGER = 10e6;

/** Size of a stored charger message, in bytes. Measured in full tables: 114 with SQLite, 265 with PostgreSQL. */
const READING_BYTES = { files: 130, database: 270 };
/** Factor of the default with PostgreSQL, by which it keeps as many readings. */
const MORE_IN_DATABASE = 2;

/** The default grows with the site, as readings and the record do. `isInDatabase`: the state is in PostgreSQL. */
export const retentionOf = (
  section: z.infer<typeof retentionSection>,
  chargers: number,
  isInDatabase: boolean,
): Retention => {
  const more = isInDatabase ? MORE_IN_DATABASE : 1;
  const wanted = (LEAST_BYTES + BYTES_OF_CHARGER * chargers) * more;
  return {
    ...section,
    bytes: section.bytes ?? Math.min(wanted, MOST_BYTES),
    readingBytes: isInDatabase ? READING_BYTES.database : READING_BYTES.files,
  };
};
