import { describe, expect, onTestFinished, test, vi } from "vitest";

import { type Json, textOf } from "../../src/domain/audit.ts";
import { DepartureBoard } from "../../src/departures/board.ts";
import { Departures } from "../../src/departures/pipeline.ts";
import { ShortfallWatch } from "../../src/departures/watch.ts";
import type { Change } from "../../src/domain/changes.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import { chargerId, instant, vehicleId } from "../../src/domain/units.ts";
import { timesOfDay } from "../../src/platform/clock.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { aDepot } from "../support/aDepot.ts";
import { aPicture } from "../support/aPicture.ts";
import type { TestDepot } from "../support/testDepot.ts";
import { virtualNow } from "../support/virtualTime.ts";

const FIELDS = {
  name: "Bus 1",
  departures: [{ at: "05:40", energy: 40 }],
  battery: { capacity: 200 },
};
const charging = (watts: number, wh = 0, more: object = {}) =>
  ({ state: "charging", powerW: watts, sessionWh: wh, ...more }) as const;

/** One bus at one charger of 22 kW, from 01:00 on. */
const aBus = (fields: object = {}, time = "01:00") =>
  aDepot()
    .withCharger("bay-01", { current: { max: 32 } })
    .withVehicle("v1", "bay-01", { ...FIELDS, ...fields })
    .startingAt(time)
    .withDepartures();

const only = (depot: TestDepot): Record<string, Json> => depot.departureList()[0] ?? {};
const alarms = (depot: TestDepot) => runToEnd(depot.departures.facts(virtualNow()));

const shortOf = (depot: TestDepot): number => (only(depot)["short"] as { energyWh: number }).energyWh;

/** Telemetry each minute, so that the charger stays alive. */
async function reports(depot: TestDepot, until: string, telemetry: object): Promise<void> {
  const end = Date.parse(`2026-11-21T${until}:00Z`);
  while (virtualNow() < end) {
    await depot.telemetry("bay-01", telemetry);
    await depot.passes(60_000);
  }
}

const leaves = (time: string) => ({ departures: [{ at: time, energy: 10 }] });

describe("a departure", () => {
  test("of a vehicle that a person names has the energy from the plug-in on, and one that the charger names begins anew", async () => {
    const depot = await aBus()
      .withCharger("bay-02", { current: { max: 32 } })
      .withVehicle("v2", null, { ...FIELDS, identities: [{ rfid: "02" }] })
      .running();
    const missing = (vehicle: string): Json | undefined =>
      depot.departureList().find((departure) => departure["vehicle"] === vehicle)?.["remainingWh"];
    const register = async (energyWh: number, more: object = {}): Promise<void> => {
      await depot.telemetry("bay-01", { state: "charging", powerW: 10_000, energyWh, ...more });
      await depot.passes(60_000);
    };
    await register(5_000, { state: "unplugged", powerW: 0 });
    await register(5_000);
    await register(15_000);
    expect(missing("v1")).toBe(30_000);
    await depot.bind("bay-01", "v2");
    await register(16_000);
    expect([missing("v1"), missing("v2")]).toEqual([null, 29_000]);
    await depot.unbind("bay-01");
    await register(17_000);
    expect(missing("v1")).toBe(28_000);
    // A quick change: nobody was seen to unplug.
    await register(17_000, { identity: { kind: "rfid", value: "02" } });
    expect(missing("v2")).toBe(40_000);
    await register(18_000, { identity: { kind: "rfid", value: "stranger" } });
    expect([missing("v1"), missing("v2")]).toEqual([null, null]);
    // A bay without a vehicle of its own.
    const there = async (state: "unplugged" | "charging", energyWh: number): Promise<void> => {
      await depot.telemetry("bay-02", { state, powerW: 10_000, energyWh });
      await depot.passes(60_000);
    };
    await there("unplugged", 1_000);
    await there("charging", 1_000);
    await depot.bind("bay-02", "v2");
    await there("charging", 3_000);
    expect(missing("v2")).toBe(38_000);
  });

  test("is shown as it would be under an override, before somebody opens it", async () => {
    const depot = await aBus(leaves("02:00"))
      .withEvent({ id: "EV-1", start: "01:00", minutes: 120, amperes: 6 })
      .running();
    await reports(depot, "01:03", charging(4140));
    expect(only(depot)).toMatchObject({ state: "short", cause: "event" });
    const body = { scope: { vehicle: "v1" }, reason: "leaves early", until: { events: true } };
    const under = async (asked: object) => {
      const answer = await depot.previewHold({ ...body, ...asked });
      return answer.ok ? answer.value : null;
    };
    expect(await under({ kind: "exempt" })).toMatchObject({
      departures: [{ vehicle: "v1", state: "onTime", readyAt: "2026-11-21T01:30:11.475Z", short: null }],
    });
    expect(await under({ kind: "level", level: { pause: true } })).toMatchObject({
      departures: [{ vehicle: "v1", state: "short", cause: "hold" }],
    });
    // Nothing has changed.
    expect(only(depot)).toMatchObject({ state: "short", cause: "event" });
    expect(depot.holds()).toEqual({ ok: true, value: [] });
  });

  test("without telemetry is unknown, and names the missing signals", async () => {
    const depot = await aBus().running();
    expect(only(depot)).toMatchObject({
      vehicle: "v1",
      name: "Bus 1",
      charger: "bay-01",
      at: "2026-11-21T05:40:00.000Z",
      need: { energyWh: 40_000 },
      source: "weekly",
      by: null,
      state: "unknown",
      missing: ["telemetry of bay-01"],
    });
  });

  test("is listed before those that come later, and beside one of the same time by the id of its vehicle", async () => {
    const depot = await aDepot()
      .withVehicle("v3", "bay-03", leaves("05:00"))
      .withVehicle("v2", "bay-02", leaves("05:40"))
      .withVehicle("v1", "bay-01", leaves("05:40"))
      .withVehicle("v4", "bay-04", leaves("04:00"))
      .startingAt("01:00")
      .withDepartures()
      .running();
    expect(depot.departureList().map(({ vehicle }) => vehicle)).toEqual(["v4", "v3", "v1", "v2"]);
  });

  test("that was set is deleted from the disk a day after it has passed", async () => {
    const depot = await aBus().running();
    await depot.setDeparture("v1", { at: "2026-11-21T04:00:00Z", energyWh: 1000 });
    await depot.until("04:01");
    expect(depot.storedDepartures()).toHaveLength(1);
    await depot.until("2026-11-22T06:30:00Z");
    expect(depot.storedDepartures()).toEqual([]);
  });

  test("is the earlier one again after the clock was set back", async () => {
    const departures = [
      { at: "02:00", energy: 10 },
      { at: "05:40", energy: 40 },
    ];
    const depot = await aBus({ departures }).running();
    await depot.until("02:30");
    expect(only(depot)["at"]).toBe("2026-11-21T05:40:00.000Z");
    vi.setSystemTime(Date.parse("2026-11-21T01:30:00Z"));
    await depot.telemetry("bay-01", charging(22_080));
    await depot.passes(65_000);
    expect(only(depot)["at"]).toBe("2026-11-21T02:00:00.000Z");
  });

  test("of a vehicle that charges freely is on time, and follows its meter", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.passes(1_000);
    expect(only(depot)).toMatchObject({ state: "onTime", remainingWh: 40_000, short: null });
    await depot.telemetry("bay-01", charging(22_080, 30_000));
    await depot.passes(15_000);
    expect(only(depot)).toMatchObject({ remainingWh: 10_000, deliveredWh: 30_000, powerW: 22_080 });
    await depot.telemetry("bay-01", charging(22_080, 40_000));
    await depot.passes(15_000);
    expect(only(depot)).toMatchObject({ state: "ready", readyAt: null, slackS: null });
  });

  test("is short because of an event that is known, before it begins, and on time once it is withdrawn", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.deliver({ id: "EV-7", start: "01:30", minutes: 300, amperes: 8 });
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({
      state: "short",
      cause: "event",
      because: expect.stringContaining("event EV-7 allows 5.5 kW until 06:30:00"),
    });
    await depot.withdraw("EV-7", 1);
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ state: "onTime" });
  });

  test("counts a hold that frees the vehicle, and one that ends after an energy", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", charging(5_520, 0, { energyWh: 0 }));
    await depot.deliver({ id: "EV-7", start: "01:00", minutes: 300, amperes: 8 });
    const hold = (until: object) =>
      depot.hold({ scope: { vehicle: "v1" }, kind: "exempt", until, reason: "leaves early" });
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ state: "short" });
    const before = shortOf(depot);
    const opened = await hold({ energyWh: 8_000 });
    await depot.passes(90_000);
    const between = shortOf(depot);
    expect(between).toBeLessThan(before - 5_000);
    expect(between).toBeGreaterThan(before - 8_000);
    await depot.endHold((opened as unknown as { value: { id: string } }).value.id);
    await hold({ at: "2026-11-21T05:40:00Z" });
    await depot.passes(90_000);
    expect(only(depot)).toMatchObject({ state: "onTime" });
  });

  test("of a vehicle that draws less than it may is forecast with the power that it draws", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", charging(3_000));
    await depot.passes(120_000);
    await depot.telemetry("bay-01", charging(3_000));
    await depot.passes(15_000);
    expect(only(depot)).toMatchObject({ state: "short", cause: "vehicle" });
    // An event that allows more than that changes nothing.
    await depot.deliver({ id: "EV-7", start: "01:10", minutes: 300, amperes: 8 });
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ cause: "vehicle" });
    await depot.telemetry("bay-01", charging(22_000, 200));
    await depot.passes(15_000);
    expect(only(depot)).toMatchObject({ cause: "event" });
  });

  test("that is the first of the site counts the energy since a plug-in before it was set", async () => {
    const depot = await aBus({ departures: [] }).running();
    await depot.telemetry("bay-01", { state: "unplugged", powerW: 0, energyWh: 70_000 });
    await depot.passes(1_000);
    await depot.telemetry("bay-01", { state: "charging", powerW: 22_080, energyWh: 70_000 });
    await depot.passes(1_000);
    await depot.telemetry("bay-01", { state: "charging", powerW: 22_080, energyWh: 75_000 });
    await depot.passes(1_000);
    await depot.setDeparture("v1", { at: "2026-11-21T05:40:00Z", energyWh: 40_000 });
    expect(only(depot)).toMatchObject({ state: "onTime", deliveredWh: 5_000, remainingWh: 35_000 });
  });

  test("with a state of charge needs the battery, unless it is reached", async () => {
    const soc = { departures: [{ at: "05:40", soc: 80 }] };
    const depot = await aBus(soc).running();
    await depot.telemetry("bay-01", charging(22_080, 0, { soc: 50 }));
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ state: "onTime", remainingWh: 60_000, soc: 50, need: { soc: 80 } });
  });

  test("with a state of charge is not ready because the vehicle reports 255 for one that it does not know", async () => {
    const soc = { departures: [{ at: "05:40", soc: 80 }] };
    const depot = await aBus(soc).running();
    await depot.telemetry("bay-01", charging(22_080, 0, { soc: 255 }));
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ state: "unknown", missing: ["the state of charge"], soc: null });
  });

  test("with a state of charge of an unknown battery is known once it is reached", async () => {
    const soc = { departures: [{ at: "05:40", soc: 80 }], battery: undefined };
    const without = await aBus(soc).running();
    expect(only(without)).toMatchObject({ missing: ["telemetry of bay-01", "the capacity of the battery"] });
    await without.telemetry("bay-01", charging(22_080, 0, { soc: 50 }));
    await without.passes(2_000);
    expect(only(without)).toMatchObject({ state: "unknown", missing: ["the capacity of the battery"] });
    await without.telemetry("bay-01", charging(22_080, 0, { soc: 81 }));
    await without.passes(15_000);
    expect(only(without)).toMatchObject({ state: "ready" });
  });

  test("shows an error of the charger, and a charger that is offline", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", { state: "error", sessionWh: 0 });
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ state: "short", cause: "charger", readyAt: null });
    await depot.online("bay-01", false);
    await depot.passes(15_000);
    expect(only(depot)).toMatchObject({ missing: ["telemetry of bay-01"] });
  });

  test("shows a charger that reports no energy", async () => {
    const meterless = await aBus().running();
    await meterless.telemetry("bay-01", {
      state: "charging",
      currentsA: [10, 10, 10],
      voltagesV: [230, 230, 230],
    });
    await meterless.passes(2_000);
    expect(only(meterless)).toMatchObject({ missing: ["the energy since the plug-in"], powerW: 6_900 });
  });

  test("that is over gives way to the next, and the vehicle may leave", async () => {
    const depot = await aBus({}, "05:30").running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.until("05:40");
    await depot.passes(61_000);
    expect(only(depot)).toMatchObject({ at: "2026-11-22T05:40:00.000Z" });
    await depot.telemetry("bay-01", { state: "unplugged" });
    await depot.passes(15_000);
    expect(only(depot)).toMatchObject({
      state: "unknown",
      cause: "notPluggedIn",
      missing: ["the vehicle is not plugged in"],
    });
  });

  test("of a bus whose bay another vehicle uses is not forecast by that vehicle's meter", async () => {
    const depot = await aBus({ identities: [{ mac: "02:AA:BB:00:00:01" }] }).running();
    const stranger = { kind: "mac", value: "ff:ff:ff:ff:ff:ff" };
    await depot.telemetry("bay-01", charging(22_080, 30_000, { identity: stranger }));
    await depot.passes(15_000);
    expect(only(depot)).toMatchObject({ state: "unknown", deliveredWh: null });
  });

  test("is short because of an event in kW as well", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.deliver({ id: "EV-7", start: "01:30", minutes: 300, kilowatts: 5 });
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({
      cause: "event",
      because: expect.stringContaining("event EV-7 allows 5 kW until 06:30:00"),
    });
  });

  test("in mode observe is forecast without events, which are not sent", async () => {
    const depot = await aBus().withControl({ mode: "observe" }).running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.deliver({ id: "EV-7", start: "01:00", minutes: 300, amperes: 8 });
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ state: "onTime" });
  });

  test("counts the level that a charger gets when its events are over", async () => {
    const paused = aDepot()
      .withCharger("bay-01", { atEnd: "pause" })
      .withVehicle("v1", "bay-01", FIELDS)
      .startingAt("01:00")
      .withDepartures();
    const depot = await paused.running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.deliver({ id: "EV-7", start: "01:00", minutes: 30, amperes: 8 });
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ state: "short", readyAt: null, cause: "event" });
  });

  test("is the vehicle's on the stream, and in the list of vehicles; one with a battery alone has none", async () => {
    const depot = await aBus()
      .withVehicle("v2", "bay-02", { battery: { capacity: 300 } })
      .running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.passes(2_000);
    expect(depot.departures.api.of("v1" as never)).toMatchObject({ state: "onTime" });
    expect(depot.departures.counts()).toEqual({ ready: 0, onTime: 1, short: 0, unknown: 0 });
  });
});

describe("a forecast names what it assumes:", () => {
  const SOC = { departures: [{ at: "05:40", soc: 100 }] };

  test("a period of observe ends, and events apply from then on", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.deliver({ id: "EV-7", start: "01:00", minutes: 300, amperes: 8 });
    await depot.passes(2_000);
    expect(only(depot)).toMatchObject({ state: "short", cause: "event" });
    await depot.mode({ mode: "observe", until: "2026-11-21T02:00:00Z", reason: "work on the panel" });
    await depot.passes(61_000);
    expect(only(depot)).toMatchObject({
      state: "onTime",
      assumed: expect.arrayContaining([
        "the site observes until 02:00:00, and follows events and holds from then on",
      ]),
    });
    await depot.mode({ mode: "observe", until: "2026-11-21T01:10:00Z", reason: "work on the panel" });
    await depot.passes(61_000);
    expect(only(depot)).toMatchObject({ state: "short", cause: "event" });
  });

  test("a charger that keeps its limit while the site observes goes on with it", async () => {
    const depot = await aBus().withControl({ onObserve: "keep" }).running();
    await depot.telemetry("bay-01", charging(5_520));
    await depot.deliver({ id: "EV-7", start: "01:00", minutes: 300, amperes: 8 });
    await depot.mode({ mode: "observe", until: "2026-11-21T09:00:00Z", reason: "work on the panel" });
    await depot.passes(61_000);
    expect(only(depot)).toMatchObject({ state: "short" });
    await depot.withdraw("EV-7", 1);
    await depot.mode({ mode: "drive", reason: "done" });
    await depot.passes(61_000);
    expect(only(depot)).toMatchObject({ state: "onTime" });
  });

  test("charging slows down above 80 %, which makes it late without any event", async () => {
    const depot = await aBus(SOC).running();
    await depot.telemetry("bay-01", charging(22_080, 0, { soc: 55 }));
    await depot.passes(2_000);
    const [assumed] = only(depot)["assumed"] as readonly string[];
    expect(assumed).toBe("charging slows down above 80 %, to 20 % of 22.1 kW at 100 %");
    expect(only(depot)).toMatchObject({
      state: "short",
      cause: "time",
      because: expect.stringMatching(/slows down above 80 %$/),
    });
  });

  test("power stays full where the state of charge is not known", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.passes(2_000);
    expect(only(depot)["assumed"]).toEqual([
      "full power to the end of the charge: the state of charge is not known",
    ]);
  });

  test("chargers that are limited now pass the release ramp first", async () => {
    const depot = await aBus()
      .withControl({ releaseRamp: { current: 1 } })
      .withVehicle("v2", "bay-02", { departures: [{ at: "05:40", energy: 40 }] })
      .running();
    await depot.telemetry("bay-01", charging(5_520));
    await depot.telemetry("bay-02", charging(5_520));
    await depot.deliver({ id: "EV-7", start: "01:00", minutes: 200, amperes: 8 });
    await depot.passes(120_000);
    // 24 A of the other charger at 1 A a minute.
    expect(only(depot)["assumed"]).toEqual(
      expect.arrayContaining([
        "an increase waits 24 min for the chargers that are limited now (control.releaseRamp)",
      ]),
    );
  });

  test("and does not flap while a battery fills", async () => {
    const depot = await aBus({ departures: [{ at: "05:40", soc: 95 }] }).running();
    const states: string[] = [];
    let [soc, wh] = [60, 0];
    for (let minute = 0; minute < 270; minute += 1) {
      const watts =
        22_080 * (soc < 85 ? 1 : Math.max(0.2, 1 - (soc - 85) / 20)) * (minute % 2 === 0 ? 1 : 0.97);
      await depot.telemetry("bay-01", charging(Math.round(watts), Math.round(wh), { soc: Math.round(soc) }));
      await depot.passes(60_000);
      wh += watts / 60;
      soc = 60 + wh / 2_000;
      const state = textOf(only(depot), "state") ?? "";
      if (states.at(-1) !== state) states.push(state);
    }
    expect(states.length).toBeLessThanOrEqual(3);
    expect(states.at(-1)).toBe("ready");
  });
});

describe("the alarm about a shortfall", () => {
  test("opens after five minutes, with its cause, and clears five minutes after it is over", async () => {
    const depot = await aBus().running();
    await depot.telemetry("bay-01", charging(22_080));
    await depot.deliver({ id: "EV-7", start: "01:20", minutes: 300, amperes: 8 });
    await reports(depot, "01:04", charging(22_080));
    expect(alarms(depot)).toEqual([]);
    await reports(depot, "01:08", charging(22_080));
    expect(alarms(depot)).toMatchObject([
      {
        kind: "departureShort",
        subject: "v1",
        severity: "critical",
        message: expect.stringMatching(
          /^Bus 1 leaves 05:40:00 and needs 40 kWh: .* short .*event EV-7 allows 5.5 kW/,
        ),
        action: expect.stringContaining("setpointd hold v1 --exempt"),
      },
    ]);
    await depot.withdraw("EV-7", 1);
    await reports(depot, "01:11", charging(22_080));
    expect(alarms(depot)).toHaveLength(1);
    await reports(depot, "01:16", charging(22_080));
    expect(alarms(depot)).toEqual([]);
  });

  test("does not open for a shortfall of a moment", async () => {
    const depot = await aBus().running();
    for (let minute = 2; minute < 40; minute += 4) {
      await depot.deliver({ id: "EV-7", start: "01:50", minutes: 300, amperes: 8, revision: minute });
      await reports(depot, `01:${String(minute + 2).padStart(2, "0")}`, charging(22_080));
      await depot.withdraw("EV-7", minute + 1);
      await reports(depot, `01:${String(minute + 4).padStart(2, "0")}`, charging(22_080));
      expect(alarms(depot)).toEqual([]);
    }
  });

  test("ends with the departure", async () => {
    const depot = await aBus({}, "05:00").running();
    await reports(depot, "05:30", charging(1_000));
    expect(alarms(depot)).toMatchObject([{ kind: "departureShort" }]);
    await reports(depot, "05:42", charging(1_000));
    expect(alarms(depot)).toEqual([]);
  });
});

test("a vehicle that is expected and not plugged in is missed half an hour before its time runs out", async () => {
  const depot = await aBus({}, "03:00").running();
  await reports(depot, "03:20", { state: "unplugged" });
  expect(alarms(depot)).toEqual([]);
  // 40 kWh at 22.08 kW take 1 h 49 min.
  await reports(depot, "03:22", { state: "unplugged" });
  expect(alarms(depot)).toMatchObject([
    {
      kind: "notPluggedIn",
      subject: "v1",
      severity: "warning",
      message: "Bus 1 is not plugged in: it leaves 05:40:00 with 40 kWh, and charging takes 1 h 49 min",
    },
  ]);
  await depot.telemetry("bay-01", charging(22_080));
  await depot.passes(15_000);
  expect(alarms(depot)).toEqual([]);
});

test("a vehicle whose need is not known is missed half an hour before it leaves", async () => {
  const soc = { departures: [{ at: "05:40", soc: 80 }], battery: undefined };
  const depot = await aBus(soc, "05:00").running();
  await reports(depot, "05:09", { state: "unplugged" });
  expect(alarms(depot)).toEqual([]);
  await reports(depot, "05:12", { state: "unplugged" });
  expect(alarms(depot)).toMatchObject([{ message: "Bus 1 is not plugged in: it leaves 05:40:00 with 80 %" }]);
});

test("a plug-in during the work for a large site is followed a second later", async () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 1) });
  onTestFinished(() => void vi.useRealTimers());
  const now = virtualNow;
  const state = aPicture();
  const { feed } = state;
  const [bay, vehicle] = [chargerId("bay-01"), vehicleId("veh-214")];
  const reported = (telemetry: Omit<Telemetry, "at">): void => {
    state.presence.update(bay, { telemetry: { at: now(), ...telemetry }, measuredAt: now() });
    feed.announce("charger", bay);
  };
  const need = { kind: "energy", wh: 40_000 } as const;
  const departure = { vehicle, at: instant(now() + 5 * 3_600_000), need, source: "api", by: "anna" } as const;
  const board = new DepartureBoard({
    state,
    configured: new Map(),
    stored: [{ ...departure, setAt: now() }],
    plugIns: new Map(),
    timeOfDay: timesOfDay("UTC"),
  });
  const written: Change[] = [];
  let [tick, isComing] = [0, false];
  const departures = new Departures(
    state,
    { departures: new Map(), departureGuard: null },
    board,
    new ShortfallWatch([]),
    {
      now,
      // Each slice of the work is over at once. The vehicle comes while that of a round is under way.
      monotonic: () => {
        if (isComing && feed.forPlugIns.isEmpty) {
          isComing = false;
          reported({ state: "connected", energyWh: 70_001 });
        }
        return (tick += 10);
      },
      write: (changes) => written.push(...changes),
      request: async () => ({ ok: true }),
    },
  );
  const following = departures.follow().subscribe();
  onTestFinished(() => following.unsubscribe());
  reported({ state: "unplugged", energyWh: 70_000 });
  await vi.advanceTimersByTimeAsync(3_000);
  isComing = true;
  for (let bays = 0; bays < 300; bays += 1) feed.announce("charger", chargerId(`bay-${bays}`));
  await vi.advanceTimersByTimeAsync(3_000);
  expect([isComing, written]).toEqual([
    false,
    [{ kind: "plugIn", charger: bay, plugIn: { vehicle, at: expect.any(Number), energyWh: 70_000 } }],
  ]);
});
