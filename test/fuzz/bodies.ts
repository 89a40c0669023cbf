import { anEvent } from "../vtn/wire/anEvent.ts";

const wide = anEvent({
  ID: "EV-Ærø 🚌",
  createdDateTime: "2026-11-20T08:00:00.1234567+01:00",
  intervalPeriod: { start: "0001-01-01T00:00:00", duration: "1.02:00:00", randomizeStart: "PT10M" },
  payload: { payloadType: "PowerLevel", targetPower: -2.5e1 },
  priority: null,
  reportDescriptors: [
    {
      payloadType: "USAGE",
      readingType: "DIRECT_READ",
      targets: [{ targetType: "vehicle", values: ["veh-214"] }],
      aggregate: false,
      frequency: 1,
      historical: true,
      numIntervals: -1,
      repeat: 1,
      startInterval: -1,
    },
  ],
});

/** Every shape that a sender may choose (reference/openadr3 6), all of them valid. */
const shapes: readonly unknown[] = [
  anEvent(),
  wide,
  [anEvent(), wide],
  { events: [anEvent(), wide, anEvent({ ID: "EV-3" })] },
  { event: anEvent() },
  { data: [anEvent()] },
  { object: wide },
  { objectType: "EVENT", operation: "UPDATE", object: anEvent() },
  { objectType: "EVENT", operation: "DELETE", object: { ID: "EV-7731" } },
  { specversion: "1.0", id: "d-1", type: "event.created", source: "/vtn", data: anEvent() },
  { eventId: "EV-7731" },
  ["EV-7731", "EV-3"],
  { payloadType: "Unknown", payload: { payloadType: "Unknown", targetCurrent: 1 }, intervalPeriod: {} },
];

/** What mutation starts from. */
export const validBodies: readonly Buffer[] = shapes.map((shape) => Buffer.from(JSON.stringify(shape)));

/** Values that have broken readers; JSON, so they get past the parser. */
export const hardValues: readonly string[] = [
  ["1e999", "-1e999", "-0", "9007199254740993", "1e-400", "null", "true", '""', "[]", "{}", "[[1]]"],
  [
    '"\\ud800"',
    '"\\ud801x"',
    '"\\u0000"',
    '"a\\u0301"',
    '"+/#"',
    '"$SYS"',
    '"__proto__"',
    '{"__proto__":{"polluted":1}}',
  ],
  ['"99:59:59"', '"-00:00:01"', '"P9999Y"', '"1.02:00:00"', '"PT0.5S"', '"24:60:00"'],
  ['"2026-02-30T00:00:00Z"', '"9999-12-31T23:59:60Z"', '"0000-00-00"', '"0001-01-01T00:00:00"'],
].flat();

/** Pieces of text that have broken parsers, put in anywhere. */
export const poison: readonly string[] = [
  hardValues,
  ['"__proto__":{"polluted":1},', '"constructor":{"prototype":{"polluted":1}},', '"ID":"EV-2",'],
  ["NaN", "0x10", "-", "\u0000", "\ufeff", "\u2028", "/*", "<html>"],
  ["{", "}", "[", "]", ",", ":", '"', "\\", "[[[[", "{{"],
].flat();
