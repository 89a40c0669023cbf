import type { Retained } from "./retentionCaps.ts";
import type { Instant } from "./units.ts";

/** Part of its cap at which an alarm opens. It closes below the second: a level in between must not flap. */
const OPENS = 0.8;
const CLOSES = 0.75;

/** A kind of stored things that is near its cap, or beyond it. */
export interface RetentionAlarm {
  readonly kind: Retained;
  readonly since: Instant;
  /** Part of the cap that is used. */
  readonly used: number;
  /** Some of them left before their configured age. */
  readonly leftEarly: boolean;
  readonly message: string;
  readonly action: string;
}

/** What is retained, and the keys of the configuration that bound it. */
interface Words {
  readonly subject: string;
  readonly age: string;
  readonly cap: string;
}

const WORDS: Readonly<Record<Retained, Words>> = {
  readings: { subject: "readings", age: "report.keepReadings", cap: "retention.bytes" },
  record: {
    subject: "rows of the record",
    age: "retention.audit",
    cap: "retention.bytes or retention.maxAuditRows",
  },
  events: { subject: "ended events", age: "retention.events", cap: "retention.bytes or retention.maxEvents" },
};

/** The alarms before, and while, a cap of retention makes things leave before their configured age. */
export class RetentionAlarms {
  readonly #open = new Map<Retained, RetentionAlarm>();

  get open(): readonly RetentionAlarm[] {
    return [...this.#open.values()];
  }

  /** Takes a new measurement. Returns an alarm that has to be reported now; null: nothing new. */
  measured(kind: Retained, used: number, leavesEarly: boolean, now: Instant): RetentionAlarm | null {
    const before = this.#open.get(kind);
    if (!leavesEarly && used < (before === undefined ? OPENS : CLOSES)) {
      this.#open.delete(kind);
      return null;
    }
    const leftEarly = leavesEarly || (before?.leftEarly ?? false);
    const alarm = { kind, since: before?.since ?? now, used, leftEarly, ...inWords(kind, used, leftEarly) };
    this.#open.set(kind, alarm);
    return before === undefined || leftEarly !== before.leftEarly ? alarm : null;
  }
}

function inWords(
  kind: Retained,
  used: number,
  leftEarly: boolean,
): Pick<RetentionAlarm, "message" | "action"> {
  const { subject, age, cap } = WORDS[kind];
  const percent = Math.round(used * 100);
  return {
    message: leftEarly
      ? `${subject} leave before their age (${age}): what retention allows is used up`
      : `${subject} take ${percent} % of what retention allows: beyond that the oldest leave before their age (${age})`,
    action: `raise ${cap}, or shorten ${age}; setpointd check says how long each lasts`,
  };
}
