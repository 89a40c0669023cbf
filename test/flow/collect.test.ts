import { expect, test } from "vitest";

import type { CommandRecord } from "../../src/core/control/command.ts";
import { Depot } from "../../src/core/depot.ts";
import type { Telemetry } from "../../src/core/site/telemetry.ts";
import { amperes, chargerId, eventId, type Instant, instant, iso, vehicleId } from "../../src/core/units.ts";
import { collector } from "../../src/flow/collect.ts";
import { aCharger, aVehicle, SITE_KEY, settingsWith } from "../support/aCharger.ts";
import { at } from "../support/anEvent.ts";

const bay = chargerId("bay-01");
const noon = at("12:00");
const second = (count: number): Instant => instant(noon + count * 1000);

function aCollector(edges: readonly Instant[] = []) {
  const depot = new Depot({
    chargers: [aCharger()],
    vehicles: [aVehicle()],
    settings: settingsWith(),
    siteKey: SITE_KEY,
    epoch: 7,
    wallClock: iso,
    unsure: false,
  });
  const collect = collector(depot, () => edges);
  const hears = (seconds: number, telemetry: Omit<Telemetry, "at">, charger = bay): readonly string[] =>
    collect
      .heard(
        { kind: "telemetry", charger, telemetry: { at: second(seconds), ...telemetry } },
        second(seconds),
      )
      .map(({ kind, value, at }) => `${(at - noon) / 1000} ${kind} ${JSON.stringify(value)}`);
  return { depot, collect, hears };
}

const record = (changes: Partial<CommandRecord> = {}): CommandRecord => ({
  command: {
    charger: bay,
    epoch: 7,
    seq: 1,
    desired: { kind: "current", amperes: amperes(16) },
    until: null,
    vehicle: vehicleId("veh-214"),
    event: eventId("EV-1"),
    cause: "event",
    decidedAt: noon,
  },
  progress: "accepted",
  replaces: null,
  sentAt: noon,
  sends: 1,
  judgeAt: null,
  resends: 0,
  failures: 0,
  ...changes,
});

test("what a charger says every second is kept every ten", () => {
  const { hears } = aCollector();
  const kept = Array.from({ length: 21 }, (_, n) => hears(n, { energyWh: 1000 + n }));
  expect(kept.flat()).toEqual(["0 energy 1000", "10 energy 1010", "20 energy 1020"]);
});

test("on both sides of the edge of a report the register is kept, however far apart", () => {
  const { hears } = aCollector([second(5)]);
  const kept = Array.from({ length: 9 }, (_, n) => hears(n, { energyWh: 1000 + n }));
  expect(kept.flat()).toEqual(["0 energy 1000", "4 energy 1004", "5 energy 1005"]);
});

test("with what it says goes what it was told, if that went out", () => {
  const { depot, hears } = aCollector();
  depot.commands.set(bay, record());
  expect(hears(0, { powerW: 1 })).toEqual(["0 power 1", '0 setpoint {"kind":"current","amperes":16}']);
  const [planned, observed] = [aCollector(), aCollector()];
  planned.depot.commands.set(bay, record({ sentAt: null }));
  observed.depot.commands.set(bay, record({ progress: "observed" }));
  expect([planned.hears(0, { powerW: 1 }), observed.hears(0, { powerW: 1 })]).toEqual([
    ["0 power 1"],
    ["0 power 1"],
  ]);
});

test("a charger that never says anything has a trace of what it was told, once a minute", () => {
  const { collect } = aCollector();
  const { command } = record();
  const kept = [0, 20, 40, 60].map((seconds) => collect.told(command, second(seconds)).length);
  expect(kept).toEqual([1, 0, 0, 1]);
});

test("a charger that flips its state all the time fills neither disk nor memory (F95)", () => {
  const { hears } = aCollector();
  const kept = Array.from({ length: 590 }, (_, n) =>
    hears(n / 10, { state: n % 2 === 0 ? "charging" : "paused" }),
  );
  expect(kept.flat()).toHaveLength(120);
  expect(hears(60, { state: "finished" })).toHaveLength(1);
});

test("what is no telemetry, or of a charger that is not ours, is no reading", () => {
  const { collect, hears } = aCollector();
  expect(hears(0, { powerW: 1 }, chargerId("bay-99"))).toEqual([]);
  const online = { kind: "online", charger: bay, online: true, snapshot: false } as const;
  expect(collect.heard(online, noon)).toEqual([]);
});
