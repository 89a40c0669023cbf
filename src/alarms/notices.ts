import { type Alarm, alarmView, isGraver, type Notified } from "../domain/alarm.ts";
import type { Json } from "../domain/audit.ts";
import { after, between, type Instant, iso, type Millis, minutes, seconds } from "../domain/units.ts";

/** Change of an alarm that a receiver is sent. */
type NoticeChange = "opened" | "changed" | "acknowledged" | "repeated" | "cleared";

/** An alarm as it is sent, with what the receiver knows of it. */
export interface Notice {
  readonly change: NoticeChange;
  readonly alarm: Alarm;
  /** Null: no notice of this alarm was delivered. */
  readonly last: Notified | null;
}

/** Kind of a receiver: the form of the body, and when an alarm is repeated. */
export interface NoticeForm {
  /** Notices in one request. */
  readonly most: number;
  /** Null: not due again. */
  readonly repeatAfter: (alarm: Alarm) => Millis | null;
  /** True: the time of a repetition survives a restart. */
  readonly storesRepeats: boolean;
  readonly body: (notices: readonly Notice[], now: Instant) => Json;
}

/** An Alertmanager resolves an alarm that is not sent again within this time. */
const RESOLVES_AFTER = minutes(10);
const RESEND = minutes(2);

/**
 * Alerts as `POST /api/v2/alerts` reads them. Labels identify an alert, so one whose severity changed is resolved under
 * its former labels. An acknowledgement is an annotation: the Alertmanager has silences of its own.
 */
export const alertmanagerForm = (site: string): NoticeForm => ({
  most: 1_000,
  repeatAfter: () => RESEND,
  storesRepeats: false,
  body: (notices, now) =>
    notices.flatMap((notice) => {
      const { alarm, last } = notice;
      const present = alert(site, alarm, alarm.severity, alarm.clearedAt ?? after(now, RESOLVES_AFTER));
      const isOther = last !== null && last.severity !== alarm.severity;
      return isOther ? [alert(site, alarm, last.severity, now), present] : [present];
    }),
});

function alert(site: string, alarm: Alarm, severity: Alarm["severity"], endsAt: Instant): Json {
  const { kind, subject, since, message, action, acknowledged } = alarm;
  return {
    labels: {
      alertname: "SetpointdAlarm",
      site,
      kind,
      severity,
      ...(subject === null ? {} : { subject }),
    },
    annotations: {
      summary: message,
      action,
      ...(acknowledged === null
        ? {}
        : { acknowledged: [acknowledged.by, acknowledged.note].filter((text) => text !== "").join(": ") }),
    },
    startsAt: iso(since),
    // An end before the beginning is refused: the clock may have been set back between the two.
    endsAt: iso(endsAt < since ? since : endsAt),
  };
}

/** Alarms as `GET /api/v1/alarms` shows them, with their change. `repeat`: for those that no person acknowledged. */
export const webhookForm = (site: string, repeat: Millis): NoticeForm => ({
  most: 100,
  repeatAfter: ({ state }) => (state === "open" ? repeat : null),
  storesRepeats: true,
  body: (notices, now) => ({
    version: 1,
    site,
    sentAt: iso(now),
    alarms: notices.map(({ change, alarm }) => ({ change, ...alarmView(alarm) })),
  }),
});

/** Name of the kind of alarm about a receiver that cannot be reached. That receiver is not sent it. */
export const NOTIFY = "notify";

/**
 * The notice that a receiver is owed. Null: none. The newest state of an alarm wins: what came before it is not sent.
 * An alarm that cleared before the receiver was configured is not sent.
 */
export function owedNotice(alarm: Alarm, receiver: string, form: NoticeForm, now: Instant): Notice | null {
  if (alarm.kind === NOTIFY && alarm.subject === receiver) return null;
  const last = alarm.notified[receiver];
  if (last === undefined && alarm.state === "cleared") return null;
  const change =
    last === undefined || last === null ? firstChange(alarm) : nextChange(alarm, last, form, now);
  return change === null ? null : { change, alarm, last: last ?? null };
}

const firstChange = ({ state }: Alarm): NoticeChange => (state === "open" ? "opened" : state);

function nextChange(alarm: Alarm, last: Notified, form: NoticeForm, now: Instant): NoticeChange | null {
  const { state, severity } = alarm;
  if (state !== last.state) {
    if (state !== "open") return state;
    // A graver fact ended the silence of an acknowledgement.
    return last.state === "cleared" ? "opened" : "changed";
  }
  if (severity !== last.severity) return "changed";
  const repeat = state === "cleared" ? null : form.repeatAfter(alarm);
  // True also right after the clock was set back.
  const isDue = repeat !== null && Math.abs(between(last.at, now)) >= repeat;
  return isDue ? "repeated" : null;
}

/** Order of delivery: the gravest first, then the oldest. */
export const byUrgency = ({ alarm: one }: Notice, { alarm: other }: Notice): number => {
  if (one.severity !== other.severity) return isGraver(one.severity, other.severity) ? -1 : 1;
  return one.since - other.since;
};

/** Backoff of a receiver that cannot be reached. */
export const FIRST_RETRY = seconds(2);
export const LONGEST_RETRY = minutes(5);
