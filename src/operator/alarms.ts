import * as z from "zod";

import type { Alarms } from "../alarms/pipeline.ts";
import { type Alarm, alarmView, SEVERITIES } from "../domain/alarm.ts";
import type { Json } from "../domain/audit.ts";
import type { Stored } from "../domain/changes.ts";
import { sanitizeForLog } from "../platform/text.ts";
import { type Answer, invalid, notStored, type Problem } from "./answer.ts";

/** Requests about alarms: from the API and the command line. */
export interface AlarmApi {
  readonly list: (query: Readonly<Record<string, unknown>>) => Answer<Json>;
  /** `by`: name of the person. */
  readonly acknowledge: (key: string, body: unknown, by: string) => Promise<Answer<Json>>;
}

const STATES = ["open", "acknowledged", "cleared"] as const;
/** Characters of a note. */
const LONGEST_NOTE = 200;

export const alarmNote = z.strictObject({
  note: z.string().max(LONGEST_NOTE).prefault("").describe("For the record, e.g. who is on the way."),
});

/** Answers requests about alarms. `confirmLead`: not ok while another process may lead the site. */
export function alarmApi(alarms: Alarms, confirmLead: () => Promise<Stored>): AlarmApi {
  return {
    list({ state }) {
      if (state !== undefined && !STATES.some((name) => name === state))
        return invalid({
          path: "state",
          found: typeof state === "string" ? state : null,
          expected: `one of ${STATES.join(", ")}, or nothing for all`,
        });
      const all = alarms.registry.all().filter((alarm) => state === undefined || alarm.state === state);
      return { ok: true, value: all.toSorted(byWeight).map(alarmView) };
    },
    async acknowledge(key, body, by) {
      const read = alarmNote.safeParse(body ?? {});
      if (!read.success)
        return invalid({ path: "note", found: null, expected: `text of at most ${LONGEST_NOTE} characters` });
      const note = sanitizeForLog(read.data.note.trim());
      const done = await alarms.acknowledge(key, by, note);
      if ("ok" in done) return notStored(done, "the alarms");
      if ("refused" in done) {
        // A process whose lease is in doubt does not know which alarms the next leader has.
        const isSure = await confirmLead();
        return isSure.ok ? { ok: false, problem: refusal(key, done.alarm) } : notStored(isSure);
      }
      return { ok: true, value: alarmView(done.alarm) };
    },
  };
}

/** Order of the list: by state, then by severity, then the newest. */
export const byWeight = (one: Alarm, other: Alarm): number =>
  STATES.indexOf(one.state) - STATES.indexOf(other.state) ||
  SEVERITIES.indexOf(other.severity) - SEVERITIES.indexOf(one.severity) ||
  other.since - one.since ||
  one.key.localeCompare(other.key);

/** Most alarms that the status lists. */
const MAX_LISTED = 20;

/** Alarms that are not cleared, for the status. */
export function openAlarms(all: readonly Alarm[]): Json {
  const uncleared = all.filter(({ state }) => state !== "cleared").toSorted(byWeight);
  const open = uncleared.filter(({ state }) => state === "open").length;
  return {
    open,
    acknowledged: uncleared.length - open,
    list: uncleared.slice(0, MAX_LISTED).map(alarmView),
  };
}

function refusal(key: string, alarm: Alarm | null): Problem {
  if (alarm === null)
    return { status: 404, title: "no such alarm", detail: `${key}: setpointd alarms lists them`, errors: [] };
  const detail =
    alarm.acknowledged === null || alarm.state === "cleared"
      ? `${key} has cleared`
      : `${alarm.acknowledged.by} acknowledged ${key} before`;
  return { status: 409, title: "nothing to acknowledge", detail, errors: [] };
}
