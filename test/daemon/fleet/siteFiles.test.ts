import { expect, test } from "vitest";

import { missingIn } from "../../../src/daemon/fleet/siteFiles.ts";
import { eventId, instant, millis } from "../../../src/domain/units.ts";
import { anEvent } from "../../support/anEvent.ts";

const now = instant(Date.UTC(2026, 10, 24));
const live = (over: object) => {
  const event = anEvent({ id: eventId("E"), targets: [{ type: "vehicle", values: ["v1", "v2"] }], ...over });
  return {
    kind: "live",
    id: event.id,
    revision: { event, start: now },
    source: "webhook",
    receivedAt: now,
    endings: [],
    descriptors: 0,
  } as const;
};
const file = {
  chargers: new Set<string>(),
  vehicles: new Set(["v1"]),
  vehiclesBefore: new Set(["v1", "v2"]),
};

test("a vehicle that an event which is not over needs must stay", () => {
  const running = live({ duration: millis(60_000), randomizeStart: millis(0) });
  expect(missingIn({ commands: [], events: [running] }, file, now)).toMatchObject([
    { path: "vehicles", found: "no v2, a target of the event E, which is not over" },
  ]);
  const over = live({ duration: millis(0), randomizeStart: millis(0) });
  expect(missingIn({ commands: [], events: [over] }, file, now)).toEqual([]);
});
