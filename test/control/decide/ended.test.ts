import { expect, test } from "vitest";

import { howEnded } from "../../../src/control/decide/reason.ts";
import { intake } from "../../../src/control/ingest/intake.ts";
import type { CoordinationEvent, KnownEvent } from "../../../src/domain/event.ts";
import { millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import { aContext } from "../../support/aCharger.ts";
import { anEvent, at, live, targetsOf, withdrawn } from "../../support/anEvent.ts";

const veh = vehicleId("veh-1");
const event = anEvent({ targets: targetsOf("veh-1", "veh-2"), randomizeStart: millis(0) });
/** The event from 05:00 to 06:00, edited at 05:30. */
function edited(changes: Partial<CoordinationEvent>): KnownEvent {
  const revision = at("05:30");
  const next = { ...event, revision, hash: "edited", ...changes };
  const { known } = intake(
    live(event),
    { kind: "event", event: next },
    {
      source: "fetch",
      at: revision,
      askedAt: revision,
    },
  );
  if (known === undefined) throw new Error("nothing is known of it");
  return known;
}
const ended = (known: KnownEvent | undefined, time: string) =>
  howEnded(known, veh, aContext(["veh-1", "veh-2"]), at(time));

test("an unchanged event ended in its time, and so did a forgotten one", () => {
  expect(ended(live(event), "06:00")).toBe("in its time");
  expect(ended(undefined, "06:00")).toBe("in its time");
});

test("a withdrawn event did not end in its time", () => {
  expect(ended(withdrawn(event, at("05:30")), "05:30")).toBe("withdrawn");
});

test.each([
  ["the vehicle was taken out", { targets: targetsOf("veh-2") }, "05:30", "no longer asked"],
  ["all targets were taken out", { targets: [] }, "05:30", "no longer asked"],
  [
    "it asks for something unknown",
    { ask: { kind: "unknown", payloadType: "x" } },
    "05:30",
    "no longer asked",
  ],
  ["it lasts no time any more", { duration: millis(0) }, "05:30", "no longer asked"],
  ["it should have ended before", { duration: minutes(20) }, "05:30", "cut short"],
  ["it ends earlier, but after the edit", { duration: minutes(40) }, "05:40", "in its time"],
  ["it starts later", { start: at("08:00"), wireStart: "08:00" }, "05:30", "put off"],
  ["only another vehicle was taken out", { targets: targetsOf("veh-1") }, "06:00", "in its time"],
] as const)("an edit in the middle: %s", (_, changes, time, how) => {
  expect(ended(edited(changes), time)).toBe(how);
});
