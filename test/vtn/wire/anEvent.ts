import type { CoordinationEvent } from "../../../src/domain/event.ts";
import type { Notice, Rejected } from "../../../src/domain/delivery.ts";

/** An event as the partner writes it, with some fields replaced; undefined leaves one out. */
export const anEvent = (changes: Readonly<Record<string, unknown>> = {}) => ({
  createdDateTime: "2026-11-20T08:00:00Z",
  ID: "EV-7731",
  modificationDateTime: "2026-11-21T07:00:00Z",
  name: "Evening peak",
  priority: 2,
  programID: "PRG-1",
  targets: [{ targetType: "vehicle", values: ["veh-214", "veh-215"] }],
  intervalPeriod: { start: "2026-11-21T16:00:00Z", duration: "01:30:00", randomizeStart: "00:10:00" },
  payload: { payloadType: "CurrentLevel", targetCurrent: 16 },
  ...changes,
});

export const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** The event that a notice holds; fails the test where it holds none. */
export function eventIn(notice: Notice | undefined): CoordinationEvent {
  if (notice?.kind !== "event") throw new Error(`no event: ${JSON.stringify(notice)}`);
  return notice.event;
}

/** The rejection that a notice holds; fails the test where it holds none. */
export function rejectionIn(notice: Notice | undefined): Rejected {
  if (notice?.kind !== "rejected") throw new Error(`not rejected: ${JSON.stringify(notice)}`);
  return notice;
}
