import { expect, test, vi } from "vitest";

import { runToEnd } from "../../../src/platform/cooperative.ts";
import { aDepot } from "../../support/aDepot.ts";
import { advance } from "../../../src/control/schedule/advance.ts";
import { chargerId, millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import { aCharger, aVehicle } from "../../support/aCharger.ts";
import { anEvent, at, live, targetsOf } from "../../support/anEvent.ts";
import { aPicture, rememberedOf } from "../../support/aPicture.ts";

test("windows that passed while the daemon was down are recorded as missed and never fired late", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 30, amperes: 10 })
    .withEvent({ id: "EV-2", start: "12:00", minutes: 30, amperes: 12 })
    .running();
  await depot.stop();
  await depot.until("09:00");
  depot.start();
  await depot.until("13:00");
  expect(depot.timedCommands()).toEqual(["12:00:00.000 bay-01 12 A", "12:30:00.000 bay-01 release"]);
  expect(depot.audit("missed")).toEqual([
    "v1 missed event EV-1, 08:00:00 to 08:30:00: the daemon did not evaluate in that time",
  ]);
});

test("a window that began before the daemon may start events is missed after a crash, whatever the crashed run evaluated", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.stop();
  await depot.until("08:30");
  depot.partner.answers = "silent";
  depot.start();
  await depot.until("08:30:05");
  await depot.stop();
  await depot.until("09:30");
  depot.start();
  await depot.until("10:00");
  expect(depot.commands()).toEqual([]);
  expect(depot.audit("missed")).toEqual([
    "v1 missed event EV-1, 08:00:00 to 09:00:00: the daemon did not evaluate in that time",
  ]);
});

test("a window that ends before the daemon may start events is recorded as missed once, also after a crash", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 31, amperes: 10 })
    .running();
  await depot.stop();
  await depot.until("08:30:55");
  depot.partner.answers = "silent";
  depot.start();
  await depot.until("08:31:02");
  await depot.stop();
  depot.start();
  await depot.until("09:00");
  expect(depot.audit("missed")).toEqual([
    expect.stringMatching(/^v1 missed event EV-1, 08:00:00 to 08:31:00: /),
  ]);
});

test("a window that is still open after the daemon was down is acted on for the rest of it", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.stop();
  await depot.until("08:40");
  depot.start();
  await depot.until("10:00");
  expect(depot.timedCommands()).toEqual(["08:40:00.051 bay-01 10 A", "09:00:00.000 bay-01 release"]);
  expect(depot.audit("missed")).toEqual([]);
});

test("an event that ended while the daemon was down is released at the next start", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:30");
  await depot.stop();
  await depot.until("09:30");
  depot.forget();
  depot.start();
  await depot.until("10:00");
  expect(depot.timedCommands()).toEqual(["09:30:00.001 bay-01 release"]);
  expect(depot.audit("missed")).toEqual([]);
});

test("a clock that jumps over a window leaves it missed, not fired late (F20)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .running();
  vi.setSystemTime(Date.parse("2026-11-21T11:00:00Z"));
  await depot.until("11:05");
  expect(depot.commands()).toEqual([]);
  expect(depot.audit("missed")).toHaveLength(1);
  expect(depot.audit("daemon").at(-1)).toMatch(
    /^the clock of this machine was set forward by \d+(\.\d+)? s: every charger is evaluated again$/,
  );
});

test("a clock that is set back ends events that no longer apply, and starts none twice (F21)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .running();
  await depot.until("08:10");
  vi.setSystemTime(Date.parse("2026-11-21T07:55:00Z"));
  await depot.until("07:57");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
  await depot.until("09:00");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release", "bay-01 10 A", "bay-01 release"]);
  expect(depot.audit("daemon").filter((words) => words.includes("set back by"))).toHaveLength(1);
});

test("F21: a window that was acted on is not missed because its event changed while the clock was back", async () => {
  const event = { id: "EV-1", start: "08:00", minutes: 30 };
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ ...event, amperes: 10 })
    .running();
  await depot.until("08:10");
  vi.setSystemTime(Date.parse("2026-11-21T05:00:00Z"));
  await depot.until("05:05");
  await depot.deliver({ ...event, amperes: 16, revision: 2 });
  vi.setSystemTime(Date.parse("2026-11-21T09:00:00Z"));
  await depot.until("09:05");
  expect(depot.audit("missed")).toEqual([]);
});

test.each(["running on", "started again"])(
  "F21: a revision replaced while the clock was ahead does not come back when its successor ends: %s",
  async (then) => {
    const event = { id: "EV-1", start: "06:00" };
    const depot = await aDepot()
      .withVehicle("v1", "bay-01")
      .withEvent({ ...event, minutes: 180, amperes: 10 })
      .running();
    await depot.until("06:30");
    vi.setSystemTime(Date.parse("2026-11-21T07:15:00Z"));
    await depot.until("07:16");
    await depot.deliver({ ...event, minutes: 60, amperes: 8, revision: 2 });
    await depot.until("07:17");
    vi.setSystemTime(Date.parse("2026-11-21T06:32:00Z"));
    await depot.until("06:35");
    if (then === "started again") await depot.restart();
    await depot.until("09:30");
    const toTheMinute = depot.timedCommands().map((words) => words.replace(/:\d\d\.\d{3}/, ""));
    expect(toTheMinute.slice(1)).toEqual([
      "07:16 bay-01 release",
      "06:32 bay-01 8 A",
      "07:00 bay-01 release",
    ]);
  },
);

test("F21: a clock that was ahead for a while has not used up the windows that it passed", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("07:00");
  vi.setSystemTime(Date.parse("2026-11-21T10:00:00Z"));
  await depot.until("10:02");
  expect(depot.audit("missed")).toHaveLength(1);
  vi.setSystemTime(Date.parse("2026-11-21T07:02:00Z"));
  await depot.until("10:00");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 10 A", "09:00:00.000 bay-01 release"]);
});

test("F21: a clock that was set back is noticed within a minute, however often chargers speak", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 60, amperes: 10 })
    .running();
  await depot.until("08:10");
  vi.setSystemTime(Date.parse("2026-11-21T07:00:00Z"));
  for (let seconds = 0; seconds < 80; seconds += 20) {
    await depot.telemetry("bay-01", { powerW: 5000 });
    await depot.passes(20_000);
  }
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
});

test("an event 30 days ahead starts on time, not when a timer overflows (F26)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .pollingEvery("1h")
    .withEvent({ start: "2026-12-21T08:00:00Z", minutes: 10, amperes: 10 })
    .running();
  await depot.until("2026-12-21T09:00:00Z");
  expect(depot.timedCommands()).toEqual([
    "2026-12-21T08:00:00.000Z bay-01 10 A",
    "2026-12-21T08:10:00.000Z bay-01 release",
  ]);
});

test("a targeted vehicle that is at no charger is recorded once, and joins when it is plugged in", async () => {
  const depot = await aDepot()
    .withVehicle("v1", null)
    .withCharger("bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("08:20");
  expect(depot.commands()).toEqual([]);
  expect(depot.audit("missed")).toEqual(["v1 is at no charger: event EV-1 cannot be applied to it"]);
  await depot.telemetry("bay-01", { state: "connected", vehicle: vehicleId("v1") });
  await depot.until("08:30");
  expect(depot.timedCommands()).toEqual(["08:20:00.001 bay-01 10 A"]);
  expect(depot.audit("missed")).toHaveLength(1);
});

test("an event that came late and was acted on is not recorded as missed", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.until("08:00:40");
  await depot.deliver({ start: "08:00:20", minutes: 1, amperes: 10 });
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
  expect(depot.audit("missed")).toEqual([]);
});

test("an event that is withdrawn and comes back too late is missed from its return on, not from its start", async () => {
  const event = { id: "EV-1", start: "08:00", minutes: 60, amperes: 10 };
  const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(event).running();
  await depot.until("08:20");
  await depot.withdraw("EV-1", 2);
  await depot.until("08:59:55");
  // No new start within ten seconds of a restart while the partner's list does not answer.
  depot.partner.answers = "silent";
  await depot.restart();
  await depot.until("08:59:58");
  await depot.deliver({ ...event, revision: 3 });
  await depot.until("09:10");
  expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
  expect(depot.audit("missed")).toEqual([
    "v1 missed event EV-1, 08:59:58 to 09:00:00: the event arrived too late, or new starts were not allowed in that time",
  ]);
});

test("a loser that started and ended while the daemon ran is not recorded as missed after a restart", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 180, amperes: 10, priority: 1 })
    .withEvent({ id: "EV-2", start: "08:30", minutes: 30, amperes: 16, priority: 5 })
    .running();
  await depot.until("09:30");
  await depot.restart();
  await depot.until("12:00");
  expect(depot.audit("missed")).toEqual([]);
});

test("F05: a vehicle that is at no charger is recorded as soon as the disk accepts it, and once", async () => {
  const depot = await aDepot()
    .withVehicle("v1", null)
    .withVehicle("v2", null)
    .withCharger("bay-01")
    .withEvent({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10, vehicles: ["v1"] })
    .withEvent({ id: "EV-2", start: "08:10", minutes: 60, amperes: 10, vehicles: ["v2"] })
    .running();
  await depot.until("08:09:50");
  expect(depot.audit("missed")).toHaveLength(1);
  depot.disk.full = true;
  await depot.until("08:10:30");
  depot.disk.full = false;
  await depot.until("09:30");
  expect(depot.audit("missed")).toEqual([
    "v1 is at no charger: event EV-1 cannot be applied to it",
    "v2 is at no charger: event EV-2 cannot be applied to it",
  ]);
});

test("starts and missed windows that are handled in parts are the same as those handled at once", () => {
  const ids = ["v1", "v2", "v3"];
  const picture = () => {
    const depot = aPicture({
      chargers: ids.map((id) => aCharger({ id: `on-${id}` })),
      vehicles: ids.map((id) => aVehicle({ id: vehicleId(id), charger: chargerId(`on-${id}`) })),
    });
    runToEnd(depot.restoring(rememberedOf({ evaluatedAt: at("05:00") }), at("05:00")));
    const short = {
      ...anEvent({ randomizeStart: millis(0), targets: targetsOf(...ids) }),
      duration: minutes(1),
    };
    depot.schedule.put(live(short), at("05:00"));
    return depot;
  };
  const [whole, parts] = [picture(), picture()];
  const atOnce = advance(whole, at("23:00"));
  expect(atOnce.missed).toHaveLength(3);
  const first = advance(parts, at("23:00"), 1);
  const rest = [advance(parts, at("23:00"), 1), advance(parts, at("23:00"), 1)];
  expect([first, ...rest].map(({ isComplete }) => isComplete)).toEqual([false, false, true]);
  const rows = [first, ...rest].flatMap(({ missed }) => missed);
  expect(rows).toEqual(atOnce.missed);
  expect(parts.schedule.evaluatedAt).toBe(at("23:00"));
});

const SHORT = { id: "EV-2", start: "08:30", minutes: 60, amperes: 16, priority: 5 };
const missedFrom = (from: RegExp, until: string) => [
  expect.stringMatching(new RegExp(`^v1 missed event EV-2, ${from.source} to ${until}: `)),
];
const RETURN = /09:00:\d\d/;

test.for([
  { of: "changed", first: SHORT, changes: [{ amperes: 20 }], missed: [] },
  { of: "changed twice", first: SHORT, changes: [{ amperes: 20 }, { amperes: 12 }], missed: [] },
  { of: "moved", first: SHORT, changes: [{ start: "08:40" }], missed: missedFrom(RETURN, "09:40:00") },
  { of: "new", first: null, changes: [{}], missed: missedFrom(RETURN, "09:30:00") },
  {
    of: "new and changed",
    first: null,
    changes: [{}, { amperes: 20 }],
    missed: missedFrom(RETURN, "09:30:00"),
  },
  { of: "withdrawn and back", first: SHORT, changes: [null, {}], missed: missedFrom(RETURN, "09:30:00") },
] as const)(
  "an event that lost is $of while nothing may start, and the process is down from then on until it is over",
  async ({ first, changes, missed }) => {
    const long = { id: "EV-1", start: "08:00", minutes: 240, amperes: 10, priority: 1 };
    const builder = aDepot().withVehicle("v1", "bay-01").withEvent(long);
    if (first !== null) builder.withEvent(first);
    const depot = await builder.running();
    await depot.until("09:00");
    depot.partner.answers = "silent";
    await depot.restart();
    for (const [index, change] of changes.entries())
      if (change === null) await depot.withdraw(SHORT.id, index + 2);
      else await depot.deliver({ ...SHORT, ...change, revision: index + 2 });
    await depot.stop();
    await depot.until("10:00");
    depot.start();
    await depot.until("11:00");
    expect(depot.audit("missed")).toEqual(missed);
  },
);

test("5.8: a window that a hold overrules is not missed because its event changed while nothing may start, and the process ended then", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(SHORT).running();
  await depot.until("08:50");
  await depot.hold({
    kind: "level",
    level: { currentA: 8 },
    scope: { vehicle: "v1" },
    until: { at: "2026-11-21T12:00:00Z" },
    reason: "leaves early",
  });
  await depot.until("09:00");
  depot.partner.answers = "silent";
  await depot.restart();
  await depot.deliver({ ...SHORT, amperes: 20, revision: 2 });
  await depot.stop();
  await depot.until("10:00");
  depot.start();
  await depot.until("11:00");
  expect(depot.commands().slice(0, 2)).toEqual(["bay-01 16 A", "bay-01 8 A"]);
  expect(depot.audit("missed")).toEqual([]);
});

const LEVEL = {
  kind: "level",
  level: { currentA: 8 },
  scope: { vehicle: "v1" },
  until: { at: "2026-11-21T12:00:00Z" },
  reason: "leaves early",
} as const;

test("5.8: a window that a hold overruled is not missed because its start was edited while nothing may start, and the process ended then", async () => {
  const event = { id: "EV-1", start: "08:00", minutes: 60, amperes: 10 };
  const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(event).running();
  await depot.until("08:30");
  depot.partner.answers = "silent";
  await depot.restart();
  await depot.deliver({ ...event, start: "08:05", revision: 2 });
  await depot.hold(LEVEL);
  await depot.stop();
  await depot.until("10:00");
  depot.start();
  await depot.until("11:00");
  expect(depot.audit("decision").at(-1)).toMatch(/; overrules EV-1$/);
  expect(depot.audit("missed")).toEqual([]);
});

test("5.8: an event that came after the last decision of a hold, before the process ended, is missed", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.until("08:30");
  depot.partner.answers = "silent";
  await depot.restart();
  await depot.hold(LEVEL);
  await depot.deliver({ id: "EV-1", start: "08:00", minutes: 60, amperes: 10 });
  await depot.stop();
  await depot.until("10:00");
  depot.start();
  await depot.until("11:00");
  expect(depot.audit("missed")).toEqual([
    expect.stringMatching(/^v1 missed event EV-1, 08:30:01 to 09:00:00/),
  ]);
});

test("F20: an event that lost is not missed because it was edited twice while nothing may start, with a clock that jumped between", async () => {
  const long = { id: "EV-1", start: "08:00", minutes: 240, amperes: 10, priority: 1 };
  const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(long).withEvent(SHORT).running();
  await depot.until("08:40");
  depot.partner.answers = "silent";
  await depot.restart();
  await depot.deliver({ ...SHORT, amperes: 20, revision: 2 });
  vi.setSystemTime(Date.parse("2026-11-21T08:55:00Z"));
  await depot.until("08:55:02");
  await depot.deliver({ ...SHORT, amperes: 12, revision: 3 });
  await depot.stop();
  await depot.until("10:00");
  depot.start();
  await depot.until("11:00");
  expect(depot.audit("missed")).toEqual([]);
});

test.each(["the event that goes on", "a hold"])(
  "a window that lost to %s while nothing may start is not missed",
  async (winner) => {
    const long = { id: "EV-1", start: "08:00", minutes: 240, amperes: 10, priority: 1 };
    const builder = aDepot().withVehicle("v1", "bay-01");
    const depot = await (winner === "a hold" ? builder : builder.withEvent(long)).running();
    await depot.until("08:59:50");
    depot.partner.answers = "silent";
    await depot.restart();
    await depot.deliver({ ...SHORT, minutes: 30 });
    if (winner === "a hold") await depot.hold(LEVEL);
    await depot.until("09:30");
    expect(depot.audit("missed")).toEqual([]);
  },
);

test.each([
  { of: "end", edit: { minutes: 60 } },
  { of: "start", edit: { start: "08:05" } },
])(
  "F05: a window that was never acted on is missed although an edit of its $of could not be stored",
  async ({ edit }) => {
    const event = { id: "EV-1", start: "08:00", minutes: 31, amperes: 10 };
    const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(event).running();
    await depot.stop();
    await depot.until("08:30:54");
    depot.partner.answers = "silent";
    depot.start();
    await depot.passes(1000);
    depot.disk.full = true;
    expect(await depot.deliver({ ...event, ...edit, revision: 2 })).toMatchObject({ kind: "refused" });
    depot.has(event);
    depot.disk.full = false;
    await depot.until("09:30");
    expect(depot.commands()).toEqual([]);
    expect(depot.audit("missed")).toEqual([
      expect.stringMatching(/^v1 missed event EV-1, 08:00:00 to 08:31:00: /),
    ]);
  },
);

test.each([
  { of: "end", edit: { minutes: 90 } },
  { of: "start", edit: { start: "08:05" } },
])(
  "F05: a window that was acted on is not missed because an edit of its $of could not be stored while nothing may start",
  async ({ edit }) => {
    const event = { id: "EV-1", start: "08:00", minutes: 60, amperes: 10 };
    const depot = await aDepot().withVehicle("v1", "bay-01").withEvent(event).running();
    await depot.until("08:59:50");
    depot.partner.answers = "silent";
    await depot.restart();
    depot.disk.full = true;
    expect(await depot.deliver({ ...event, ...edit, revision: 2 })).toMatchObject({ kind: "refused" });
    depot.has(event);
    depot.disk.full = false;
    await depot.until("09:30");
    expect(depot.commands()).toEqual(["bay-01 10 A", "bay-01 release"]);
    expect(depot.audit("missed")).toEqual([]);
  },
);
