import { expect, test } from "vitest";

import {
  cleared,
  type ForeignProfile,
  lowestOf,
  profileIn,
  withProfile,
  withStackLevel,
} from "../../../src/ocpp/wire/foreignProfile.ts";
import type { Call, Payload } from "../../../src/ocpp/wire/frame.ts";

const NOW = Date.parse("2026-11-23T12:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const call = (payload: Payload, action = "SetChargingProfile"): Call => ({
  kind: "call",
  id: "c",
  action,
  payload,
});
const schedule = (more: object = {}) => ({
  startSchedule: "2026-11-23T12:00:00Z",
  chargingRateUnit: "A",
  chargingSchedulePeriod: [{ startPeriod: 0, limit: 10 }],
  ...more,
});
const profile = (more: object = {}) => ({
  chargingProfileId: 5,
  stackLevel: 2,
  chargingProfilePurpose: "TxDefaultProfile",
  chargingProfileKind: "Absolute",
  chargingSchedule: schedule(),
  ...more,
});
const read = (more: object = {}, connectorId = 1): ForeignProfile => {
  const found = profileIn(call({ connectorId, csChargingProfiles: profile(more) }));
  if (found === null) throw new Error("no profile");
  return found;
};
const lowest = (all: readonly ForeignProfile[], from = 0, lasts = 5 * MINUTE) =>
  lowestOf(all, { from: NOW + from, until: NOW + from + lasts }, (limit, unit) =>
    unit === "A" ? limit : limit / 690,
  );

test("a profile is read in both versions; one that cannot meet ours, or cannot be read, is none", () => {
  expect(read()).toMatchObject({ id: 5, connector: 1, purpose: "default", stackLevel: 2, repeats: null });
  const modern = { evseId: 2, chargingProfile: { ...profile(), id: 9, chargingProfileId: undefined } };
  modern.chargingProfile = { ...modern.chargingProfile, chargingProfilePurpose: "ChargingStationMaxProfile" };
  expect(profileIn(call({ ...modern }))).toMatchObject({ id: 9, connector: 2, purpose: "station" });
  const external = profile({ chargingProfilePurpose: "ChargingStationExternalConstraints" });
  expect(profileIn(call({ evseId: 1, chargingProfile: external }))).toBeNull();
  expect(profileIn(call({ csChargingProfiles: { stackLevel: {} } }))).toBeNull();
  expect(profileIn(call({ csChargingProfiles: profile() }, "Reset"))).toBeNull();
});

test("the limit is the one of the highest level that holds, and the lowest in the time", () => {
  expect(lowest([])).toBeNull();
  expect(
    lowest([
      read(),
      read({
        stackLevel: 3,
        chargingSchedule: schedule({
          chargingRateUnit: "W",
          chargingSchedulePeriod: [{ startPeriod: 0, limit: 13_800 }],
        }),
      }),
    ]),
  ).toBe(20);
  const steps = [
    { startPeriod: 0, limit: 10 },
    { startPeriod: 120, limit: 7 },
    { startPeriod: 600, limit: 5 },
  ];
  const stepped = read({ chargingSchedule: schedule({ chargingSchedulePeriod: steps }) });
  expect([lowest([stepped]), lowest([stepped], 0, 2 * MINUTE), lowest([stepped], 20 * MINUTE)]).toEqual([
    7, 10, 5,
  ]);
  // Before its begin and after its duration a schedule sets no limit.
  expect([lowest([read()], -HOUR), lowest([read()], -MINUTE)]).toEqual([null, 10]);
  const short = read({ chargingSchedule: schedule({ duration: 60 }) });
  expect([lowest([short]), lowest([short], MINUTE)]).toEqual([10, null]);
  // One that begins or ends within the time counts for its part of it.
  const valid = read({ validFrom: "2026-11-23T12:02:00Z", validTo: "2026-11-23T12:04:00Z", stackLevel: 3 });
  const lower = read({
    chargingProfileId: 6,
    chargingSchedule: schedule({ chargingSchedulePeriod: [{ startPeriod: 0, limit: 8 }] }),
  });
  expect([lowest([valid]), lowest([valid], 0, MINUTE), lowest([valid], 4 * MINUTE)]).toEqual([
    10,
    null,
    null,
  ]);
  expect([lowest([valid, lower]), lowest([valid, lower], 2 * MINUTE, MINUTE)]).toEqual([8, 10]);
});

test("a recurring schedule begins again, and a relative one counts with its lowest limit", () => {
  const begin = { startSchedule: "2026-11-01T12:03:00Z", duration: 3_600 };
  const daily = read({
    chargingProfileKind: "Recurring",
    recurrencyKind: "Daily",
    chargingSchedule: schedule(begin),
  });
  expect([lowest([daily]), lowest([daily], 0, MINUTE), lowest([daily], 2 * HOUR)]).toEqual([10, null, null]);
  // 2026-11-01 is a Sunday, 2026-11-23 a Monday.
  const weekly = read({
    chargingProfileKind: "Recurring",
    recurrencyKind: "Weekly",
    chargingSchedule: schedule(begin),
  });
  expect([lowest([weekly]), lowest([weekly], 6 * 24 * HOUR)]).toEqual([null, 10]);
  const periods = [8, 12].map((limit, n) => ({ startPeriod: n * 60, limit }));
  const relative = read({
    chargingProfileKind: "Relative",
    chargingSchedule: [schedule({ chargingSchedulePeriod: periods })],
  });
  expect(lowest([relative], HOUR)).toBe(8);
});

test("a profile replaces one of its id, and one of its place and level", () => {
  const all = [read(), read({ chargingProfileId: 6, stackLevel: 3 }), read({ chargingProfileId: 7 }, 2)];
  expect(withProfile(all, read({ stackLevel: 3 })).map(({ id, connector }) => [id, connector])).toEqual([
    [7, 2],
    [5, 1],
  ]);
  expect(withProfile(all, read({ chargingProfileId: 8, chargingProfilePurpose: "TxProfile" }))).toHaveLength(
    4,
  );
});

test("profiles are cleared by their id, or by all named members without one", () => {
  const all = [read(), read({ chargingProfileId: 6, stackLevel: 3 }), read({ chargingProfileId: 7 }, 2)];
  const left = (payload: Payload) => cleared(all, payload).map(({ id }) => id);
  expect(left({ id: 6, connectorId: 2 })).toEqual([5, 7]);
  expect(left({ connectorId: 1 })).toEqual([7]);
  expect(left({ stackLevel: 2, chargingProfilePurpose: "TxDefaultProfile" })).toEqual([6]);
  expect(left({ chargingProfilePurpose: "TxProfile" })).toEqual([5, 6, 7]);
  expect(left({})).toEqual([]);
  expect(left({ chargingProfileId: 5 })).toEqual([6, 7]);
  expect(left({ chargingProfileCriteria: { evseId: 2 } })).toEqual([5, 6]);
  expect(left({ stackLevel: "x" })).toEqual([5, 6, 7]);
});

test("only a level above the highest one is lowered, and the rest of the message stays", () => {
  const set = call({ connectorId: 1, csChargingProfiles: profile({ stackLevel: 9 }) });
  expect(withStackLevel(set, 7).payload).toEqual({
    connectorId: 1,
    csChargingProfiles: profile({ stackLevel: 7 }),
  });
  expect(withStackLevel(set, 9)).toBe(set);
  const modern = call({ evseId: 1, chargingProfile: profile({ stackLevel: 9 }) });
  expect(withStackLevel(modern, 7).payload).toMatchObject({ chargingProfile: { stackLevel: 7 } });
  const clear = (payload: Payload) => withStackLevel(call(payload, "ClearChargingProfile"), 7).payload;
  expect(clear({ stackLevel: 8 })).toEqual({ stackLevel: 7 });
  expect(clear({ chargingProfileCriteria: { stackLevel: 8 } })).toEqual({
    chargingProfileCriteria: { stackLevel: 7 },
  });
  expect(clear({ id: 5 })).toEqual({ id: 5 });
});
