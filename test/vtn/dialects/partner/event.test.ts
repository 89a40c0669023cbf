import * as fc from "fast-check";
import { expect, test } from "vitest";
import { readEvent } from "../../../../src/vtn/dialects/partner/event.ts";
import { anEvent, eventIn, rejectionIn } from "../../wire/anEvent.ts";

const refused = (raw: unknown) => {
  const { id, path, reason } = rejectionIn(readEvent(raw));
  return { id, path, reason };
};

test("an event is read with every field of the contract", () => {
  expect(eventIn(readEvent(anEvent()))).toEqual({
    id: "EV-7731",
    revision: Date.UTC(2026, 10, 21, 7),
    created: Date.UTC(2026, 10, 20, 8),
    name: "Evening peak",
    programId: "PRG-1",
    priority: 2,
    wireStart: "2026-11-21T16:00:00.000Z",
    start: Date.UTC(2026, 10, 21, 16),
    duration: 5_400_000,
    randomizeStart: 600_000,
    ask: { kind: "current", level: 16 },
    targets: [{ type: "vehicle", values: ["veh-214", "veh-215"] }],
    reports: [],
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

const startingAt = (start: string) =>
  eventIn(
    readEvent(anEvent({ intervalPeriod: { start, duration: "01:30:00", randomizeStart: "00:10:00" } })),
  );

test("every spelling of a start gives one event: the same hash, and the same text to draw offsets from", () => {
  const plain = startingAt("2026-11-21T16:00:00Z");
  for (const start of ["2026-11-21T17:00:00+01:00", "2026-11-21T16:00:00.0000000Z", "2026-11-21T16:00:00"])
    expect(startingAt(start)).toEqual(plain);
  expect(plain.wireStart).toBe("2026-11-21T16:00:00.000Z");
  // "Now" has no instant of its own: the text on the wire counts.
  expect(startingAt("0001-01-01T00:00:00Z").wireStart).toBe("0001-01-01T00:00:00Z");
});

test("the least that an event needs is an id, a start, a duration and a payload", () => {
  const least = {
    ID: "EV-1",
    intervalPeriod: { start: "0000-00-00", duration: "00:00:00" },
    payload: { payloadType: "Unknown", targetCurrent: 0 },
  };
  expect(eventIn(readEvent(least))).toMatchObject({
    revision: 0,
    created: 0,
    name: "",
    programId: "",
    priority: null,
    start: "now",
    wireStart: "0000-00-00",
    randomizeStart: 0,
    ask: { kind: "unknown", payloadType: "Unknown" },
    targets: [],
    reports: [],
  });
});

test("without a modification time the creation time is the revision", () => {
  const event = eventIn(readEvent(anEvent({ modificationDateTime: null })));
  expect(event.revision).toBe(event.created);
});

test("eventId and eventName are read where ID and name are absent", () => {
  const { ID: _, name: __, ...rest } = anEvent();
  const event = eventIn(readEvent({ ...rest, eventId: "EV-2", eventName: "Morning" }));
  expect([event.id, event.name]).toEqual(["EV-2", "Morning"]);
  const both = eventIn(readEvent(anEvent({ eventId: "EV-2", eventName: "Morning" })));
  expect([both.id, both.name]).toEqual(["EV-7731", "Evening peak"]);
});

test.each([
  ["ID", anEvent({ ID: undefined }), null],
  ["ID", anEvent({ ID: 7731 }), null],
  ["ID", anEvent({ ID: "" }), null],
  ["modificationDateTime", anEvent({ modificationDateTime: "yesterday" }), "EV-7731"],
  ["intervalPeriod", anEvent({ intervalPeriod: undefined }), "EV-7731"],
  ["intervalPeriod.start", anEvent({ intervalPeriod: { duration: "01:00:00" } }), "EV-7731"],
  ["intervalPeriod.duration", anEvent({ intervalPeriod: { start: "2026-11-21" } }), "EV-7731"],
  [
    "intervalPeriod.randomizeStart",
    anEvent({ intervalPeriod: { start: "2026-11-21", duration: "PT1H", randomizeStart: "-00:01:00" } }),
    "EV-7731",
  ],
  ["payload", anEvent({ payload: null }), "EV-7731"],
  ["payload.payloadType", anEvent({ payload: {} }), "EV-7731"],
  ["", 5, null],
  ["", [], null],
])("an event that is wrong at %j is rejected there", (path, raw, id) => {
  expect(refused(raw)).toMatchObject({ path, id });
});

test("F57 a rejection names the value found and the value expected", () => {
  expect(refused(anEvent({ intervalPeriod: { start: "2026-11-21", duration: "abc" } }))).toEqual({
    id: "EV-7731",
    path: "intervalPeriod.duration",
    reason: '"abc" is not a timespan; expected hh:mm:ss, d.hh:mm:ss or an ISO 8601 duration',
  });
});

test("F37 what was rejected is kept as text, capped", () => {
  const small = { ID: "EV-1", payload: {} };
  expect(rejectionIn(readEvent(small)).raw).toBe(JSON.stringify(small));
  const raw = rejectionIn(readEvent({ ID: "EV-1", name: "🚌".repeat(100_000) })).raw;
  expect(raw.length).toBeLessThanOrEqual(4096);
  expect(raw.isWellFormed()).toBe(true);
});

/** Both upper and lower case, letter by letter, at every depth. */
function recased(value: unknown, upper: () => boolean): unknown {
  if (Array.isArray(value)) return value.map((entry) => recased(entry, upper));
  if (typeof value !== "object" || value === null) return value;
  const recase = (key: string) =>
    Array.from(key, (letter) => (upper() ? letter.toUpperCase() : letter.toLowerCase())).join("");
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [recase(key), recased(inner, upper)]),
  );
}

test("the case and the order of field names never change what an event is", () => {
  const event = anEvent({ reportDescriptors: [{ payloadType: "USAGE", targets: [{ values: ["veh-1"] }] }] });
  const { hash } = eventIn(readEvent(event));
  fc.assert(
    fc.property(
      fc.infiniteStream(fc.boolean()),
      fc.shuffledSubarray(Object.entries(event), { minLength: Object.keys(event).length }),
      (coins, entries) => {
        const wire = recased(Object.fromEntries(entries), () => coins.next().value ?? false);
        expect(eventIn(readEvent(wire)).hash).toBe(hash);
      },
    ),
  );
});

test("any change of a field that counts changes the hash", () => {
  const changes = [
    {},
    { ID: "EV-7732" },
    { modificationDateTime: "2026-11-21T07:00:01Z" },
    { name: "" },
    { priority: null },
    { programID: "" },
    { targets: [] },
    { reportDescriptors: [{}] },
    { payload: { payloadType: "PowerLevel", targetPower: 16 } },
    {
      intervalPeriod: { start: "2026-11-21T16:00:00.001Z", duration: "01:30:00", randomizeStart: "00:10:00" },
    },
  ];
  const hashes = changes.map((change) => eventIn(readEvent(anEvent(change))).hash);
  expect(new Set(hashes).size).toBe(changes.length);
  expect(eventIn(readEvent(anEvent({ unknown: 1 }))).hash).toBe(hashes[0]);
});
