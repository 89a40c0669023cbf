import type { Json } from "./audit.ts";
import { type Instant, iso } from "./units.ts";

/** From the least to the gravest. */
export const SEVERITIES = ["info", "warning", "critical"] as const;

export type Severity = (typeof SEVERITIES)[number];

/** A fact that needs a person, as long as it lasts. Kind and subject identify it. */
export interface AlarmFact {
  /** E.g. `broker`, `offline`, `certificate`. */
  readonly kind: string;
  /** Charger, broker, certificate or kind of stored data. Null: the whole site. */
  readonly subject: string | null;
  readonly severity: Severity;
  /** Beginning of the fact. Null: not known. */
  readonly since: Instant | null;
  /** Sentence that describes the fact. */
  readonly message: string;
  /** Sentence that describes the remedy. */
  readonly action: string;
}

/** A fact with a beginning and an end, as it is stored and shown. */
export interface Alarm extends AlarmFact {
  readonly key: string;
  readonly state: "open" | "acknowledged" | "cleared";
  readonly since: Instant;
  readonly lastSeen: Instant;
  /** End of the fact, also before the alarm clears. Null: the fact holds. */
  readonly goneSince: Instant | null;
  /** Null: not cleared. */
  readonly clearedAt: Instant | null;
  /** Number of beginnings of the fact within this alarm. */
  readonly count: number;
  /** Null: not acknowledged. */
  readonly acknowledged: Acknowledgement | null;
  /** Last notice that each receiver accepted. Null: none yet. Absent: it was configured after the alarm opened. */
  readonly notified: Readonly<Record<string, Notified | null>>;
}

/** An alarm as a receiver was last sent it. */
export interface Notified extends Pick<Alarm, "state" | "severity"> {
  readonly at: Instant;
}

/** A person has seen the alarm. */
export interface Acknowledgement {
  readonly at: Instant;
  readonly by: string;
  readonly note: string;
}

/** Key of a fact. It is one segment of a URL and one level of an MQTT topic. */
export const alarmKey = ({ kind, subject }: Pick<AlarmFact, "kind" | "subject">): string =>
  subject === null ? kind : `${kind}:${subject.replaceAll(/[^\w.-]/gu, escaped)}`;

/** `~` and the bytes in hex, so that two subjects never share a key. */
const escaped = (character: string): string => `~${Buffer.from(character).toString("hex")}~`;

/** True: the first is graver than the second. */
export const isGraver = (one: Severity, other: Severity): boolean =>
  SEVERITIES.indexOf(one) > SEVERITIES.indexOf(other);

/** The alarm as the API, the stream and MQTT show it. While it waits for its quiet time, its sentences say that it is over. */
export const alarmView = (alarm: Alarm): { readonly [member: string]: Json } => {
  const { key, kind, severity, state, since, lastSeen, goneSince, clearedAt, count, subject } = alarm;
  const { acknowledged } = alarm;
  const waits = goneSince !== null && clearedAt === null;
  const message = waits ? `over for now, clears unless it returns: ${alarm.message}` : alarm.message;
  const action = waits ? `nothing now; if it returns: ${alarm.action}` : alarm.action;
  return {
    key,
    kind,
    severity,
    state,
    since: iso(since),
    lastSeen: iso(lastSeen),
    goneSince: goneSince === null ? null : iso(goneSince),
    clearedAt: clearedAt === null ? null : iso(clearedAt),
    count,
    subject,
    message,
    action,
    acknowledged: acknowledged === null ? null : { ...acknowledged, at: iso(acknowledged.at) },
  };
};
