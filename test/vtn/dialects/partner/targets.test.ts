import { expect, test } from "vitest";

import { readEvent } from "../../../../src/vtn/dialects/partner/event.ts";
import { anEvent } from "../../wire/anEvent.ts";
import { processorMs } from "../../../support/processorMs.ts";

const ids = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `veh-${index}`);
const empty = (count: number) => Array.from({ length: count }, () => ({}));
const vehicles = (count: number) => [{ targetType: "vehicle", values: ids(count) }];

test("100,000 target values are read, one more is rejected with its path", () => {
  expect(readEvent(anEvent({ targets: vehicles(100_000) })).kind).toBe("event");
  expect(readEvent(anEvent({ targets: vehicles(100_001) }))).toMatchObject({
    kind: "rejected",
    id: "EV-7731",
    path: "targets",
    reason: "more than 100000 target values in one event; expected at most as many",
  });
});

test("the targets of report descriptors count as well, and a target without values counts as one", () => {
  const descriptors = [{ targets: vehicles(60_000) }, { targets: empty(40_001) }];
  expect(readEvent(anEvent({ targets: [], reportDescriptors: descriptors }))).toMatchObject({
    kind: "rejected",
    path: "reportDescriptors[1].targets",
  });
  const most = [{ targets: vehicles(60_000) }, { targets: empty(40_000) }];
  expect(readEvent(anEvent({ targets: [], reportDescriptors: most })).kind).toBe("event");
});

test("100 report descriptors are read, 340,000 are rejected before any of them is read", () => {
  expect(readEvent(anEvent({ reportDescriptors: empty(100) })).kind).toBe("event");
  expect(readEvent(anEvent({ reportDescriptors: empty(340_000) }))).toMatchObject({
    kind: "rejected",
    path: "reportDescriptors",
    reason: "340000 report descriptors; expected at most 100",
  });
});

test("an event of millions of empty targets costs next to nothing", () => {
  const event = anEvent({ targets: empty(5_000_000) });
  const took = processorMs(() =>
    expect(readEvent(event)).toMatchObject({ kind: "rejected", path: "targets" }),
  );
  expect(took).toBeLessThan(500);
});

test.each([
  [{ targets: {} }, "targets", "{} is not a list; expected a JSON array"],
  [{ targets: [5] }, "targets[0]", "5 is not a target; expected a JSON object"],
  [{ targets: [{ targetType: 5 }] }, "targets[0].targetType", "5 is not a text; expected a JSON string"],
  [{ targets: [{ values: 5 }] }, "targets[0].values", "5 is not a list; expected an array of ids"],
  [{ targets: [{}, { values: ["a", ""] }] }, "targets[1].values[1]", null],
])("a mistake in the targets is reported with its place: %j", (fields, path, reason) => {
  const read = readEvent(anEvent(fields));
  expect(read).toMatchObject({ kind: "rejected", path, ...(reason === null ? {} : { reason }) });
});
