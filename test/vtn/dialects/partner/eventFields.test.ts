import { expect, test } from "vitest";
import { readEvent } from "../../../../src/vtn/dialects/partner/event.ts";
import { anEvent, eventIn, rejectionIn } from "../../wire/anEvent.ts";

const accepted = (changes: Readonly<Record<string, unknown>>) => eventIn(readEvent(anEvent(changes)));
const refused = (changes: Readonly<Record<string, unknown>>) => {
  const { path, reason } = rejectionIn(readEvent(anEvent(changes)));
  return `${path}: ${reason}`;
};

test("a report descriptor is read whole", () => {
  const descriptor = {
    payloadType: "USAGE",
    readingType: "DIRECT_READ",
    targets: [{ targetType: "vehicle", values: ["veh-214"] }],
    aggregate: true,
    historical: false,
    frequency: -1,
    numIntervals: 4,
    repeat: 1,
    startInterval: 0,
  };
  expect(accepted({ reportDescriptors: [descriptor] }).reports).toEqual([
    { ...descriptor, targets: [{ type: "vehicle", values: ["veh-214"] }] },
  ]);
});

test("absence and nonsense in a report descriptor do not cost the event", () => {
  const nothingKnown = {
    payloadType: "",
    readingType: "",
    targets: [],
    aggregate: false,
    historical: true,
    frequency: null,
    numIntervals: null,
    repeat: null,
    startInterval: null,
  };
  const nonsense = {
    payloadType: 5,
    readingType: null,
    aggregate: "yes",
    historical: 0,
    frequency: 1.5,
    numIntervals: "4",
    repeat: 2 ** 60,
    startInterval: {},
  };
  expect(accepted({ reportDescriptors: [{}, nonsense] }).reports).toEqual([nothingKnown, nothingKnown]);
  for (const targets of [{}, [{ targetType: "vehicle", values: [5] }], [{ targetType: 5 }]])
    expect(accepted({ reportDescriptors: [null, { payloadType: "USAGE", targets }] }).reports).toEqual([
      nothingKnown,
      nothingKnown,
    ]);
  expect(accepted({ reportDescriptors: { payloadType: "USAGE" } }).reports).toEqual([
    { ...nothingKnown, payloadType: "USAGE" },
  ]);
  expect(accepted({ reportDescriptors: null }).reports).toEqual([]);
});

test("F65 a priority is an integer of any size, or none", () => {
  expect(accepted({ priority: null }).priority).toBeNull();
  expect(accepted({ priority: undefined }).priority).toBeNull();
  expect(accepted({ priority: -0 }).priority).toBe(0);
  expect(accepted({ priority: 2 ** 63 }).priority).toBe(2 ** 63);
  expect(accepted({ priority: -(2 ** 63) }).priority).toBe(-(2 ** 63));
  expect(refused({ priority: Number.POSITIVE_INFINITY })).toContain("is not a priority");
  expect(refused({ priority: 1.5 })).toContain("priority: 1.5");
  expect(refused({ priority: "1" })).toContain('priority: "1"');
});

const level = (targetCurrent: unknown) => ({ payload: { payloadType: "CurrentLevel", targetCurrent } });

test("F65 a level is a finite number", () => {
  expect(accepted(level(-0)).ask).toEqual({ kind: "current", level: 0 });
  expect(accepted(level(-7.5)).ask).toEqual({ kind: "current", level: -7.5 });
  expect(refused(level(JSON.parse("1e999")))).toBe(
    "payload.targetCurrent: Infinity is not a level; expected a finite number",
  );
  expect(refused(level("16"))).toContain("payload.targetCurrent");
  expect(refused({ payload: { payloadType: "PowerLevel", targetCurrent: 16 } })).toContain(
    "payload.targetPower",
  );
});

test("targets may be absent, and so may their values", () => {
  expect(accepted({ targets: null }).targets).toEqual([]);
  expect(accepted({ targets: [{ targetType: "group" }] }).targets).toEqual([{ type: "group", values: [] }]);
});

test("F66 a single bad target value is reported with its place", () => {
  const targets = [
    { targetType: "group", values: [] },
    { targetType: "vehicle", values: ["veh-1", "veh-\ud800"] },
  ];
  expect(refused({ targets })).toBe(
    'targets[1].values[1]: "veh-\\ud800" is not an id; expected well-formed Unicode, no lone surrogates',
  );
  expect(refused({ targets: [{ values: "veh-1" }] })).toContain("targets[0].values: ");
  expect(refused({ targets: ["veh-1"] })).toContain("targets[0]: ");
});

test("a program may be without a name, but a named one is named properly", () => {
  expect(accepted({ programID: undefined }).programId).toBe("");
  expect(accepted({ programID: "" }).programId).toBe("");
  expect(refused({ programID: "a\u0000" })).toContain("programID: ");
});
