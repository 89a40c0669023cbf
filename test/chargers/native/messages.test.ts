import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  gatewayOnlineTopic,
  isUnder,
  nativeFilters,
  nativeTopics,
  readNative,
  readReboot,
  readSet,
  writeAck,
  writeReboot,
  writeSet,
  writeTelemetry,
  writeWholeTelemetry,
} from "../../../src/chargers/native/messages.ts";
import type { Command } from "../../../src/domain/command.ts";
import type { Desired } from "../../../src/domain/setpoint.ts";
import type { Telemetry } from "../../../src/domain/telemetry.ts";
import {
  amperes,
  chargerId,
  eventId,
  instant,
  seconds,
  vehicleId,
  watts,
} from "../../../src/domain/units.ts";

const NOON = instant(Date.UTC(2026, 10, 21, 12));
const BAY = chargerId("bay-01");

const command: Command = {
  charger: BAY,
  epoch: 7,
  seq: 1042,
  desired: { kind: "current", amperes: amperes(16) },
  until: NOON,
  vehicle: vehicleId("veh-214"),
  event: eventId("EV-7731"),
  cause: "event",
  decidedAt: NOON,
};

const hear = (leaf: string, payload: string | Buffer, retained = false) =>
  readNative(
    ["setpointd", "depot"],
    { topic: `setpointd/depot/chargers/bay-01/${leaf}`, payload: Buffer.from(payload), retained },
    NOON,
  );

test("a topic is under a filter level by level, whatever the filter and the topic", () => {
  const level = fc.constantFrom("", "a", "ab", "b");
  const filter = fc.array(fc.oneof(level, fc.constant("+")), { minLength: 1, maxLength: 4 });
  const topic = fc.array(level, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(filter, topic, (levels, given) => {
      const matches =
        levels.length === given.length && levels.every((each, at) => each === "+" || each === given[at]);
      expect(isUnder(given.join("/"), levels)).toBe(matches);
    }),
    { numRuns: 2_000 },
  );
});

test("a setpoint is written exactly as in the contract", () => {
  expect(writeSet(command, seconds(180))).toBe(
    '{"v":1,"id":"7-1042","epoch":7,"seq":1042,"kind":"current","value":16,"unit":"A",' +
      '"until":"2026-11-21T12:00:00.000Z","lease":180,"vehicle":"veh-214","event":"EV-7731"}',
  );
});

test("a release has no value, no unit and no end, and names the event that just ended", () => {
  const release: Command = { ...command, desired: { kind: "release" }, until: null, vehicle: null };
  expect(writeSet(release, seconds(0.5))).toBe(
    '{"v":1,"id":"7-1042","epoch":7,"seq":1042,"kind":"release","value":null,"unit":null,' +
      '"until":null,"lease":1,"vehicle":null,"event":"EV-7731"}',
  );
});

test("topics are those of the contract", () => {
  expect(nativeTopics("setpointd", "depot", "bay-01")).toEqual({
    set: "setpointd/depot/chargers/bay-01/set",
    reboot: "setpointd/depot/chargers/bay-01/reboot",
    ack: "setpointd/depot/chargers/bay-01/ack",
    telemetry: "setpointd/depot/chargers/bay-01/telemetry",
    online: "setpointd/depot/chargers/bay-01/online",
    state: "setpointd/depot/chargers/bay-01/state",
  });
  expect(gatewayOnlineTopic("setpointd", "depot")).toBe("setpointd/depot/gateway/online");
  expect(nativeFilters("setpointd", "depot")).toContain("setpointd/depot/chargers/+/telemetry");
});

test("F67: a hostile charger or site id has no topics at all", () => {
  expect(nativeTopics("setpointd", "depot", "bay/+")).toBeNull();
  expect(nativeTopics("setpointd", "#", "bay-01")).toBeNull();
});

const level = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value));
const desired: fc.Arbitrary<Desired> = fc.oneof(
  level.map((value): Desired => ({ kind: "current", amperes: amperes(value) })),
  level.map((value): Desired => ({ kind: "power", watts: watts(value) })),
  fc.constantFrom<Desired>({ kind: "pause" }, { kind: "release" }),
);

test("a simulated charger always understands what the daemon writes", () => {
  fc.assert(
    fc.property(desired, fc.nat(), fc.integer({ min: 1, max: 100_000 }), (asked, seq, lease) => {
      const read = readSet(Buffer.from(writeSet({ ...command, desired: asked, seq }, seconds(lease))));
      expect(read).toEqual({
        id: `7-${seq}`,
        epoch: 7,
        seq,
        desired: asked,
        until: NOON,
        lease: seconds(lease),
        vehicle: "veh-214",
        event: "EV-7731",
      });
    }),
  );
});

test("a charger refuses a version that it does not know, and a level without a number", () => {
  const json = writeSet(command, seconds(180));
  expect(readSet(Buffer.from(json.replace('"v":1', '"v":2')))).toBeUndefined();
  expect(readSet(Buffer.from(json.replace('"value":16', '"value":null')))).toBeUndefined();
  expect(readSet(Buffer.from("release"))).toBeUndefined();
});

test("telemetry survives the way from charger to daemon, absent members stay absent", () => {
  const full: Telemetry = {
    at: NOON,
    state: "charging",
    vehicle: "veh-214",
    identity: { kind: "mac", value: "02:aa:bb:00:00:01" },
    powerW: 11040,
    currentsA: [16, 16, 16],
    voltagesV: [230, 230, 230],
    energyWh: 123456,
    sessionWh: 1200,
    soc: 71,
    limitA: 16,
  };
  for (const telemetry of [full, { at: NOON }, { at: NOON, vehicle: null, identity: null }]) {
    expect(hear("telemetry", writeTelemetry(telemetry))).toEqual({
      kind: "telemetry",
      charger: BAY,
      telemetry,
    });
  }
});

function readings(payload: string): Telemetry {
  const heard = hear("telemetry", payload);
  if (heard?.kind !== "telemetry") throw new Error(payload);
  return heard.telemetry;
}

test("null removes a measurement that an earlier message had, and an absent one stays", () => {
  const first = { at: NOON, state: "charging", powerW: 6900, limitA: 10 } as const;
  const merged = (payload: string) => ({ ...readings(writeTelemetry(first)), ...readings(payload) });
  expect(merged('{"state":"charging","limitA":null}')).toEqual({ ...first, limitA: undefined });
  expect(merged('{"limitA":null}').powerW).toBe(6900);
  const whole = writeWholeTelemetry({ at: NOON, state: "unplugged", energyWh: 5 });
  expect(merged(whole)).toEqual({ at: NOON, state: "unplugged", energyWh: 5 });
});

test("an acknowledgement is read, with and without its optional members", () => {
  const ack = { id: "7-1042", accepted: false, value: 10, reason: "too hot" };
  expect(hear("ack", writeAck(ack))).toEqual({ kind: "ack", charger: BAY, ...ack });
  expect(hear("ack", '{"id":"7-1042","accepted":true}')).toMatchObject({ value: null, reason: null });
});

test("identities are in lower case; an empty one is no vehicle; unknown members and states are harmless", () => {
  expect(
    hear(
      "telemetry",
      '{"identity":{"kind":"MAC","value":"02:AA"},"vehicle":"","state":"dancing","x":{"y":1},"soc":null}',
    ),
  ).toEqual({
    kind: "telemetry",
    charger: BAY,
    telemetry: { at: NOON, identity: { kind: "mac", value: "02:aa" }, vehicle: null, state: "unknown" },
  });
});

test.each([255, -1, 100.1])(
  "a state of charge of %s %% is not known; the readings beside it are kept",
  (soc) => {
    expect(hear("telemetry", JSON.stringify({ soc, powerW: 7000 }))).toEqual({
      kind: "telemetry",
      charger: BAY,
      telemetry: { at: NOON, powerW: 7000 },
    });
  },
);

test.each([["{}"], ['{"at":"yesterday"}'], ['{"at":5}'], ['{"at":"2026-11-21T10:00:00"}']])(
  "telemetry without a readable time counts from its receipt: %s",
  (payload) => {
    expect(hear("telemetry", payload)).toMatchObject({ telemetry: { at: NOON } });
    expect(hear("telemetry", payload, true)).toBeUndefined();
  },
);

test("the charger's own time wins, whatever its offset", () => {
  expect(hear("telemetry", '{"at":"2026-11-21T12:00:00.123456+02:00"}')).toMatchObject({
    telemetry: { at: Date.UTC(2026, 10, 21, 10, 0, 0, 123) },
  });
});

test.each([
  ["telemetry", '{"powerW":"11"}'],
  ["telemetry", '{"powerW":NaN}'],
  ["telemetry", '{"powerW":1e999}'],
  ["telemetry", '{"state":5}'],
  ["telemetry", '{"vehicle":"\\ud800"}'],
  ["telemetry", "[1,2]"],
  ["telemetry", "null"],
  ["telemetry", ""],
  ["telemetry", `{"x":"${"y".repeat(70_000)}"}`],
  ["telemetry", "[".repeat(60_000)],
  ["telemetry", Buffer.from([0x7b, 0xff, 0x00, 0x7d])],
  ["ack", '{"id":7,"accepted":true}'],
  ["ack", "ok"],
  ["online", "maybe"],
  ["online", "true".repeat(10_000)],
])("F95: a malformed %s is reported with a short reason (%#)", (leaf, payload) => {
  const message = hear(leaf, payload);
  expect(message).toMatchObject({ kind: "malformed", charger: BAY });
  expect(message?.kind === "malformed" && message.reason.length).toBeLessThan(150);
});

test("F95: no payload makes the reader throw, and no reading is ever NaN", () => {
  const payloads = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.json().map((text) => Buffer.from(text)),
    fc.record({ powerW: fc.anything(), currentsA: fc.anything(), at: fc.anything() }).map((value) => {
      try {
        return Buffer.from(JSON.stringify(value));
      } catch {
        return Buffer.from("{}");
      }
    }),
  );
  fc.assert(
    fc.property(payloads, fc.constantFrom("telemetry", "ack", "online"), (payload, leaf) => {
      const message = hear(leaf, payload);
      if (message?.kind !== "telemetry") return;
      expect(Number.isFinite(message.telemetry.powerW ?? 0)).toBe(true);
      expect((message.telemetry.currentsA ?? []).every(Number.isFinite)).toBe(true);
    }),
  );
});

test("prototype members in a payload change nothing", () => {
  hear("telemetry", '{"__proto__":{"powerW":1},"constructor":{"prototype":{"powerW":1}}}');
  expect(({} as { powerW?: number }).powerW).toBeUndefined();
});

test("online is marked when it is retained; an empty retained message means nothing", () => {
  expect(hear("online", "true", true)).toEqual({
    kind: "online",
    charger: BAY,
    online: true,
    snapshot: true,
  });
  expect(hear("online", "false\n")).toEqual({ kind: "online", charger: BAY, online: false, snapshot: false });
  expect(hear("online", "")).toBeUndefined();
});

test.each([
  "setpointd/depot/chargers/bay-01/set",
  "setpointd/depot/chargers/bay-01/ack/x",
  "setpointd/depot/chargers/$x/ack",
  "setpointd/other/chargers/bay-01/ack",
  "setpointd/depot/chargers/",
])("no message is read from %s", (topic) => {
  expect(
    readNative(["setpointd", "depot"], { topic, payload: Buffer.from("{}"), retained: false }, NOON),
  ).toBeUndefined();
});

test("a request to restart is written as in the contract, and read by the charger", () => {
  const text = writeReboot("reboot-7-1", NOON);
  expect(text).toBe('{"v":1,"id":"reboot-7-1","at":"2026-11-21T12:00:00.000Z"}');
  expect(readReboot(Buffer.from(text))).toMatchObject({ id: "reboot-7-1", at: NOON });
  for (const other of ['{"v":2,"id":"a","at":"2026-11-21T12:00:00Z"}', '{"v":0}', "reboot", ""])
    expect(readReboot(Buffer.from(other))).toBeUndefined();
});

const read = (members: object) => hear("telemetry", JSON.stringify({ powerW: 7, ...members }));

test("a charger reports its firmware and its last start, and what is unreadable there costs no reading", () => {
  expect(read({ firmware: " 1.4.2\u0000 ", bootedAt: "2026-11-21T11:00:00Z" })).toMatchObject({
    telemetry: { powerW: 7, firmware: "1.4.2", started: { kind: "time", at: NOON - 3_600_000 } },
  });
  for (const members of [
    { firmware: { major: 1 } },
    { firmware: 7 },
    { firmware: "" },
    { bootedAt: "noon" },
    {},
  ])
    expect(read(members)).toEqual({ kind: "telemetry", charger: BAY, telemetry: { at: NOON, powerW: 7 } });
});

test("firmware and start of a charger come back as they were written", () => {
  const telemetry: Telemetry = { at: NOON, firmware: "1.4.2", started: { kind: "time", at: NOON } };
  expect(hear("telemetry", writeTelemetry(telemetry))).toMatchObject({ telemetry });
  expect(hear("telemetry", writeWholeTelemetry(telemetry))).toMatchObject({ telemetry });
  // Only makes with a profile count their starts.
  const counted: Telemetry = { at: NOON, started: { kind: "count", count: 3 } };
  expect(writeTelemetry(counted)).toBe('{"at":"2026-11-21T12:00:00.000Z"}');
});
