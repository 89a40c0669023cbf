import * as z from "zod";
import { duration } from "./duration.ts";
import { count } from "./quantities.ts";

/** The least is longer than a sender retries a delivery, or a report waits to be sent (failures.md 3.4, F43). */
export const retentionSection = z.strictObject({
  events: duration("8d", "3650d")
    .prefault("90d")
    .describe(
      "How long an event is kept after its last window has ended, 8d to 3650d. Default 90d. Ages count only while the partner's clock agrees with ours.",
    ),
  maxEvents: count(100, 1_000_000)
    .prefault(20_000)
    .describe(
      "Ended events beyond this number go before their time, the oldest first, unless the partner still lists them. Default 20000.",
    ),
  withdrawn: duration("8d", "3650d")
    .prefault("400d")
    .describe(
      "How long it is remembered that an event was withdrawn, so that a late delivery cannot revive it. Default 400d.",
    ),
  reports: duration("8d", "3650d")
    .prefault("400d")
    .describe(
      "How long reports are kept, 8d to 3650d. Default 400d. One that is still to be sent always stays.",
    ),
  audit: duration("8d", "3650d")
    .prefault("400d")
    .describe(
      "How long rows of the record are kept, 8d to 3650d. Default 400d. Export them before that with audit --json where you must keep them longer.",
    ),
  maxAuditRows: count(10_000, 100_000_000)
    .prefault(3_000_000)
    .describe(
      "Rows of the record beyond this number go before their time; a thousand rows take about 1 MB. Default 3000000.",
    ),
});
