import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { expect, test } from "vitest";

import { ControlState } from "../../src/control/state.ts";
import { readingsOf } from "../../src/reporting/reading.ts";
import { reportPlan } from "../../src/reporting/plan.ts";
import type { Reading } from "../../src/domain/reading.ts";
import {
  after,
  chargerId,
  type Instant,
  instant,
  iso,
  millis,
  minutes,
  vehicleId,
} from "../../src/domain/units.ts";
import { compose } from "../../src/reporting/compose.ts";
import { piecesOf } from "../../src/reporting/report.ts";
import { writeReport } from "../../src/vtn/dialects/partner/report.ts";
import { NOTHING_STORED } from "../support/aPicture.ts";
import { aCharger, aVehicle, SITE_KEY, settingsWith } from "../support/aCharger.ts";
import { anEvent, at, live, targetsOf } from "../support/anEvent.ts";
import { aDescriptor, reportSettings } from "../support/aReport.ts";

const COUNT = 10_000;
const ids = Array.from({ length: COUNT }, (_, n) => `veh-${n}`);
const chargers = ids.map((_, n) => aCharger({ id: `bay-${n}` }));
const vehicles = ids.map((id, n) => aVehicle({ id, charger: chargerId(`bay-${n}`) }));
const settings = reportSettings();

const aDepot = (): ControlState =>
  new ControlState({
    chargers,
    vehicles,
    settings: settingsWith(),
    siteKey: SITE_KEY,
    epoch: 7,
    archive: NOTHING_STORED,
    wallClock: iso,
    assertAll: false,
  });

/** The first report on a descriptor of an event from 12:00 for an hour. */
function aReport(descriptor: Parameters<typeof aDescriptor>[0], targets = targetsOf(...ids)) {
  const event = anEvent({
    start: at("12:00"),
    randomizeStart: minutes(0),
    reports: [aDescriptor(descriptor)],
    targets,
  });
  const input = { event, start: at("12:00"), receivedAt: at("11:00"), descriptor: 0, issued: null };
  const [window] = reportPlan(input, settings).windows;
  if (window === undefined) throw new Error("nothing to report");
  return { window, revision: { event, start: at("12:00") } };
}

/** Every charger metered 100 Wh a minute. */
const ports = {
  monotonic: () => millis(performance.now()),
  wallClock: iso,
  now: () => at("13:00:30"),
  calendar: (moment: number, days: number) => ({ at: instant(moment - days * 86_400_000), weekday: 3 }),
  seats: async () => [],
  record: async () => [],
  readings: async (asked: Iterable<ReturnType<typeof chargerId>>) =>
    [...asked].flatMap((charger) =>
      Array.from({ length: 62 }, (_, minute) => {
        const moment = instant(at("12:00") + minute * 60_000);
        const vehicle = vehicleId(charger.replace("bay", "veh"));
        return readingsOf({ charger, vehicle }, { at: moment, energyWh: minute * 100 }, moment, null);
      }).flat(),
    ),
};

/** What this thread has worked, ms: the machine may be busy with other things. */
const worked = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** How long the loop was held at most while something was done, and how often it was given back. */
async function heldBy<Result>(work: () => Promise<Result>) {
  let [turns, longest, before] = [0, 0, worked()];
  const ticking = setInterval(() => {
    const now = worked();
    turns += 1;
    longest = Math.max(longest, now - before);
    before = now;
  }, 1);
  const result = await work();
  longest = Math.max(longest, worked() - before);
  clearInterval(ticking);
  return { result, turns, longest };
}

test("a report on ten thousand vehicles does not block the event loop, nor does its body", async () => {
  const depot = aDepot();
  const asked = aReport({ numIntervals: 4 });
  const { result, turns, longest } = await heldBy(() => compose(depot, asked, settings, ports));
  expect(result.summary).toBe(`${COUNT} vehicles, 60000 kWh`);
  expect(result.report.resources).toHaveLength(COUNT);
  expect(turns).toBeGreaterThan(20);
  expect(longest).toBeLessThan(250);
  const spelled = await heldBy(async () =>
    JSON.stringify(
      writeReport(result.report, "openadr30", { clientName: "depot", notes: true, location: null }),
    ),
  );
  expect(spelled.longest).toBeLessThan(400);
});

test("a report on a week of one vehicle does not block the event loop: its readings are read in pieces", async () => {
  const [charger, vehicle] = [chargerId("bay-1"), vehicleId("veh-1")];
  const start = at("12:00");
  const duration = minutes(7 * 24 * 60);
  const event = anEvent({
    start,
    duration,
    randomizeStart: minutes(0),
    reports: [aDescriptor({})],
    targets: targetsOf("veh-1"),
  });
  const input = { event, start, receivedAt: at("11:00"), descriptor: 0, issued: null };
  const [window] = reportPlan(input, settings).windows;
  if (window === undefined) throw new Error("nothing to report");
  let most = 0;
  /** Every 10 s. */
  const readings = async (_: Iterable<typeof charger>, from: Instant, until: Instant) => {
    const found: Reading[] = [];
    for (let moment = from; moment < until; moment = after(moment, millis(10_000))) {
      const told = { at: moment, energyWh: (moment - start) / 360 + 1000, powerW: 10_000, soc: 50 };
      found.push(...readingsOf({ charger, vehicle }, told, moment, null));
    }
    most = Math.max(most, until - from);
    return found;
  };
  const evident = { ...ports, now: () => after(start, minutes(7 * 24 * 60 + 1)), readings };
  const asked = { window, revision: { event, start } };
  const { result, turns, longest } = await heldBy(() => compose(aDepot(), asked, settings, evident));
  expect(result.summary).toBe("1 vehicle, 1680 kWh");
  expect(result.report.resources[0]?.quality).toBe("OK");
  expect(most).toBe(minutes(6 * 60));
  expect(turns).toBeGreaterThan(10);
  expect(longest).toBeLessThan(250);
});

test("an event of a thousand years is read in a bounded number of pieces, all of it once", () => {
  const now = at("12:00");
  const window = { from: after(now, minutes(-6e8)), until: after(now, minutes(6e8)) };
  const pieces = [...piecesOf(window, now)];
  expect(pieces.length).toBeLessThan(3000);
  expect([pieces[0]?.from, pieces.at(-1)?.until]).toEqual([window.from, window.until]);
  expect(pieces.every(({ from }, index) => index === 0 || from === pieces[index - 1]?.until)).toBe(true);
  expect([...piecesOf({ from: after(now, minutes(-400)), until: now }, now)]).toHaveLength(2);
  expect([...piecesOf({ from: now, until: now }, now)]).toEqual([]);
});

test("vehicles beyond the size limit of a report are not read", async () => {
  let read = 0;
  const counting = {
    ...ports,
    readings: async () => {
      read += 1;
      return [];
    },
  };
  const { report, summary } = await compose(aDepot(), aReport({ numIntervals: 50 }), settings, counting);
  expect(report.resources).toHaveLength(1000);
  expect(report.flags).toContain(`too large: 1000 of ${COUNT} vehicles`);
  expect(summary).toBe(`${COUNT} vehicles`);
  expect(read).toBe(1000);
});

test("a report that is cut has our vehicles, wherever the event names them", async () => {
  const others = Array.from({ length: 1000 }, (_, n) => `other-${n}`);
  const asked = aReport({ numIntervals: 60 }, targetsOf(...others, "veh-1", "veh-2"));
  const { report } = await compose(aDepot(), asked, settings, ports);
  expect(report.flags).toContain("too large: 833 of 1002 vehicles");
  expect(report.resources.slice(0, 3).map(({ name }) => name)).toEqual(["veh-1", "veh-2", "other-0"]);
});

/** Bytes in use after a garbage collection. */
function heapUsed(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().heapUsed;
}

test.each([true, false])(
  "a report of many intervals on a fleet of others keeps little in memory, aggregate %s",
  async (aggregate) => {
    const others = Array.from({ length: 6000 }, (_, n) => `other-${n}`);
    const asked = aReport({ numIntervals: 60, aggregate }, targetsOf("veh-1", ...others));
    const depot = aDepot();
    let [calls, most] = [0, 0];
    const first = heapUsed();
    const monotonic = () => {
      if ((calls += 1) % 50_000 === 0) most = Math.max(most, heapUsed() - first);
      return millis(performance.now());
    };
    const { report } = await compose(depot, asked, settings, { ...ports, monotonic });
    expect(report.flags[0]).toBe(
      aggregate ? "1 of 6001 vehicles are in the sum" : "too large: 833 of 6001 vehicles",
    );
    expect(most).toBeLessThan(35_000_000);
  },
);

test("a forecast has the planned setpoints at the vehicles' present chargers", async () => {
  const depot = aDepot();
  const asked = aReport({ payloadType: "SETPOINT", historical: false }, targetsOf("veh-7", "veh-unknown"));
  depot.schedule.put(live(asked.revision.event), at("11:00"));
  const { report } = await compose(depot, asked, settings, { ...ports, readings: async () => [] });
  expect(report.resources.map(({ name, intervals }) => [name, intervals[0]?.payloads[0]?.values[0]])).toEqual(
    [
      ["veh-7", 16],
      ["veh-unknown", "MISSING"],
    ],
  );
});

const row = (seq: number, time: string) => ({
  seq,
  at: at(time),
  kind: "outcome" as const,
  charger: null,
  vehicle: vehicleId("veh-1"),
  event: null,
  command: null,
  words: "",
  facts: { progress: "notFollowed" },
  hash: "",
});

test("the record is read page by page, and later rows do not count", async () => {
  const asked = aReport({}, targetsOf("veh-1"));
  const pages = (rows: readonly ReturnType<typeof row>[]) => async (_: unknown, after: number) =>
    rows.filter(({ seq }) => seq > after).slice(0, 1);
  const causes = async (rows: readonly ReturnType<typeof row>[]) => {
    const { report } = await compose(aDepot(), asked, settings, { ...ports, record: pages(rows) });
    return report.resources[0]?.causes;
  };
  expect(await causes([row(1, "11:59"), row(2, "12:10")])).toEqual(["setpoint not followed"]);
  expect(await causes([row(1, "13:10")])).toEqual([]);
});

test("a vehicle that was never at a charger is absent", async () => {
  const nomad = aVehicle({ id: "nomad", charger: null });
  const depot = new ControlState({
    chargers,
    vehicles: [nomad],
    settings: settingsWith(),
    siteKey: SITE_KEY,
    epoch: 7,
    archive: NOTHING_STORED,
    wallClock: iso,
    assertAll: false,
  });
  const { report } = await compose(depot, aReport({}, targetsOf("nomad")), settings, ports);
  expect(report.resources[0]?.causes).toEqual(["vehicle absent"]);
});
