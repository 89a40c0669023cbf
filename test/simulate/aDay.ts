import { type Action, type Calendar, type Day, HOUR, MINUTE, type PlannedEvent } from "./plan.ts";

/** In the zone of the depot there is no other time than UTC's. */
const ORDINARY: Calendar = { midnight: Date.parse("2026-11-21T00:00:00Z"), zone: "UTC", writtenIn: "UTC" };

/** "08:30" or "08:30:15", ms of the day. */
export function time(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = text.split(":").map(Number);
  return hours * HOUR + minutes * MINUTE + seconds * 1000;
}

/** A day by hand: one charger with its vehicle, and what happens. */
export const aDay = (actions: readonly Action[], calendar: Calendar = ORDINARY): Day => ({
  ...calendar,
  seed: 1,
  chargers: [{ id: "bay-01", maxCurrent: 32, belowMinimum: "pause", phases: 3, tells: false }],
  vehicles: [{ id: "v1", charger: "bay-01", maxCurrent: null }],
  knobs: {
    priority: "lower",
    priorityZero: "highest",
    ties: "newest",
    randomizedEnd: "shift",
    pollEvery: MINUTE,
    reports: false,
  },
  actions: actions.toSorted((a, b) => a.at - b.at),
});

/** At one minute past midnight the partner has an event of 10 A, and says so. */
export const asked = (
  id: string,
  from: string,
  until: string,
  changes: Partial<PlannedEvent> = {},
): Action => ({
  kind: "put",
  at: MINUTE,
  event: {
    id,
    start: time(from),
    duration: time(until) - time(from),
    spread: 0,
    priority: 1,
    ask: { kind: "current", amperes: 10 },
    vehicles: ["v1"],
    reports: [],
    ...changes,
  },
  sameTime: false,
  deliveries: [100],
});
