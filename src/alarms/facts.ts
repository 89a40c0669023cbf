import type { AlarmFact } from "../domain/alarm.ts";
import type { AuditEntry } from "../domain/audit.ts";
import type { Leadership } from "../domain/leadership.ts";
import { between, type Instant, instant, minutes, seconds, hours } from "../domain/units.ts";

/** Time for which an event is shown that was not accepted afterwards. */
const REJECTED_FOR = hours(24);
/** A fault is over after this time without a message that is not accepted. */
const DISCARDED_FOR = minutes(10);
/** A few unreadable messages are no fault that lasts. */
const MANY_DISCARDED = 3;
/** Cap on remembered events, and so on their alarms. The oldest go first. */
const MOST_REJECTED = 100;

interface RejectedInput {
  readonly since: Instant;
  readonly at: Instant;
  readonly message: string;
}

interface Discarded {
  readonly since: Instant;
  readonly at: Instant;
  readonly why: string;
  readonly count: number;
}

/** Why a message of a charger is discarded, as people read it. */
const REASONS: Readonly<Record<string, string>> = {
  unreadable: "cannot be read",
  tooMany: "are more than it may send in a second",
};

/** Input that was set aside: events of the partner, and messages of chargers. */
export class InputFaults {
  /** By event id. "": input without an id. */
  readonly #rejected = new Map<string, RejectedInput>();
  readonly #discarded = new Map<string, Discarded>();

  /** Reads rows of the record, the oldest first. An event that is accepted is no fault any more. */
  read(rows: readonly Pick<AuditEntry, "kind" | "event" | "at" | "words">[]): void {
    for (const { kind, event, at, words } of rows) {
      if (kind === "event" && event !== null) this.#rejected.delete(event);
      if (kind !== "rejected") continue;
      const key = event ?? "";
      const since = this.#rejected.get(key)?.since ?? at;
      this.#rejected.delete(key);
      this.#rejected.set(key, { since, at, message: words });
    }
    for (const oldest of this.#rejected.keys()) {
      if (this.#rejected.size <= MOST_REJECTED) break;
      this.#rejected.delete(oldest);
    }
  }

  /** A message of a charger was discarded. */
  discarded(charger: string, why: string, at: Instant): void {
    const before = this.#discarded.get(charger);
    const isOver = before === undefined || isPast(before.at, at, DISCARDED_FOR);
    this.#discarded.set(charger, {
      since: isOver ? at : before.since,
      at,
      why,
      count: isOver ? 1 : before.count + 1,
    });
  }

  /** The faults that last. */
  facts(now: Instant): readonly AlarmFact[] {
    for (const [key, { at }] of this.#rejected) if (isPast(at, now, REJECTED_FOR)) this.#rejected.delete(key);
    for (const [charger, { at }] of this.#discarded)
      if (isPast(at, now, DISCARDED_FOR)) this.#discarded.delete(charger);
    const events = [...this.#rejected].map(([event, { since, message }]): AlarmFact => ({
      kind: "rejected",
      subject: event === "" ? null : event,
      severity: "warning",
      since,
      message,
      action:
        "ask the partner to send it again with that mistake corrected, or where it does not fit in memory, give the service more (MemoryMax); page Log, or setpointd audit --problems, shows what was set aside",
    }));
    const chargers = [...this.#discarded].flatMap(([charger, { since, why, count }]): readonly AlarmFact[] =>
      count < MANY_DISCARDED
        ? []
        : [
            {
              kind: "discarded",
              subject: charger,
              severity: "warning",
              since,
              message: `messages of ${charger} are discarded: they ${REASONS[why] ?? why}`,
              action: `compare its messages with setpointd profile try, and its topics with setpointd profile show`,
            },
          ],
    );
    return [...events, ...chargers];
  }
}

/** True also right after the clock was set back: a fault must not stay for as long as the clock was ahead. */
const isPast = (at: Instant, now: Instant, span: number): boolean => Math.abs(between(at, now)) >= span;

/** Time for which a takeover after a lapsed lease is shown. */
const LAPSED_FOR = hours(1);
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
      message: `${lapsed.process} led the site until its lease ended without a release: it was killed, stood still, or could not reach the database`,
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
