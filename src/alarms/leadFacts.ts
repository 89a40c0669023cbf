import type { AlarmFact } from "../domain/alarm.ts";
import type { Leadership } from "../domain/leadership.ts";
import { between, type Instant, instant, iso, minutes, seconds } from "../domain/units.ts";

/** Time for which a takeover after a lapsed lease is shown. */
const LAPSED_FOR = minutes(60);
/** The leader ingests a delivery of a stand-in at once. After this time it is stuck. */
const WAITING_FOR = seconds(30);

/** Facts about the lease on the site, and about deliveries of stand-ins. Null: no other process can lead. */
export function leadFacts(
  leadership: Pick<Leadership, "lapsed" | "backlog"> | null,
  now: Instant,
): readonly AlarmFact[] {
  if (leadership === null) return [];
  const facts: AlarmFact[] = [];
  const lapsed = leadership.lapsed(now);
  if (lapsed !== null && between(lapsed.at, now) < LAPSED_FOR)
    facts.push({
      kind: "leaseLost",
      subject: null,
      severity: "warning",
      since: lapsed.at,
      message: `${lapsed.process} led the site until its lease ended at ${iso(lapsed.at)} without a release: it was killed, stood still, or could not reach the database`,
      action:
        "look at that machine, its log and its way to the database; setpointd status shows the present leader",
    });
  const { backlog } = leadership;
  if (backlog !== null && backlog.longest >= WAITING_FOR) {
    facts.push({
      kind: "deliveriesWaiting",
      subject: null,
      severity: "warning",
      since: instant(now - backlog.longest),
      message: `deliveries that a stand-in received are not ingested: ${backlog.count} wait`,
      action: "look at the log of this process for the reason, and at the load of the database",
    });
  }
  return facts;
}
