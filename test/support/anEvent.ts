import { hash } from "node:crypto";

import type { CoordinationEvent } from "../../src/domain/event.ts";
import type { Dispatch } from "../../src/control/schedule/expand.ts";
import type { Ending, KnownEvent } from "../../src/domain/event.ts";
import {
  amperes,
  eventId,
  type Instant,
  instant,
  millis,
  minutes,
  vehicleId,
} from "../../src/domain/units.ts";

/** A time of day of 2026-11-21, UTC, e.g. "05:00" or "05:02:17.500". */
export const at = (time: string): Instant =>
  instant(Date.parse(`2026-11-21T${time.length === 5 ? `${time}:00` : time}Z`));

/** One revision of EV-7731: 16 A for veh-214 from 05:00 for an hour, spread over ten minutes, priority 1. */
export function anEvent({ id, ...changes }: Changes = {}): CoordinationEvent {
  const start = changes.start ?? at("05:00");
  const fields = {
    revision: at("04:00"),
    created: at("03:00"),
    name: "Evening peak",
    programId: "PRG-1",
    priority: 1,
    wireStart: start === "now" ? "0001-01-01T00:00:00Z" : `wire ${start}`,
    duration: minutes(60),
    randomizeStart: minutes(10),
    ask: { kind: "current", level: 16 },
    targets: targetsOf("veh-214"),
    reports: [],
    ...changes,
    id: eventId(id ?? "EV-7731"),
    start,
  } as const;
  return { ...fields, hash: hash("sha256", JSON.stringify(fields), "hex") };
}
type Changes = Partial<Omit<CoordinationEvent, "hash" | "id">> & { readonly id?: string };

export const targetsOf = (...vehicles: string[]): CoordinationEvent["targets"] => [
  { type: "vehicle", values: vehicles },
];

/** What is known after one delivery of an event at its revision's time. */
export const live = (
  event: CoordinationEvent,
  changes: Partial<KnownEvent & { kind: "live" }> = {},
): KnownEvent & { kind: "live" } => {
  const receivedAt = changes.receivedAt ?? event.revision;
  return {
    kind: "live",
    id: event.id,
    revision: { event, start: event.start === "now" ? receivedAt : event.start },
    source: "fetch",
    receivedAt,
    endings: [],
    descriptors: event.reports.length,
    ...changes,
  };
};

export const withdrawn = (
  event: CoordinationEvent,
  when: Instant,
  endings: readonly Ending[] = [],
  anchor: Instant | null = null,
): KnownEvent => ({
  kind: "withdrawn",
  id: event.id,
  watermark: event.revision,
  anchor,
  receivedAt: when,
  deletedAt: when,
  endings,
  descriptors: event.reports.length,
});

/** veh-214's share of an event, 16 A from 05:00 to 06:00. */
export const aDispatch = (changes: Partial<Dispatch> = {}, event: Changes = {}): Dispatch => ({
  event: anEvent(event),
  vehicle: vehicleId("veh-214"),
  offset: millis(0),
  from: at("05:00"),
  until: at("06:00"),
  setpoint: { kind: "current", amperes: amperes(16) },
  cutAt: null,
  marks: 0,
  ...changes,
});
