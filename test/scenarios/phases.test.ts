import { expect, test } from "vitest";

import { minutes, seconds } from "../../src/domain/units.ts";
import { aDepot } from "../support/aDepot.ts";
import type { TestDepot } from "../support/testDepot.ts";

const switchable = () =>
  aDepot()
    .withVehicle("v1", "bay-01")
    .equippedWith({ phaseSwitching: { every: minutes(15), settle: seconds(10), deadTime: seconds(60) } })
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, kilowatts: 11, priority: 5 })
    .withEvent({ id: "EV-2", start: "08:10", minutes: 30, kilowatts: 2.3, priority: 1 });

const untimed = (line: string): string => line.slice("08:00:00.000 ".length);

test("too little for three phases: paused at once, switched, charging on one, back on three, and released", async () => {
  const depot = await switchable().running();
  await depot.until("09:01");
  expect(depot.timedCommands()).toEqual([
    "08:00:00.000 bay-01 11000 W",
    "08:10:00.000 bay-01 pause",
    "08:10:10.005 bay-01 pause on 1 phase",
    "08:11:10.010 bay-01 10 A on 1 phase",
    "08:40:00.000 bay-01 pause on 1 phase",
    "08:40:10.005 bay-01 pause on 3 phases",
    "08:41:10.010 bay-01 11000 W on 3 phases",
    "09:00:00.000 bay-01 release",
  ]);
  expect(depot.audit("decision")).toEqual([
    expect.stringContaining("to 11 kW until"),
    expect.stringMatching(/paused until .*on 1 phase; .*paused to be switched to 1 phase; overrules EV-1$/),
    expect.stringMatching(/paused until .*paused to be switched to 1 phase; overrules EV-1$/),
    expect.stringMatching(/to 10 A on 1 phase until .*2\.3 kW asked, less than three phases can: on 1 phase/),
    expect.stringMatching(/paused until .*EV-1 priority 5; paused to be switched to 3 phases$/),
    expect.stringMatching(/paused until .*EV-1 priority 5; paused to be switched to 3 phases$/),
    expect.stringContaining("to 11 kW on 3 phases until"),
    expect.stringContaining("released"),
  ]);
});

test("a restart in the middle of a switch goes on where it was", async () => {
  const depot = await switchable().running();
  await depot.until("08:10:05");
  depot.forget();
  await depot.restart();
  await depot.until("08:10:30");
  expect(depot.timedCommands().map(untimed)).toEqual(["bay-01 pause on 1 phase"]);
  depot.forget();
  await depot.restart();
  await depot.until("08:12");
  expect(depot.timedCommands().map(untimed)).toEqual(["bay-01 10 A on 1 phase"]);
});

test.each([
  [
    "broker",
    async (depot: TestDepot) => depot.brokerGoes(),
    async (depot: TestDepot) => depot.brokerReturns(),
  ],
  [
    "charger",
    (depot: TestDepot) => depot.online("bay-01", false),
    (depot: TestDepot) => depot.online("bay-01", true),
  ],
])(
  "a switch that waits for the %s is still to come, and its dead time after it",
  async (_, goes, returns) => {
    const depot = await switchable().running();
    await depot.until("08:10:05");
    await goes(depot);
    await depot.until("08:12:30");
    depot.forget();
    await returns(depot);
    await depot.until("08:15");
    const [[first = ""] = [], levels] = [
      depot.timedCommands().filter((words) => words.endsWith("pause on 1 phase")),
      depot.timedCommands().filter((words) => words.endsWith("10 A on 1 phase")),
    ].map((words) => words.map((each) => each.slice(0, 8)));
    expect(first).toMatch(/^08:12:3/);
    expect(levels).toEqual([first.replace("08:12", "08:13")]);
  },
);

test("a switch that waits for the broker over a restart is still to come", async () => {
  const depot = await switchable().running();
  await depot.until("08:10:05");
  depot.brokerGoes();
  await depot.until("08:10:30");
  depot.forget();
  await depot.restart();
  await depot.until("08:13");
  expect(depot.timedCommands().map(untimed)).toEqual(["bay-01 pause on 1 phase", "bay-01 10 A on 1 phase"]);
});

test.each([60, 40, 5])(
  "the dead time ends however often the lease is refreshed: each %i s",
  async (refresh) => {
    const depot = await switchable()
      .equippedWith({
        refresh: seconds(refresh),
        phaseSwitching: { every: minutes(5), settle: seconds(10), deadTime: seconds(60) },
      })
      .running();
    await depot.until("08:30");
    expect(depot.commands().at(-1)).toBe("bay-01 10 A on 1 phase");
  },
);

test("a switch that was decided anew before it went out has its dead time", async () => {
  const depot = await switchable().running();
  await depot.until("08:10:15");
  await depot.online("bay-01", false);
  await depot.until("08:10:40");
  await depot.deliver({ id: "EV-3", start: "08:10:30", minutes: 30, kilowatts: 2.2, priority: 0 });
  await depot.until("08:12:30");
  depot.forget();
  await depot.online("bay-01", true);
  await depot.until("08:15");
  expect(depot.commands().at(-1)).toBe("bay-01 9.5 A on 1 phase");
});

test("an operator's release is at once, and gives all phases back in its own format", async () => {
  const depot = await switchable().running();
  await depot.until("08:15");
  await depot.free("bay-01");
  await depot.until("08:15:01");
  expect(depot.timedCommands().at(-1)).toMatch(/bay-01 release$/);
});

test("paused by our own stop it is still on one phase, and known to be", async () => {
  const depot = await switchable().withControl({ onStop: "pause" }).running();
  await depot.until("08:15");
  depot.forget();
  await depot.restart();
  expect(depot.timedCommands().map(untimed)).toEqual(["bay-01 pause on 1 phase", "bay-01 10 A on 1 phase"]);
});
