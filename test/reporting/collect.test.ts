import { expect, test } from "vitest";

import { CommissioningLock } from "../../src/control/decide/commissioningLock.ts";
import type { ControlState } from "../../src/control/state.ts";
import type { CommandRecord } from "../../src/domain/command.ts";
import type { Reading } from "../../src/domain/reading.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import {
  amperes,
  chargerId,
  eventId,
  type Instant,
  instant,
  millis,
  minutes,
  seconds,
  vehicleId,
} from "../../src/domain/units.ts";
import { ReadingCollector } from "../../src/reporting/collect.ts";
import { aCharger, aVehicle } from "../support/aCharger.ts";
import { aPicture } from "../support/aPicture.ts";
import { anEvent, at, live } from "../support/anEvent.ts";

const bay = chargerId("bay-01");
const noon = at("12:00");
const second = (count: number): Instant => instant(noon + count * 1000);

const inWords = (readings: readonly Reading[]): readonly string[] =>
  readings.map(({ kind, value, at }) => `${(at - noon) / 1000} ${kind} ${JSON.stringify(value)}`);

function aCollector(edges: readonly Instant[] = [], charger: Parameters<typeof aCharger>[0] = {}) {
  const depot = aPicture({ chargers: [aCharger(charger)] });
  const isLinked = { value: true };
  /** `ahead`: by so many seconds the wall clock is ahead. */
  const clock = { tick: millis(0), ahead: 0 };
  const collect = new ReadingCollector(depot, {
    edges: () => edges,
    maxGap: minutes(5),
    isLinked: () => isLinked.value,
    monotonic: () => clock.tick,
  });
  /** The wall clock when so much has passed. */
  const passed = (count: number): Instant => {
    clock.tick = seconds(count);
    return second(count + clock.ahead);
  };
  const hears = (count: number, telemetry: Partial<Telemetry>, charger = bay): readonly string[] => {
    const now = passed(count);
    return inWords(
      collect.handleMessage({ kind: "telemetry", charger, telemetry: { at: now, ...telemetry } }, now),
    );
  };
  /** By its word, or its last will. */
  const isOnline = (online: boolean, count: number): void => {
    depot.presence.update(bay, { ...depot.presence.of(bay), online });
    collect.handleMessage({ kind: "online", charger: bay, online, snapshot: true }, passed(count));
  };
  const upheld = (count: number): readonly string[] =>
    inWords([...collect.carryForward(passed(count))].flat());
  const answers = (count: number): readonly string[] =>
    inWords(
      collect.handleMessage(
        { kind: "ack", charger: bay, id: "7-1", accepted: true, value: null, reason: null },
        passed(count),
      ),
    );
  return { depot, collect, clock, hears, isLinked, isOnline, upheld, answers };
}

test("a charger that says nothing but that it is online, or that it accepts, has nothing to be stored or repeated", () => {
  const { collect, isOnline, answers, upheld } = aCollector();
  isOnline(true, 0);
  expect(answers(1)).toEqual([]);
  expect(upheld(2)).toEqual([]);
  // Not even an entry that each pass goes over.
  expect([...collect.carryForward(second(3))]).toEqual([]);
});

/** Nobody is upheld, and no report is near. */
const QUIET = {
  edges: () => [],
  maxGap: minutes(5),
  isLinked: () => true,
  monotonic: () => millis(0),
};

const lockForTrial = (depot: ControlState): void =>
  depot.lock(bay, new CommissioningLock(depot.verdictOn(aCharger({ id: bay }), noon), null));

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

test("messages of every second are stored every ten seconds", () => {
  const { hears } = aCollector();
  const kept = Array.from({ length: 21 }, (_, n) => hears(n, { energyWh: 1000 + n }));
  expect(kept.flat()).toEqual(["0 energy 1000", "10 energy 1010", "20 energy 1020"]);
});

test("the register is stored on both sides of an interval edge", () => {
  const { hears } = aCollector([second(5)]);
  const kept = Array.from({ length: 9 }, (_, n) => hears(n, { energyWh: 1000 + n }));
  expect(kept.flat()).toEqual(["0 energy 1000", "4 energy 1004", "5 energy 1005"]);
});

test("every value is stored on both sides of an edge, also if published separately", () => {
  const { hears } = aCollector([second(5)]);
  const kept = Array.from({ length: 9 }, (_, n) => [
    hears(n, { powerW: 4000 + n }),
    hears(n + 0.01, { energyWh: 1000 + n }),
  ]);
  expect(kept.flat(2)).toEqual([
    "0 power 4000",
    "0.01 energy 1000",
    "4 power 4004",
    "5 power 4005",
    "4.01 energy 1004",
    "5.01 energy 1005",
  ]);
});

test("a reading carries the command in force, if that was sent", () => {
  const { depot, hears } = aCollector();
  depot.commands.record(record());
  expect(hears(0, { powerW: 1 })).toEqual(["0 power 1", '0 setpoint {"kind":"current","amperes":16}']);
  const [planned, observed] = [aCollector(), aCollector()];
  planned.depot.commands.record(record({ sentAt: null }));
  observed.depot.commands.record(record({ progress: "observed" }));
  expect([planned.hears(0, { powerW: 1 }), observed.hears(0, { powerW: 1 })]).toEqual([
    ["0 power 1"],
    ["0 power 1"],
  ]);
});

test("commands of a charger without telemetry are stored once a minute", () => {
  const { collect } = aCollector();
  const { command } = record();
  const kept = [0, 20, 40, 60].map((seconds) => collect.handleCommand(command, second(seconds)).length);
  expect(kept).toEqual([1, 0, 0, 1]);
});

test("a charger whose clock is minutes behind gets our time", () => {
  const { collect } = aCollector();
  const said = (seconds: number, lag: number, energyWh: number, snapshot = false): readonly string[] =>
    inWords(
      collect.handleMessage(
        {
          kind: "telemetry",
          charger: bay,
          telemetry: { at: second(seconds - lag), energyWh },
          ...(snapshot ? { snapshot } : {}),
        },
        second(seconds),
      ),
    );
  expect(said(0, 3600, 900, true)).toEqual(["-3600 energy 900"]);
  expect(said(0, 8 * 86_400, 800, true)).toEqual([]);
  expect([said(5, 300, 1000), said(15, 300, 1010)]).toEqual([[], ["5 energy 1000", "15 energy 1010"]]);
  expect(said(26, 301, 1020)).toEqual(["25 energy 1020"]);
});

test("readings buffered while offline keep the charger's time", () => {
  const { collect } = aCollector();
  const said = (seconds: number, lag: number, energyWh: number): readonly string[] =>
    inWords(
      collect.handleMessage(
        { kind: "telemetry", charger: bay, telemetry: { at: second(seconds - lag), energyWh } },
        second(seconds),
      ),
    );
  const kept = [said(0, 0, 1000), said(600, 580, 1020), said(600, 560, 1040), said(610, 0, 1600)];
  expect(kept.flat()).toEqual(["0 energy 1000", "20 energy 1020", "40 energy 1040", "610 energy 1600"]);
});

test.each<readonly [string, readonly (readonly [Partial<Telemetry>, string | null])[]]>([
  [
    "its own words tell it",
    [
      [{ vehicle: "veh-214" }, "veh-214"],
      [{}, "veh-214"],
      [{ vehicle: null }, null],
      [{ vehicle: "somebody's" }, null],
      [{ vehicle: "veh-9" }, "veh-9"],
      [{}, "veh-9"],
    ],
  ],
  [
    "those before the buffer tell it",
    [
      [{}, "veh-214"],
      [{}, "veh-214"],
      [{}, "veh-214"],
    ],
  ],
])(
  "buffered readings belong to the vehicle that was there then, not to the present one: %s",
  (_by, words) => {
    const vehicles = ["veh-214", "veh-9"].map((id) => aVehicle({ id, charger: null }));
    const depot = aPicture({ vehicles });
    const collect = new ReadingCollector(depot, QUIET);
    const heard = (at: number, seconds: number, more: Partial<Telemetry>) => {
      const telemetry = { at: second(at), energyWh: 1000 + at, ...more };
      return collect.handleMessage({ kind: "telemetry", charger: bay, telemetry }, second(seconds));
    };
    depot.occupancy.note(bay, { at: noon, vehicle: "veh-214" }, noon);
    heard(0, 0, {});
    // All that comes in one turn is taken in before any of it is kept.
    depot.occupancy.note(bay, { at: second(900), vehicle: "veh-9" }, second(900));
    const kept = words.flatMap(([more], n) => heard(100 * (n + 1), 900, more));
    expect(kept.map(({ vehicle }) => vehicle)).toEqual(words.map(([, vehicle]) => vehicle));
  },
);

test("a retained message belongs to the vehicle that it names", () => {
  const depot = aPicture();
  const collect = new ReadingCollector(depot, QUIET);
  const telemetry = { at: second(0), powerW: 0, vehicle: "somebody's" };
  const [kept] = collect.handleMessage(
    { kind: "telemetry", charger: bay, telemetry, snapshot: true },
    second(900),
  );
  expect(kept).toMatchObject({ kind: "power", vehicle: null });
});

test("a charger that keeps flipping its state fills neither disk nor memory (F95)", () => {
  const { hears } = aCollector();
  const kept = Array.from({ length: 590 }, (_, n) =>
    hears(n / 10, { state: n % 2 === 0 ? "charging" : "paused" }),
  );
  expect(kept.flat()).toHaveLength(120);
  expect(hears(60, { state: "finished" })).toHaveLength(1);
});

test("a buffer published at once is stored whole", () => {
  const { collect } = aCollector();
  const kept = Array.from({ length: 360 }, (_, n) => {
    const telemetry = { at: second(n * 10), energyWh: 1000 + n };
    const now = n === 0 ? noon : instant(second(3600) + n * 40);
    return collect.handleMessage({ kind: "telemetry", charger: bay, telemetry }, now);
  });
  expect(kept.flat()).toHaveLength(360);
});

const told = (seconds: number): string => `${seconds} setpoint {"kind":"current","amperes":16}`;

test("the command in force is stored repeatedly until its end, also for a silent charger without refreshes", () => {
  const { collect, depot, upheld } = aCollector([], { refresh: null });
  const { command } = record();
  depot.commands.record(record({ command: { ...command, until: second(1000) } }));
  collect.handleCommand(command, noon);
  expect([90, 100, 130, 200, 999, 1000].map(upheld)).toEqual([
    [],
    [told(100)],
    [],
    [told(200)],
    [told(999)],
    [],
  ]);
});

test("a refreshed command is in force until its lease ends", () => {
  const { depot, upheld } = aCollector();
  depot.commands.record(record({ sentAt: second(100) }));
  expect([250, 279].map(upheld)).toEqual([[told(250)], []]);
  depot.commands.record(record({ sentAt: second(100) }));
  expect(upheld(380)).toEqual([]);
});

test.each<readonly [string, Partial<CommandRecord>, (collector: ReturnType<typeof aCollector>) => void]>([
  ["was let go", { command: { ...record().command, desired: { kind: "release" } } }, () => {}],
  ["was told nothing yet", { sentAt: null }, () => {}],
  ["was only watched", { progress: "observed" }, () => {}],
  ["is not ours any more", { command: { ...record().command, charger: chargerId("bay-99") } }, () => {}],
  ["is being commissioned", {}, ({ depot }) => lockForTrial(depot)],
  ["is offline", {}, ({ isOnline }) => isOnline(false, 0)],
  ["is silent for so long that it is unreachable", {}, ({ depot }) => fallen(depot)],
  ["is behind a broker that is away", {}, ({ isLinked }) => (isLinked.value = false)],
])("no level in force is reported for a charger that %s", (_why, changes, befalls) => {
  const collecting = aCollector();
  const standing = record(changes);
  collecting.depot.commands.record(standing);
  befalls(collecting);
  expect(collecting.upheld(100)).toEqual([]);
});

test("other messages, and those of unknown chargers, give no reading", () => {
  const { collect, hears } = aCollector();
  expect(hears(0, { powerW: 1 }, chargerId("bay-99"))).toEqual([]);
  const online = { kind: "online", charger: bay, online: true, snapshot: false } as const;
  expect(collect.handleMessage(online, noon)).toEqual([]);
});

test("the last values of an online charger that reports changes only are stored repeatedly", () => {
  const { hears, isOnline, upheld } = aCollector();
  isOnline(true, 0);
  hears(0, { powerW: 6000, soc: 50, energyWh: 1000 });
  hears(3, { powerW: 6030 });
  expect([upheld(90), upheld(103), upheld(110)]).toEqual([[], ["103 power 6030", "103 soc 50"], []]);
  // The register does not stand still while 6 kW flow.
  expect(hears(150, { powerW: 0 })).toEqual(["150 power 0"]);
  expect(upheld(250)).toEqual(["250 power 0", "250 soc 50"]);
  hears(260, { energyWh: 1200 });
  expect(upheld(360)).toEqual(["360 power 0", "360 energy 1200", "360 soc 50"]);
});

test("any message, an acknowledgement included, confirms the last values", () => {
  const { hears, answers } = aCollector();
  hears(0, { powerW: 6000, state: "charging" });
  expect(hears(60, { soc: 50 })).toEqual(["60 soc 50"]);
  expect(hears(120, { soc: 51 })).toEqual(["120 soc 51", "120 power 6000", '120 state "charging"']);
  expect(answers(150)).toEqual([]);
  expect(answers(230)).toEqual(["230 power 6000", '230 state "charging"', "230 soc 51"]);
});

test("a repeated value keeps the charger's clock, so that its next reading is newer", () => {
  const { hears, isOnline, upheld } = aCollector();
  isOnline(true, 0);
  hears(20, { at: second(0), powerW: 6000 });
  expect(upheld(120)).toEqual(["100 power 6000"]);
});

test("buffered values neither replace live ones nor are repeated", () => {
  const { hears, isOnline, upheld } = aCollector();
  isOnline(true, 0);
  hears(600, { powerW: 0 });
  const late = [100, 200, 300, 400].map((at, n) =>
    hears(600 + 30 * n, { at: second(at), powerW: 6000, soc: 50 + n }),
  );
  expect(late.slice(1).flat()).toEqual(
    [100, 200, 300, 400].flatMap((at, n) => [`${at} power 6000`, `${at} soc ${50 + n}`]),
  );
  expect(upheld(800)).toEqual(["800 power 0"]);
});

/** What is upheld where the power ended so long after the register was told. */
function stoppedAfter(pause: number): readonly string[] {
  const { hears, isOnline, upheld } = aCollector();
  isOnline(true, 0);
  hears(0, { powerW: 6000 });
  hears(20, { energyWh: 1000 });
  hears(20 + pause, { powerW: 0 });
  return upheld(200);
}

test("a register still holds if the end of power is published shortly after it", () => {
  expect(stoppedAfter(10)).toEqual(["200 power 0", "200 energy 1000"]);
  expect(stoppedAfter(11)).toEqual(["200 power 0"]);
});

test.each([3600, -3600])(
  "a clock set by %d s puts neither readings of a charger nor its commands in doubt",
  (by) => {
    const { clock, collect, depot, hears, isOnline, upheld } = aCollector([], { refresh: null });
    depot.commands.record(record());
    isOnline(true, 0);
    hears(0, { powerW: 6000 });
    collect.handleCommand(record().command, noon);
    hears(50, { powerW: 0, energyWh: 1000 });
    clock.ahead = by;
    hears(100, { soc: 50 });
    expect(upheld(210)).toEqual(
      ['setpoint {"kind":"current","amperes":16}', "power 0", "energy 1000", "soc 50"].map(
        (words) => `${by + 210} ${words}`,
      ),
    );
  },
);

test.each<readonly [string, (collector: ReturnType<typeof aCollector>) => void]>([
  ["is offline", ({ isOnline }) => isOnline(false, 50)],
  ["went and came back", ({ isOnline }) => [false, true].forEach((online) => isOnline(online, 50))],
  [
    "has lost what it knew",
    ({ collect }) => collect.handleMessage({ kind: "forgot", charger: bay }, second(50)),
  ],
  [
    "never said that it is online",
    ({ depot }) => depot.presence.update(bay, { online: null, heardAt: null }),
  ],
  ["is silent for so long that it is unreachable", ({ depot }) => fallen(depot)],
  ["is behind a broker that is away", ({ isLinked }) => (isLinked.value = false)],
  ["was behind a broker that was away", ({ collect }) => collect.brokerReturned("")],
  [
    "has another vehicle on it",
    ({ depot }) => depot.occupancy.note(bay, { at: second(50), vehicle: "veh-9" }, second(50)),
  ],
])("no last value is repeated for a charger that %s", (_why, befalls) => {
  const collecting = aCollector();
  collecting.isOnline(true, 0);
  collecting.hears(0, { powerW: 6000 });
  befalls(collecting);
  expect(collecting.upheld(200)).toEqual([]);
});

function fallen({ silence }: ControlState): void {
  silence.noteMessage(bay, millis(0));
  silence.newlySilent(minutes(10), minutes(5), () => true);
}

test("a message after a long silence does not confirm earlier values", () => {
  const { hears, answers } = aCollector();
  hears(0, { powerW: 6000 });
  expect(answers(301)).toEqual([]);
  expect(hears(310, { soc: 50 })).toEqual(["310 soc 50"]);
});

test("a malformed message is not stored and confirms nothing", () => {
  const { collect, hears } = aCollector();
  hears(0, { powerW: 6000 });
  expect(collect.handleMessage({ kind: "malformed", charger: bay, reason: "not JSON" }, second(200))).toEqual(
    [],
  );
});

test("the register is stored next to the start and the end of a dispatch, however short it is", () => {
  const { depot, hears } = aCollector();
  const event = anEvent({ start: second(13), duration: seconds(4), randomizeStart: millis(0) });
  depot.schedule.put(live(event), noon);
  const kept = Array.from({ length: 21 }, (_, n) => hears(n, { energyWh: 1000 + n })).flat();
  expect(kept.map((words) => words.split(" ")[0])).toEqual(
    ["0", "10", "12", "13", "16", "17", "20"].slice(0, 6),
  );
});
