import * as fc from "fast-check";
import { expect, test } from "vitest";

import { runToEnd } from "../../../../src/platform/cooperative.ts";
import type { ListBody } from "../../../../src/vtn/dialects/dialect.ts";
import {
  readEventBody,
  readingList,
  readWebhookBody,
} from "../../../../src/vtn/dialects/partner/envelope.ts";
import { anEvent, bytes, eventIn, rejectionIn } from "../../wire/anEvent.ts";
import { processorMs } from "../../../support/processorMs.ts";

const readListBody = (body: Buffer): ListBody => runToEnd(readingList(body));
const noticesOf = (body: ListBody) => (body.kind === "read" ? body.notices : []);

test("F37 a webhook body that is no JSON is unparsable", () => {
  expect(readWebhookBody(Buffer.from("<html>"))).toMatchObject({ kind: "unparsable" });
  expect(readWebhookBody(Buffer.from([0xff]))).toMatchObject({ kind: "unparsable" });
  expect(readWebhookBody(Buffer.from("[".repeat(33)))).toMatchObject({ kind: "unparsable" });
});

test.each(["", " ", "5", "null", "{}", "[]", '{"id":5}', '{"hello":"world"}'])(
  "a webhook body of %j requests a fetch of the list",
  (text) => {
    const read = { kind: "read", notices: [], fetchById: [], poll: true, foreign: 0 };
    expect(readWebhookBody(Buffer.from(text))).toEqual(read);
  },
);

const ids = (count: number) => Array.from({ length: count }, (_, index) => `EV-${index}`);

test("a single id is requested by itself, and many ids request one fetch of the list", () => {
  expect(readWebhookBody(bytes(["EV-1", "EV-1"]))).toMatchObject({ fetchById: ["EV-1"], poll: false });
  expect(readWebhookBody(bytes(ids(20)))).toMatchObject({ fetchById: ids(20), poll: false });
  expect(readWebhookBody(bytes(ids(21)))).toMatchObject({ fetchById: [], poll: true });
});

test("a list is a bare array or {events}", () => {
  for (const raw of [[anEvent()], { events: [anEvent()] }, { Events: [anEvent()], next: null }]) {
    const body = readListBody(bytes(raw));
    expect(body).toMatchObject({ kind: "read", complete: true });
    expect(noticesOf(body).map((notice) => eventIn(notice).id)).toEqual(["EV-7731"]);
  }
  expect(readListBody(bytes([]))).toEqual({ kind: "read", notices: [], complete: true });
});

test.each(["", "{}", "5", '"EV-1"', '{"data":[]}', '{"events":{}}', '{"error":"x"}', "<html>", "[", "[1,"])(
  "F37 a list of %j is no list, so it shows the absence of nothing",
  (text) => {
    expect(readListBody(Buffer.from(text))).toMatchObject({ kind: "unparsable" });
  },
);

test("F39 999 of a thousand events with one bad are read, and the bad one is reported by its id", () => {
  const events = Array.from({ length: 1000 }, (_, index) => anEvent({ ID: `EV-${index}` }));
  const list = events.map((event, index) => (index === 500 ? { ...event, payload: {} } : event));
  const body = readListBody(bytes(list));
  expect(body).toMatchObject({ complete: true });
  expect(noticesOf(body).filter(({ kind }) => kind === "event")).toHaveLength(999);
  expect(rejectionIn(noticesOf(body)[500])).toMatchObject({
    id: "EV-500",
    path: "[500].payload.payloadType",
  });
});

test("a list with an entry whose id cannot be read is not complete", () => {
  expect(readListBody(bytes([anEvent(), anEvent({ ID: 5 })]))).toMatchObject({ complete: false });
  expect(readListBody(bytes([anEvent(), null]))).toMatchObject({ complete: false });
});

test("the same ID twice in one list is kept twice, in order", () => {
  const body = readListBody(bytes([anEvent({ name: "first" }), anEvent({ name: "second" })]));
  expect(noticesOf(body).map((notice) => eventIn(notice).name)).toEqual(["first", "second"]);
});

test("a single event comes bare, in {event} or in {data}", () => {
  for (const raw of [anEvent(), { event: anEvent() }, { data: anEvent() }, { id: "d-1", data: anEvent() }]) {
    const body = readEventBody(bytes(raw));
    expect(noticesOf(body).map((notice) => eventIn(notice).id)).toEqual(["EV-7731"]);
  }
});

test("a single event that is bad is rejected with its id", () => {
  for (const raw of [
    { ID: "EV-1" },
    { eventId: "EV-1" },
    { ID: "EV-1", payload: {} },
    { event: { id: "EV-1" } },
  ]) {
    const body = readEventBody(bytes(raw));
    expect(body).toMatchObject({ complete: true });
    expect(rejectionIn(noticesOf(body)[0])).toMatchObject({ id: "EV-1", path: "intervalPeriod" });
  }
});

test.each(["", "{}", "[]", "5", '{"error":"x"}', '{"data":{}}', "<html>"])(
  "F37 a single event of %j is no event that could be rejected",
  (text) => {
    const body = readEventBody(Buffer.from(text));
    expect(body.kind === "unparsable" || !body.complete).toBe(true);
  },
);

const readAll = (body: Buffer) => [readWebhookBody(body), readListBody(body), readEventBody(body)];

test("F37 F64 junk never throws and never reaches a prototype", () => {
  const key = fc.oneof(
    fc.constantFrom(
      "__proto__",
      "constructor",
      "ID",
      "id",
      "object",
      "objectType",
      "operation",
      "event",
      "events",
    ),
    fc.constantFrom("data", "intervalPeriod", "payload", "targets", "values", "reportDescriptors", "start"),
    fc.string(),
  );
  const leaf = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.double(),
    fc.constantFrom("EVENT", "DELETE", null, true),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(tie("tree")),
      fc
        .array(fc.tuple(key, tie("tree")))
        .map(
          (entries) =>
            `{${entries.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v) ?? "null"}`).join()}}`,
        )
        .map((text): unknown => JSON.parse(text)),
    ),
  }));
  fc.assert(
    fc.property(tree, (value) => void readAll(bytes(value))),
    { numRuns: 500 },
  );
  fc.assert(fc.property(fc.uint8Array(), (junk) => void readAll(Buffer.from(junk))));
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test("F37 a valid body with some bytes changed or cut off never throws", () => {
  const notification = { objectType: "EVENT", operation: "UPDATE", object: anEvent() };
  const bodies = [anEvent(), [anEvent(), anEvent()], { events: [anEvent()] }, notification].map(bytes);
  const change = fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) });
  fc.assert(
    fc.property(
      fc.constantFrom(...bodies),
      fc.array(change, { minLength: 1, maxLength: 4 }),
      fc.nat(),
      (body, changes, cut) => {
        const mutated = Buffer.from(body);
        for (const { at, byte } of changes) mutated[at % mutated.length] = byte;
        void readAll(mutated);
        void readAll(body.subarray(0, cut % body.length));
      },
    ),
    { numRuns: 1000 },
  );
});

test("F56 20,000 vehicles in one event, and 10,000 events in one list, are ordinary", () => {
  const values = Array.from({ length: 20_000 }, (_, index) => `veh-${index}`);
  const wide = readWebhookBody(bytes(anEvent({ targets: [{ targetType: "vehicle", values }] })));
  expect(wide.kind === "read" && eventIn(wide.notices[0]).targets[0]?.values).toHaveLength(20_000);
  const list = bytes(Array.from({ length: 10_000 }, (_, index) => anEvent({ ID: `EV-${index}` })));
  const took = processorMs(() => expect(noticesOf(readListBody(list))).toHaveLength(10_000));
  // Generous: a tenth of this on an idle machine.
  expect(took).toBeLessThan(4_000);
});

const crowd = (entry: string, bytes: number) =>
  Buffer.from(`[${`${entry},`.repeat(Math.floor(bytes / (entry.length + 1))).slice(0, -1)}]`);

test.each(["1", "{}", "[]", '"a"', '{"payload":1}', '{"ID":"a","payload":1}'])(
  "F62 a webhook body full of %s is refused whole, before it costs anybody time",
  (entry) => {
    const body = crowd(entry, 1_000_000);
    const took = processorMs(() => expect(readWebhookBody(body)).toMatchObject({ kind: "overfull" }));
    expect(took).toBeLessThan(2_000);
  },
);

test.each(["targets", "reportDescriptors"])(
  "F62 half a million bad %s in one event are reported once",
  (field) => {
    const body = bytes(anEvent({ [field]: Array.from({ length: 450_000 }, () => 1) }));
    const took = processorMs(() => {
      const read = readWebhookBody(body);
      expect(read.kind === "read" && rejectionIn(read.notices[0])).toMatchObject({ path: field });
    });
    expect(took).toBeLessThan(2_000);
  },
);

test("F38 a list of millions of nothings is no list", () => {
  expect(readListBody(crowd("1", 16_000_000))).toMatchObject({ kind: "unparsable" });
});
