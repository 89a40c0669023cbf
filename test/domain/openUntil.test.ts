import { expect, test } from "vitest";

import { type KnownEvent, openUntil } from "../../src/domain/event.ts";
import { minutes } from "../../src/domain/units.ts";
import { anEvent, at, live } from "../support/anEvent.ts";

const event = anEvent({ start: at("05:00"), duration: minutes(60), randomizeStart: minutes(5) });
const running = live(event);
const withdrawn: KnownEvent = {
  kind: "withdrawn",
  id: event.id,
  watermark: event.revision,
  anchor: null,
  receivedAt: at("05:30"),
  deletedAt: at("05:30"),
  endings: [{ revision: { event, start: at("05:00") }, at: at("05:30") }],
  descriptors: 0,
};

test.each([
  ["unheard of", undefined, "05:30", null],
  ["still to come", running, "04:59", null],
  ["running", running, "05:00", "06:05"],
  ["over", running, "06:05", null],
  ["just withdrawn", withdrawn, "05:31", "05:40"],
  ["withdrawn for longer than its end is spread", withdrawn, "05:40", null],
  ["replaced by one to come", { ...running, endings: withdrawn.endings }, "04:30", "05:40"],
] as const)("the latest end of an event that is %s", (_, known, now, until) => {
  expect(openUntil(known, at(now))).toBe(until === null ? null : at(until));
});

test("an event in force when its charger was freed still counts when the clock is set back before it", () => {
  expect(openUntil(running, at("04:30"), at("05:10"))).toBe(at("06:05"));
});
