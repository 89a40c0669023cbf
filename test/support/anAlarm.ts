import type { Alarm } from "../../src/domain/alarm.ts";
import { instant } from "../../src/domain/units.ts";

const AT = instant(Date.parse("2026-11-23T05:30:00Z"));

/** An open alarm of the whole site. */
export const anAlarm = (kind: string): Alarm => ({
  key: kind,
  kind,
  subject: null,
  severity: "critical",
  state: "open",
  since: AT,
  lastSeen: AT,
  goneSince: null,
  clearedAt: null,
  count: 1,
  message: `${kind} fails`,
  action: "repair it",
  acknowledged: null,
  notified: {},
});
