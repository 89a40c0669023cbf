import { expect, test } from "vitest";
import { instant } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { readingList } from "../../src/vtn/dialects/partner/envelope.ts";
import { wireEvent } from "../../src/sim/events.ts";

const NOW = instant(Date.UTC(2026, 10, 21, 12));

test("an event is written in the format of the contract", () => {
  const plan = {
    id: "EV-1",
    name: "Evening peak",
    start: NOW,
    durationMs: 90_000,
    randomizeStartMs: 4000,
    priority: 1,
    ask: { amperes: 16 },
    vehicles: ["bus-201"],
    programId: "flex",
  };
  expect(wireEvent(plan, NOW)).toEqual({
    createdDateTime: "2026-11-21T12:00:00.000Z",
    ID: "EV-1",
    modificationDateTime: "2026-11-21T12:00:00.000Z",
    name: "Evening peak",
    priority: 1,
    programID: "flex",
    targets: [{ targetType: "vehicle", values: ["bus-201"] }],
    intervalPeriod: { start: "2026-11-21T12:00:00.000Z", duration: "00:01:30", randomizeStart: "00:00:04" },
    payload: { payloadType: "CurrentLevel", targetCurrent: 16 },
  });
});

test("the daemon reads simulated events, with and without the optional members", () => {
  const descriptor = {
    payloadType: "USAGE",
    readingType: "DIRECT_READ",
    aggregate: false,
    frequency: 0,
    historical: true,
    numIntervals: 0,
    repeat: 0,
    startInterval: 0,
  };
  const plain = { id: "EV-1", start: NOW, durationMs: 1500, ask: { kilowatts: 7.4 } };
  const full = { ...plain, id: "EV-2", vehicles: ["bus-201"], reportDescriptors: [descriptor] };
  const list = runToEnd(
    readingList(Buffer.from(JSON.stringify([wireEvent(plain, NOW), wireEvent(full, NOW)]))),
  );
  expect(list).toMatchObject({
    kind: "read",
    complete: true,
    notices: [
      { kind: "event", event: { duration: 1500, randomizeStart: 0, ask: { kind: "power", level: 7.4 } } },
      { kind: "event", event: { reports: [{ targets: [{ type: "vehicle", values: ["bus-201"] }] }] } },
    ],
  });
});
