import { expect, test } from "vitest";
import { readPart, within } from "../../../../src/vtn/dialects/partner/envelope.ts";
import { anEvent, eventIn, rejectionIn } from "../../wire/anEvent.ts";

const partOf = (raw: unknown) => readPart(raw, { left: 100 });
const nothing = { notices: [], fetchById: [], poll: false, foreign: 0 };

test.each([
  ["a bare event", anEvent()],
  ["an OpenADR event with its objectType", anEvent({ objectType: "EVENT" })],
  ["an array", [anEvent()]],
  ["{events}", { events: [anEvent()] }],
  ["{event}", { event: anEvent() }],
  ["{data}", { data: anEvent() }],
  ["{data: [...]}", { data: [anEvent()] }],
  ["{object}", { object: anEvent() }],
  ["an event type beside the event", { event: "created", data: anEvent() }],
  ["a CloudEvent", { specversion: "1.0", id: "d-1", type: "event.created", data: anEvent() }],
  ["a notification", { objectType: "EVENT", operation: "CREATE", object: anEvent() }],
  ["a 3.0 notification", { objecttype: "event", operation: "post", object: anEvent() }],
  ["a notification without operation", { objectType: "EVENT", object: anEvent() }],
  ["an operation beside {event}", { operation: "UPDATE", event: anEvent() }],
  ["a notification with {data}", { objectType: "EVENT", operation: "CREATE", data: anEvent() }],
  ["a notification in an array", [{ objectType: "EVENT", operation: "UPDATE", object: anEvent() }]],
])("an event comes as %s", (_, raw) => {
  const part = partOf(raw);
  expect(part).toMatchObject({ fetchById: [], poll: false });
  expect(part?.notices.map((notice) => eventIn(notice).id)).toEqual(["EV-7731"]);
});

test.each([
  ["the whole event", { object: anEvent() }, Date.UTC(2026, 10, 21, 7)],
  ["its id", { object: { id: "EV-7731" } }, null],
  ["a bare id", { object: "EV-7731" }, null],
  ["an id beside it", { id: "d-1", eventId: "EV-7731" }, null],
  ["an id and nothing else", { id: "EV-7731" }, null],
  ["the event's own fields beside it", anEvent(), Date.UTC(2026, 10, 21, 7)],
  ["the whole event in {event}", { event: anEvent() }, Date.UTC(2026, 10, 21, 7)],
  ["its id in {data}", { data: { ID: "EV-7731" } }, null],
  ["an unreadable revision", { object: { ID: "EV-7731", modificationDateTime: "?" } }, null],
])("a delete with %s withdraws the event", (_, rest, revision) => {
  expect(partOf({ objectType: "EVENT", operation: "DELETE", ...rest })).toEqual({
    ...nothing,
    notices: [{ kind: "deleted", id: "EV-7731", revision }],
  });
});

test("a delete without an objectType is not read as a delete of the event", () => {
  expect(partOf({ operation: "delete", object: anEvent() })?.notices).toMatchObject([{ kind: "deleted" }]);
});

test("fields of an event that the contract does not know are ignored, whatever they are called", () => {
  for (const extra of [
    { object: 5 },
    { operation: "UPDATE" },
    { data: {} },
    { type: "deleted" },
    { event: {} },
  ])
    expect(eventIn(partOf(anEvent(extra))?.notices[0]).id).toBe("EV-7731");
});

test("a delete without a readable id is rejected, and the list is fetched", () => {
  const part = partOf({ objectType: "EVENT", operation: "DELETE", object: { id: 5 } });
  expect(part?.poll).toBe(true);
  expect(rejectionIn(part?.notices[0])).toMatchObject({
    id: null,
    path: "object.ID",
    raw: expect.stringContaining('"object":{"id":5}'),
  });
});

test.each(["PROGRAM", "REPORT", "VEN"])("a notification about a %s is none of our business", (objectType) => {
  expect(partOf({ objectType, operation: "UPDATE", object: { id: "x" } })).toEqual(nothing);
});

test.each([
  ["text", "EV-7731"],
  ["{ID}", { ID: "EV-7731" }],
  ["{id}", { id: "EV-7731" }],
  ["{eventId}", { eventId: "EV-7731" }],
  ["a notification with its own id", { type: "changed", id: "d-1", eventId: "EV-7731" }],
  ["a notification without object", { objectType: "EVENT", operation: "UPDATE", id: "EV-7731" }],
  ["an object that is only an id", { objectType: "EVENT", operation: "UPDATE", object: { id: "EV-7731" } }],
  ["an event id beside unknown content", { eventId: "EV-7731", data: { state: "changed" } }],
])("just an id as %s is asked for", (_, raw) => {
  expect(partOf(raw)).toEqual({ ...nothing, fetchById: ["EV-7731"] });
});

test("each entry of a list is accounted for once: an event, an id, another object, or nothing readable", () => {
  const foreign = { objectType: "PROGRAM", operation: "UPDATE", object: {} };
  const unclear = { objectType: "EVENT", operation: "EXPLODE", object: anEvent() };
  const part = partOf([
    "EV-7731",
    foreign,
    unclear,
    [],
    5,
    { events: [] },
    { events: ["EV-1", 6] },
    anEvent(),
  ]);
  expect(part).toMatchObject({ fetchById: ["EV-7731", "EV-1"], poll: true, foreign: 1 });
  expect(part?.notices.map((notice) => (notice.kind === "rejected" ? notice.path : notice.kind))).toEqual([
    "[0]",
    "[2]",
    "[3]",
    "[4]",
    "[5]",
    "[6][0]",
    "[6][1]",
    "event",
  ]);
});

test.each([
  [[]],
  [{ events: [] }],
  [{ objectType: "EVENT", operation: "EXPLODE", object: anEvent() }],
  [{ objectType: "EVENT", operation: "UPDATE" }],
  [{ type: "events.deleted", events: [anEvent()] }],
  [{ specversion: "1.0", id: "d-1", type: "event.deleted" }],
])("%j requests a fetch of the list", (raw) => {
  expect(partOf(raw)).toEqual({ ...nothing, poll: true });
});

test.each([
  [{ specversion: "1.0", id: "d-1", type: "event.deleted", data: anEvent() }],
  [{ event: "event-withdrawn", data: anEvent() }],
  [{ action: "deleted", event: anEvent() }],
  [{ eventType: "EventRemoved", data: { ID: "EV-7731" } }],
  [{ notificationType: "eventCancelled", eventId: "EV-7731" }],
  [{ type: "deleted", id: "EV-7731" }],
  [{ objectType: "EVENT", operation: "REMOVE", object: anEvent() }],
  [{ objectType: "EVENT", action: "deleted", object: anEvent() }],
])(
  "%j suggests a deletion: the event is not acted on, and the partner is asked whether it is gone",
  (raw) => {
    expect(partOf(raw)).toEqual({
      ...nothing,
      notices: [{ kind: "deleted", id: "EV-7731", revision: null }],
    });
  },
);

test.each([
  [5],
  [null],
  [true],
  [""],
  [{}],
  [{ id: 5 }],
  [{ event: "created" }],
  [{ specversion: "1.0", id: "d-1", type: "x" }],
])("%j is no notification", (raw) => {
  expect(partOf(raw)).toBeUndefined();
});

test("F39 one bad entry never costs its neighbours", () => {
  const part = partOf([anEvent(), 5, { ID: "EV-2", payload: {} }, [anEvent()], anEvent({ ID: "EV-3" })]);
  expect(part?.notices.map(({ kind }) => kind)).toEqual([
    "event",
    "rejected",
    "rejected",
    "rejected",
    "event",
  ]);
  expect(rejectionIn(part?.notices[1]).path).toBe("[1]");
  expect(rejectionIn(part?.notices[2])).toMatchObject({ id: "EV-2", path: "[2].intervalPeriod" });
});

test("something that looks like an event but is not is rejected, not ignored", () => {
  const part = partOf({ id: "EV-1", intervalPeriod: {} });
  expect(rejectionIn(part?.notices[0])).toMatchObject({ id: "EV-1", path: "intervalPeriod.start" });
});

test("paths nest", () => {
  const notice = { kind: "rejected", id: null, path: "[1].ID", reason: "", raw: "" } as const;
  expect(rejectionIn(within(3, notice)).path).toBe("[3][1].ID");
});

test("F62 no more entries are read than there is room for, lists within lists included", () => {
  const room = { left: 5 };
  expect(readPart([anEvent(), { events: [anEvent(), anEvent()] }], room)?.notices).toHaveLength(3);
  expect(room.left).toBe(1);
  expect(readPart([anEvent(), anEvent()], room)).toEqual({ ...nothing, poll: true });
  expect(room.left).toBeLessThan(0);
});
