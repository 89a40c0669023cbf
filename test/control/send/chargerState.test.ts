import { ABSENT } from "../../../src/control/observe/presence.ts";
import { expect, test } from "vitest";
import type { CommandRecord } from "../../../src/domain/command.ts";
import { statePayload } from "../../../src/chargers/native/payload.ts";
import { chargerState } from "../../../src/control/send/chargerState.ts";
import { amperes, chargerId } from "../../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";
import { aLevelHold } from "../../support/aHold.ts";
import { aDispatch, at } from "../../support/anEvent.ts";
import { verdict } from "../../support/aVerdict.ts";

const dispatch = aDispatch({ setpoint: { kind: "current", amperes: amperes(40) } });
const circumstances = {
  charger: aCharger(),
  occupant: { kind: "nobody" },
  vehicle: null,
  inForce: [],
  hold: null,
  measuredVoltage: null,
  measuredPhases: null,
} as const;
const record: CommandRecord = {
  command: {
    charger: chargerId("bay-01"),
    epoch: 7,
    seq: 1042,
    desired: { kind: "current", amperes: amperes(32) },
    until: dispatch.until,
    vehicle: dispatch.vehicle,
    event: dispatch.event.id,
    cause: "event",
    decidedAt: at("05:00"),
  },
  progress: "accepted",
  sentAt: at("05:00"),
  sends: 1,
  failures: 0,
  replaces: null,
  judgeAt: null,
  resends: 0,
};

test("the state of a charger without an event and without a message shows just that", () => {
  expect(chargerState(verdict(circumstances, settingsWith()), undefined, ABSENT, null, false)).toEqual({
    charger: "bay-01",
    vehicle: null,
    occupant: "nobody",
    asked: null,
    allowed: null,
    measured: null,
    online: null,
    reachable: null,
    heardAt: null,
    hold: null,
    verdict: "none",
    command: null,
    reason: null,
    until: null,
  });
});

test("the asked, the allowed and the measured level are three different numbers", () => {
  const now = verdict(
    {
      ...circumstances,
      vehicle: aVehicle(),
      inForce: [dispatch],
      occupant: { kind: "vehicle", vehicle: aVehicle().id, source: "fixed" },
    },
    settingsWith(),
  );
  const telemetry = {
    at: at("05:01"),
    state: "charging",
    powerW: 21_000,
    currentsA: [30, 30, 31],
    limitA: 32,
  } as const;
  expect(
    chargerState(now, record, { ...ABSENT, online: true, heardAt: at("05:01"), telemetry }, null, false),
  ).toMatchObject({
    vehicle: "veh-214",
    occupant: "vehicle",
    asked: { kind: "current", value: 40, unit: "A", event: "EV-7731" },
    allowed: { kind: "current", value: 32, unit: "A" },
    measured: {
      at: "2026-11-21T05:01:00.000Z",
      state: "charging",
      powerW: 21_000,
      currentsA: [30, 30, 31],
      limitA: 32,
    },
    online: true,
    verdict: "accepted",
    command: "7-1042",
    until: "2026-11-21T06:00:00.000Z",
  });
});

test("every member is in the schema of its topic", () => {
  const free = chargerState(verdict(circumstances, settingsWith()), undefined, ABSENT, null, false);
  const limited = chargerState(
    verdict({ ...circumstances, vehicle: aVehicle(), inForce: [dispatch] }, settingsWith()),
    record,
    { ...ABSENT, telemetry: { at: at("05:01"), state: "charging", powerW: 21_000 } },
    null,
    false,
  );
  for (const state of [free, limited]) expect(statePayload.strict().parse(state)).toEqual(state);
});

test("the state names the hold that applies", () => {
  const held = verdict({ ...circumstances, hold: aLevelHold() }, settingsWith());
  expect(chargerState(held, record, ABSENT, null, false)).toMatchObject({
    asked: null,
    hold: { id: "hold-7-1", by: "anna", until: "2026-11-21T06:00:00.000Z" },
  });
});

test("a charger whose clock is hours behind or ahead shows when it measured by our clock", () => {
  const idle = verdict(circumstances, settingsWith());
  for (const theirs of [at("03:01"), at("23:01")]) {
    const presence = { ...ABSENT, measuredAt: at("05:01"), telemetry: { at: theirs } };
    expect(chargerState(idle, undefined, presence, null, false)).toMatchObject({
      measured: { at: "2026-11-21T05:01:00.000Z" },
    });
  }
});

test("a value that a charger does not measure is null", () => {
  const state = chargerState(
    verdict(circumstances, settingsWith()),
    record,
    { ...ABSENT, telemetry: { at: at("05:01") } },
    null,
    false,
  );
  expect(state).toMatchObject({ measured: { state: null, powerW: null, currentsA: null, limitA: null } });
});

test("a charger is reachable after a message, and not once it is offline or silent", () => {
  const idle = verdict(circumstances, settingsWith());
  const heard = { ...ABSENT, heardAt: at("05:01") };
  for (const [presence, isSilent, reachable] of [
    [heard, false, true],
    [heard, true, false],
    [{ ...heard, online: false }, false, false],
  ] as const)
    expect(chargerState(idle, undefined, presence, null, isSilent)).toMatchObject({
      reachable,
      heardAt: "2026-11-21T05:01:00.000Z",
    });
});
