import { expect, test } from "vitest";

import { type Instant, instant } from "../../src/domain/units.ts";
import {
  aheadOf,
  believedTime,
  isOutOfOrder,
  isSilent,
  NOTHING_KNOWN,
  type OutletState,
  telemetryOf,
  withComposite,
  withMeaning,
  withNewLevel,
  withStationStatus,
  withTransaction,
} from "../../src/ocpp/outletState.ts";
import type { Meaning } from "../../src/ocpp/wire/dialect.ts";

const NOW = instant(Date.parse("2026-11-23T12:00:00Z"));
const DAY = 86_400_000;
const outlet = { unit: null, phases: 3, voltage: 230 };

const after = (...meanings: readonly Meaning[]): OutletState =>
  meanings.reduce((state, meaning) => withMeaning(state, meaning, NOW), NOTHING_KNOWN);
const telemetry = (state: OutletState, at = NOW) => telemetryOf(state, outlet, at, 10_000);
const status = (
  state: "charging" | "unplugged" | "paused" | "connected",
  fault: string | null = null,
): Meaning => ({
  kind: "status",
  connector: 1,
  plug: null,
  state,
  fault,
  at: null,
});
const started: Meaning = {
  kind: "started",
  connector: 1,
  transaction: "42",
  identity: { kind: "rfid", value: "04" },
  meterWh: 1000,
  at: null,
};
const BOOT: Meaning = { kind: "boot", vendor: "", model: "", firmware: "" };
const meter = (readings: object): Meaning => ({
  kind: "meter",
  connector: 1,
  transaction: "42",
  readings,
  at: null,
});

test("a status from before the start that arrives after it does not take the vehicle away", () => {
  const late = after(started, status("unplugged"), meter({ powerW: 11040 }));
  expect(late).toMatchObject({ state: "unplugged", identity: null, transaction: null });
  expect(withTransaction(late, "42")).toMatchObject({
    state: "connected",
    identity: { kind: "rfid", value: "04" },
    transaction: "42",
    startedWh: 1000,
  });
  // A transaction of another system, and one that has ended, have no vehicle that is known.
  expect(withTransaction(late, "43")).toMatchObject({ identity: null, transaction: "43" });
  const stopped: Meaning = { kind: "stopped", connector: 1, transaction: "42", meterWh: null, at: null };
  expect(withTransaction(withMeaning(late, stopped, NOW), "42")).toMatchObject({ identity: null });
});

const ago = (minutes: number) => instant(NOW - minutes * 60_000);
type Dated = Meaning & { readonly at: Instant | null };
const sent = (state: OutletState, ...meanings: readonly Dated[]) =>
  meanings.reduce((before, meaning) => withMeaning(before, meaning, meaning.at ?? NOW), state);

test("sessions that a charger reports after a cut do not replace the state that it has reported since", () => {
  const reported = (state: "charging" | "unplugged", at: Instant | null = ago(1)) =>
    withMeaning(NOTHING_KNOWN, { ...status(state), at } as Meaning, NOW);
  const first = { ...started, at: ago(90) };
  const end: Meaning & { at: Instant } = {
    kind: "stopped",
    connector: 1,
    transaction: "42",
    meterWh: null,
    at: ago(60),
  };
  const next = { ...started, transaction: "43", identity: { kind: "rfid", value: "05" }, at: ago(30) };
  expect(sent(reported("unplugged"), first, end)).toMatchObject({ state: "unplugged", identity: null });
  expect(sent(reported("charging"), first, end, next)).toMatchObject({
    state: "charging",
    identity: { value: "05" },
  });
  // Without a time in its status a session that begins is at least under way.
  expect(sent(reported("charging", null), first, end, next)).toMatchObject({ state: "connected" });
});

test("a session has its vehicle's identity and its own energy", () => {
  const state = after(
    started,
    status("charging"),
    meter({ powerW: 11040, currentsA: [16, 16, 16], energyWh: 1500 }),
  );
  expect(telemetry(state)).toEqual({
    at: NOW,
    state: "charging",
    identity: { kind: "rfid", value: "04" },
    powerW: 11040,
    currentsA: [16, 16, 16],
    energyWh: 1500,
    sessionWh: 500,
  });
});

test("a flow from before a pause or an end is no reading of now; the register stays", () => {
  const charging = after(started, status("charging"), meter({ powerW: 11040, energyWh: 1500 }));
  expect(telemetry(withMeaning(charging, status("paused"), NOW))).toMatchObject({
    energyWh: 1500,
    state: "paused",
  });
  expect(telemetry(withMeaning(charging, status("paused"), NOW))).not.toHaveProperty("powerW");
  const stopped = withMeaning(
    charging,
    { kind: "stopped", connector: 1, transaction: "42", meterWh: 1600, at: null },
    NOW,
  );
  expect(telemetry(stopped)).toMatchObject({ energyWh: 1600 });
  expect(telemetry(stopped)).not.toHaveProperty("sessionWh");
  const unplugged = withMeaning(stopped, status("unplugged"), NOW);
  expect(telemetry(unplugged)).toMatchObject({ state: "unplugged", identity: null });
});

test("a transaction at an outlet that was free means that a vehicle is connected", () => {
  expect(after(started).state).toBe("connected");
  expect(after(status("charging"), started).state).toBe("charging");
  expect(after({ ...started, meterWh: null }).readings).toEqual({});
  expect(
    after({ kind: "stopped", connector: 1, transaction: "42", meterWh: null, at: null }).readAt,
  ).toBeNull();
});

test("an old reading is not repeated as one of now", () => {
  const state = after(status("charging"), meter({ powerW: 11040, voltagesV: [230], soc: 50, energyWh: 5 }));
  expect(telemetry(state, instant(NOW + 59_000))).toMatchObject({ powerW: 11040, voltagesV: [230], soc: 50 });
  expect(telemetry(state, instant(NOW + 61_000))).toEqual({
    at: NOW + 61_000,
    state: "charging",
    energyWh: 5,
  });
});

const at = (seconds: number) => instant(NOW + seconds * 1000);
const metered = (state: OutletState, ...samples: readonly (readonly [seconds: number, readings: object])[]) =>
  samples.reduce((before, [seconds, readings]) => withMeaning(before, meter(readings), at(seconds)), state);

test("a measurement that the charger stopped reporting is not repeated with its other ones", () => {
  const state = metered(
    after(status("charging")),
    [0, { powerW: 11_040, limitA: 16 }],
    [61, { currentsA: [8] }],
  );
  expect(telemetry(state, at(61))).toEqual({ at: at(61), state: "charging", currentsA: [8] });
});

const wh = (seconds: number, watts: number) => 5_003 + Math.round((seconds * watts) / 3_600);

const samples = (from: number, until: number, watts: number) =>
  Array.from({ length: (until - from) / 10 + 1 }, (_, each) => from + each * 10).map(
    (seconds) => [seconds, { energyWh: wh(seconds, watts) }] as const,
  );

test("a charger that reports its register only is measured by it, over 45 s of one level", () => {
  const idle = after(status("charging"));
  const full = metered(idle, ...samples(0, 40, 11_040));
  expect(telemetry(full, at(40))).not.toHaveProperty("powerW");
  const measured = metered(full, ...samples(50, 50, 11_040));
  expect(telemetry(measured, at(50)).powerW).toBeCloseTo(11_040, -2);
  // A new level: the mean of before shows nothing about it, nor do the first seconds.
  const changed = metered(withNewLevel(measured, at(55)), ...samples(60, 70, 11_040));
  expect(telemetry(changed, at(70))).not.toHaveProperty("powerW");
  const lower = metered(changed, ...samples(80, 130, 0));
  expect(telemetry(lower, at(130)).powerW).toBe(0);
  // A pause ends the mean.
  expect(withMeaning(measured, status("paused"), at(51)).register.begin).toBeNull();
});

test("a register in steps of 10 Wh takes longer, and one that is set back or was away for long begins anew", () => {
  const idle = after(status("charging"));
  const coarse = (...at: readonly number[]) =>
    metered(idle, ...at.map((seconds) => [seconds, { energyWh: 1_010 + seconds * 10 }] as const));
  expect(telemetry(coarse(0, 400), at(400))).not.toHaveProperty("powerW");
  expect(telemetry(coarse(0, 450), at(450)).powerW).toBe(36_000);
  const back = metered(coarse(0), [100, { energyWh: 3 }]);
  expect(telemetry(back, at(100))).not.toHaveProperty("powerW");
  expect(telemetry(metered(back, [150, { energyWh: 103 }]), at(150)).powerW).toBe(7_200);
  // The clock of the charger is corrected by a quarter of an hour.
  const early = metered(idle, [900, { energyWh: 1 }], [0, { energyWh: 101 }], [50, { energyWh: 201 }]);
  expect(telemetry(early, at(50)).powerW).toBe(7_200);
  const away = metered(idle, [0, { energyWh: 1 }], [1_300, { energyWh: 9_001 }]);
  expect(telemetry(away, at(1_300))).not.toHaveProperty("powerW");
});

test("a charger that reports power or current is not measured by its register, also after a new level", () => {
  const first = metered(after(status("charging")), [0, { currentsA: [16], energyWh: 1 }]);
  const later = metered(first, [10, { energyWh: 2 }], [70, { energyWh: 400 }]);
  expect(telemetry(later, at(70))).not.toHaveProperty("powerW");
  const power = metered(first, [20, { powerW: 3_680 }]);
  expect(telemetry(withNewLevel(power, at(21)), at(22)).powerW).toBe(3_680);
});

test("the limit is the offered one, or the schedule that the charger reported", () => {
  const state = withComposite(after(status("charging")), { value: 6900, unit: "W" }, outlet);
  expect(telemetry(state).limitA).toBe(10);
  expect(telemetry(withMeaning(state, meter({ limitW: 4140 }), NOW)).limitA).toBe(6);
  expect(telemetry(withMeaning(state, meter({ limitA: 7 }), NOW)).limitA).toBe(7);
  expect(telemetry(withComposite(state, null, outlet))).not.toHaveProperty("limitA");
});

test("a session that is older than our connection keeps the vehicle that the daemon knows", () => {
  const unknown = { at: NOW, state: "charging" };
  expect(telemetry(after(status("charging")))).toEqual(unknown);
  expect(telemetry(withTransaction(after(status("charging")), "42"))).toEqual(unknown);
  expect(telemetry(after(status("charging"), started)).identity).toEqual({ kind: "rfid", value: "04" });
  expect(telemetry(after(status("unplugged"))).identity).toBeNull();
});

test("a restart in a session forgets all but its vehicle, which returns with the transaction", () => {
  const restarted = after(started, status("charging"), meter({ powerW: 5 }), BOOT);
  expect(isSilent(restarted)).toBe(true);
  expect(restarted).toEqual({
    ...NOTHING_KNOWN,
    bootedAt: NOW,
    started: expect.objectContaining({ transaction: "42" }),
  });
  const resumed = withTransaction(withMeaning(restarted, status("charging"), NOW), "42");
  expect(telemetry(resumed)).toMatchObject({ state: "charging", identity: { kind: "rfid", value: "04" } });
});

test("meter values of a transaction that has ended bring no vehicle back", () => {
  const stopped: Meaning = { kind: "stopped", connector: 1, transaction: "42", meterWh: null, at: null };
  const free = after(started, status("charging"), stopped, status("unplugged"));
  expect(withTransaction(free, "42")).toBe(free);
  expect(withTransaction(free, "43")).toMatchObject({ state: "connected", transaction: "43" });
});

test("an event of a session that has ended, sent late, shows no charge at the free bay (2.0.1)", () => {
  const [charging, ended] = [
    { kind: "charging", connector: 1, transaction: "42", state: "charging" },
    { kind: "stopped", connector: 1, transaction: "42", meterWh: 1500, at: NOW },
  ] as const;
  const free = after(started, charging, ended, status("unplugged"));
  expect(withMeaning(free, charging, NOW).state).toBe("unplugged");
  const next = { ...started, transaction: "43" };
  const later = { ...charging, transaction: "43" };
  expect(after(started, ended, next, later).state).toBe("charging");
});

test("a clock is ahead by the time of its messages, up to a day", () => {
  expect([NOW - 5, NOW + 3_600_000, NOW + 2 * DAY].map((at) => aheadOf(instant(at), NOW))).toEqual([
    0, 3_600_000, 0,
  ]);
});

test("a restart forgets the state, and 2.0.1 reports the energy transfer by itself", () => {
  expect(after(status("charging"), BOOT)).toEqual({ ...NOTHING_KNOWN, bootedAt: NOW });
  expect(after({ kind: "charging", connector: 1, transaction: "42", state: "charging" }).state).toBe(
    "charging",
  );
  expect(after(status("connected", "GroundFailure")).fault).toBe("GroundFailure");
});

test("a clock of 1970 or of next year is not believed; a buffered message keeps its time", () => {
  expect(believedTime(instant(0), NOW)).toEqual({ at: NOW, isWrong: true });
  expect(believedTime(instant(NOW + 365 * DAY), NOW)).toEqual({ at: NOW, isWrong: true });
  expect(believedTime(instant(NOW - DAY), NOW)).toEqual({ at: NOW - DAY, isWrong: false });
  expect(believedTime(instant(NOW + 1000), NOW)).toEqual({ at: NOW, isWrong: false });
  expect(believedTime(null, NOW)).toEqual({ at: NOW, isWrong: false });
});

test("readings that are older than the known ones are out of order", () => {
  const state = after(meter({ powerW: 1 }));
  expect([isOutOfOrder(state, instant(NOW - 1)), isOutOfOrder(state, NOW)]).toEqual([true, false]);
  expect(isOutOfOrder(NOTHING_KNOWN, NOW)).toBe(false);
});

test("a fault of the whole station is one of its outlets, until the station or the outlet reports otherwise", () => {
  const charging = after(started, status("charging"), meter({ powerW: 11_040, energyWh: 1_500 }));
  const faulty = withStationStatus(charging, { state: "error", fault: "GroundFailure" });
  expect(telemetry(faulty)).toMatchObject({ state: "error", energyWh: 1_500, identity: { value: "04" } });
  expect(telemetry(faulty)).not.toHaveProperty("powerW");
  expect(faulty.fault).toBe("GroundFailure");
  // A second fault does not make the first one the state to return to.
  const away = withStationStatus(faulty, { state: "unknown", fault: null });
  expect(telemetry(away)).toMatchObject({ state: "unknown" });
  const back = withStationStatus(away, { state: "unplugged", fault: null });
  expect(back).toMatchObject({ state: "charging", fault: null, transaction: "42" });
  // The station is free of faults: its status is none of an outlet.
  expect(withStationStatus(back, { state: "unplugged", fault: null })).toBe(back);
  const own = withMeaning(faulty, status("paused"), NOW);
  expect(withStationStatus(own, { state: "unplugged", fault: null })).toMatchObject({ state: "paused" });
  const next = withMeaning(faulty, started, NOW);
  expect(withStationStatus(next, { state: "unplugged", fault: null })).toMatchObject({ state: "connected" });
});

test("a status that is repeated keeps the readings since the first, and a new one without flow drops them", () => {
  const paused = after(status("charging"), meter({ powerW: 5, soc: 60 }), status("paused"));
  expect(paused.readings).not.toHaveProperty("powerW");
  const repeated = withMeaning(withMeaning(paused, meter({ soc: 80 }), NOW), status("paused"), NOW);
  expect(repeated.readings).toMatchObject({ soc: 80 });
});

test("an outlet with a reading or a status is not silent", () => {
  expect([
    isSilent(after(meter({ soc: 60 }))),
    isSilent(after(status("charging"))),
    isSilent(after()),
  ]).toEqual([false, false, true]);
});

test("the firmware and the time of the boot notification are reported with the telemetry", () => {
  const booted = after({ ...BOOT, firmware: "1.6-test" }, status("charging"));
  expect(telemetry(booted)).toMatchObject({ firmware: "1.6-test", started: { kind: "time", at: NOW } });
  expect(telemetry(after(BOOT, status("charging")))).not.toHaveProperty("firmware");
  expect(telemetry(after(status("charging")))).not.toHaveProperty("started");
});
