import { expect, test, vi } from "vitest";

import { SqliteReads } from "../../src/store/sqlite/reads.ts";
import { millis, minutes } from "../../src/domain/units.ts";
import { aDepot } from "../support/aDepot.ts";
import type { TestDepot } from "../support/testDepot.ts";

const USAGE = { payloadType: "USAGE", readingType: "DIRECT_READ" };
const DEMAND = { payloadType: "DEMAND", readingType: "MEAN", aggregate: true };

/** Each charger meters an even 6 kW (100 Wh a minute) until then. */
async function charging(depot: TestDepot, until: string, chargers: readonly string[]): Promise<void> {
  const end = Date.parse(`2026-11-21T${until}Z`);
  while (Date.now() < end) {
    const energyWh = 100_000 + Math.round((Date.now() % 86_400_000) / 600);
    for (const charger of chargers)
      await depot.telemetry(charger, { state: "charging", powerW: 6000, energyWh, currentsA: [9] });
    await depot.passes(60_000 - 10 * chargers.length);
  }
}

interface Body {
  readonly reportName: string;
  readonly resources: readonly {
    readonly resourceName: string;
    readonly intervals: readonly { readonly payloads: readonly { type: string; values: unknown[] }[] }[];
  }[];
}

const bodies = (depot: TestDepot): readonly Body[] =>
  depot.partner.posted.map(({ body }) => JSON.parse(body) as Body);

/** `EV-1/0/0: v1 USAGE 6, DATA_QUALITY OK`, one line for each vehicle and interval. */
const linesOf = ({ reportName, resources }: Body): readonly string[] =>
  resources.flatMap(({ resourceName, intervals }) =>
    intervals.map(({ payloads }) => {
      const values = payloads.map(({ type, values }) => `${type} ${values.join("/")}`);
      return `${reportName}: ${resourceName} ${values.join(", ")}`;
    }),
  );

const posted = (depot: TestDepot): readonly string[] => bodies(depot).flatMap(linesOf);
const times = (depot: TestDepot): readonly string[] =>
  depot.partner.posted.map(({ at, body }) => `${at.slice(0, 8)} ${(JSON.parse(body) as Body).reportName}`);

test("an event that asks for energy and power is answered after its end, from the readings of the chargers", async () => {
  const depot = await aDepot().withVehicles(2).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 60, reports: [USAGE, DEMAND] });
  await depot.until("07:50");
  await charging(depot, "09:02", ["bay-01", "bay-02"]);
  expect(times(depot)).toEqual(["09:00:30 EV-1/0/0", "09:00:30 EV-1/1/0"]);
  expect(posted(depot)).toEqual([
    "EV-1/0/0: v1 USAGE 6, DATA_QUALITY OK",
    "EV-1/0/0: v2 USAGE 6, DATA_QUALITY OK",
    "EV-1/1/0: AGGREGATED_REPORT DEMAND 12, DATA_QUALITY OK, INCLUDED 2/2",
  ]);
  expect(depot.reports()).toEqual(["sent EV-1/1/0 2 vehicles, 12 kWh", "sent EV-1/0/0 2 vehicles, 12 kWh"]);
  expect(depot.audit("report")).toEqual([
    "report EV-1/0/0 composed: USAGE, 2 vehicles, 12 kWh, 08:00:00 to 09:00:00",
    "report EV-1/1/0 composed: DEMAND, 2 vehicles, 12 kWh, 08:00:00 to 09:00:00",
    "report EV-1/0/0 sent: 2 vehicles, 12 kWh (HTTP 201)",
    "report EV-1/1/0 sent: 2 vehicles, 12 kWh (HTTP 201)",
  ]);
});

/** What bay-01 said once, at 08:10 of an event from 08:00 to 09:00 that asks for power, and the report of it. */
async function saidOnce(during: (depot: TestDepot) => Promise<void>): Promise<readonly string[]> {
  const depot = await aDepot().withVehicles(1).withSilentChargers().reporting().running();
  await depot.deliver({ start: "08:00", minutes: 60, reports: [{ ...DEMAND, aggregate: false }] });
  await depot.until("07:59");
  await depot.online("bay-01", true);
  await depot.telemetry("bay-01", { state: "charging", powerW: 6000, soc: 40 });
  await during(depot);
  await depot.until("09:02");
  return posted(depot);
}

/** Says only what changes: its charge, percent by percent. */
async function charges(depot: TestDepot, until: string): Promise<void> {
  for (let soc = 41; Date.now() < Date.parse(`2026-11-21T${until}Z`); soc += 1) {
    await depot.passes(240_000);
    await depot.telemetry("bay-01", { soc });
  }
}

test("a charger that reports only changes has no gap while it is online: its last value holds", async () => {
  expect(await saidOnce((depot) => charges(depot, "09:01"))).toEqual([
    "EV-1/0/0: v1 DEMAND 6, DATA_QUALITY OK",
  ]);
});

test.each<readonly [string, (depot: TestDepot) => Promise<void>]>([
  ["fell silent", async () => {}],
  ["went offline", (depot) => charges(depot, "08:20").then(() => depot.online("bay-01", false))],
  [
    "was there while setpointd was not",
    async (depot) => {
      await charges(depot, "08:20");
      await depot.restart({ after: 1_200_000 });
      await charges(depot, "09:01");
    },
  ],
])("a charger that %s has a gap all the same", async (_what, during) => {
  const [report] = await saidOnce(during);
  expect(report).toContain("DATA_QUALITY MISSING");
  expect(report).toContain("gap in the readings");
});

test("the setpoints of a report are those that were sent, also while only observing sends none", async () => {
  const setpoint = { payloadType: "SETPOINT", readingType: "DIRECT_READ" };
  const wish = { start: "08:00", amperes: 10, reports: [setpoint] };
  const driven = await aDepot().withVehicles(1).reporting().running();
  await driven.deliver(wish);
  await driven.until("09:01");
  expect(posted(driven)).toEqual(["EV-1/0/0: v1 SETPOINT 10, DATA_QUALITY OK"]);
  await driven.stop();
  const observed = await aDepot().withVehicles(1).withControl({ mode: "observe" }).reporting().running();
  await observed.deliver(wish);
  await observed.until("09:01");
  expect(posted(observed)).toEqual(["EV-1/0/0: v1 DATA_QUALITY MISSING, CAUSE no setpoint"]);
});

test("a charger without telemetry, and without a new command, has its setpoint in every interval of its reports", async () => {
  const quarters = { startInterval: 0, numIntervals: 1, frequency: 1, repeat: 4, historical: true };
  const setpoint = { payloadType: "SETPOINT", readingType: "DIRECT_READ", ...quarters };
  const depot = await aDepot()
    .withVehicles(1)
    .withSilentChargers()
    .equippedWith({ refresh: null })
    .reporting()
    .running();
  await depot.deliver({ start: "08:00", minutes: 120, amperes: 10, reports: [setpoint] });
  await depot.until("10:02");
  expect(posted(depot)).toEqual([0, 1, 2, 3].map((n) => `EV-1/0/${n}: v1 SETPOINT 10, DATA_QUALITY OK`));
});

test("a vehicle that is not ours, one that left and one that did not follow are in the report with the cause", async () => {
  const depot = await aDepot().withVehicles(2).reporting().running();
  await depot.deliver({ start: "08:00", amperes: 10, vehicles: ["v1", "v2", "v9"], reports: [USAGE] });
  await charging(depot, "08:30", []);
  await depot.until("08:30");
  for (let minute = 30; minute < 62; minute += 1) {
    const energyWh = 100_000 + minute * 100;
    await depot.telemetry("bay-01", {
      state: "charging",
      powerW: 14_000,
      currentsA: [20],
      limitA: 10,
      energyWh,
    });
    await depot.telemetry("bay-02", { state: "unplugged", energyWh: 100_000 });
    await depot.passes(59_980);
  }
  const causes = posted(depot).map((line) => [line.split(" ")[1], line.split("CAUSE ")[1]]);
  expect(causes).toEqual([
    ["v1", expect.stringContaining("setpoint not followed")],
    ["v2", expect.stringContaining("vehicle absent")],
    ["v9", "vehicle not known here"],
  ]);
});

test("a type that we do not know is answered, not passed over", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 5, reports: [{ payloadType: "GHG", readingType: "MEAN" }] });
  await depot.until("08:06");
  expect(posted(depot)).toEqual(["EV-1/0/0: v1 DATA_QUALITY MISSING, CAUSE not available here"]);
});

test.each<readonly [string, object, object, string]>([
  [
    "reports are switched off",
    { enabled: false },
    { reports: [USAGE] },
    "report descriptor 0 of event EV-1: no report: reports are switched off",
  ],
  [
    "none of the vehicles is ours",
    {},
    { vehicles: ["v9"], reports: [USAGE] },
    "report descriptor 0 of event EV-1: no report: none of its targets is a vehicle of this site",
  ],
  [
    "the event has no length",
    {},
    { minutes: 0, reports: [USAGE] },
    "report descriptor 0 of event EV-1: no report: the event's duration is zero: nothing to report",
  ],
])(
  "no descriptor ends in silence: where %s it is flagged at once (L3)",
  async (_why, report, wish, words) => {
    const depot = await aDepot()
      .withVehicles(1)
      .reporting({ ...report })
      .running();
    await depot.deliver({ start: "08:00", ...wish });
    await depot.passes(1000);
    expect(depot.audit("report")).toEqual([words]);
    expect(depot.reports()[0]).toMatch(/^flagged EV-1\/0 /);
    await depot.until("10:00");
    await depot.restart();
    expect([depot.audit("report"), posted(depot)]).toEqual([[words], []]);
  },
);

test("more descriptors than anyone means are answered up to the 32nd, the rest is flagged in one line", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 5, reports: Array.from({ length: 100 }, () => USAGE) });
  await depot.until("08:10");
  expect(depot.partner.posted).toHaveLength(32);
  expect(depot.audit("report").filter((words) => !/composed|sent/.test(words))).toEqual([
    "report descriptor 32 of event EV-1: no report: 68 report descriptors too many",
  ]);
});

test("an edit replaces what was not handed over; a withdrawal flags it", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", reports: [USAGE, DEMAND] });
  await depot.deliver({ start: "08:00", minutes: 30, reports: [USAGE], revision: 1 });
  await depot.deliver({ id: "EV-2", start: "08:00", reports: [USAGE] });
  await depot.until("08:40");
  await depot.withdraw("EV-2", 0);
  await depot.until("10:00");
  expect(times(depot)).toEqual(["08:30:30 EV-1/0/0"]);
  expect(depot.audit("report").filter((words) => words.includes("descriptor"))).toEqual([
    "report descriptor 1 of event EV-1: no report: the event does not ask for it any more",
    "report descriptor 0 of event EV-2: no report: the event was withdrawn",
  ]);
});

test("a report that was owed before its event was deleted is sent, whatever onCancel is", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 30, reports: [USAGE] });
  await depot.until("08:30:10");
  await depot.withdraw("EV-1", 0);
  await depot.until("08:40");
  expect(times(depot)).toEqual(["08:30:30 EV-1/0/0"]);
  expect(depot.reports()).toEqual(["sent EV-1/0/0 1 vehicle"]);
});

test("no descriptor ends in silence: a crash between a withdrawal, or an edit, and what reporting makes of it loses no flag (L3)", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").reporting().running();
  await depot.deliver({ start: "08:00", reports: [USAGE, DEMAND] });
  await depot.deliver({ id: "EV-2", start: "08:00", reports: [USAGE, DEMAND] });
  await depot.until("08:20");
  await depot.deliver({ start: "08:00", reports: [USAGE], revision: 1 });
  await depot.withdraw("EV-2", 0);
  // Both are committed; nothing that would have followed reaches the disk any more.
  depot.disk.full = true;
  await depot.passes(200);
  await depot.restart();
  expect(depot.audit("report")).toEqual([
    "report descriptor 1 of event EV-1: no report: the event does not ask for it any more",
    "report descriptor 0 of event EV-2: no report: the event was withdrawn",
    "report descriptor 1 of event EV-2: no report: the event was withdrawn",
  ]);
  await depot.restart();
  expect(depot.audit("report")).toHaveLength(3);
});

test("the reports of an event are forgotten with the event when that is pruned", async () => {
  const depot = await aDepot()
    .withVehicles(1)
    .withSilentChargers()
    .pollingEvery("1h")
    .withRetention({ events: "8d", withdrawn: "8d" })
    .reporting({ enabled: false })
    .running();
  await depot.deliver({ start: "08:00", reports: [USAGE] });
  await depot.passes(1000);
  expect(depot.reports()).toEqual(["flagged EV-1/0 reports are switched off"]);
  depot.partner.events.clear();
  await depot.until("2026-12-02T00:00:00Z");
  expect([depot.knownEvents(), depot.reports()]).toEqual([[], []]);
});

test("a withdrawn event with onCancel partial is reported as far as it came, and once, restart or not", async () => {
  const depot = await aDepot().withVehicles(1).reporting({ onCancel: "partial" }).running();
  await depot.deliver({ start: "08:00", reports: [USAGE] });
  await depot.until("08:20");
  await depot.withdraw("EV-1", 0);
  await depot.restart();
  await depot.until("10:00");
  expect(times(depot)).toEqual(["08:20:30 EV-1/0/0"]);
  expect(depot.audit("report").at(-1)).toMatch(/^report EV-1\/0\/0 sent/);
});

test("a report that fell due while nothing ran is made late, from what was stored", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 30, reports: [USAGE] });
  await charging(depot, "08:31", ["bay-01"]);
  depot.partner.posted.length = 0;
  await depot.deliver({ id: "EV-2", start: "08:00", minutes: 40, reports: [USAGE] });
  await charging(depot, "08:40:10", ["bay-01"]);
  await depot.restart({ after: 3_600_000 });
  expect(posted(depot)).toEqual(["EV-2/0/0: v1 USAGE 4, DATA_QUALITY OK"]);
});

test("a report whose time passed longer ago than reports are tried is flagged", async () => {
  const depot = await aDepot().withVehicles(1).reporting({ giveUpAfter: "1h" }).running();
  await depot.deliver({ start: "08:00", minutes: 30, reports: [USAGE] });
  await depot.until("08:10");
  await depot.restart({ after: 2 * 3_600_000 });
  expect(depot.partner.posted).toEqual([]);
  expect(depot.audit("report").at(-1)).toContain("a report was due, and nothing ran");
});

test("a restart sends nothing twice, and what was not delivered once more: the same body under the same name (F43)", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE, DEMAND] });
  await depot.until("08:05:20");
  depot.partner.takesReports = "silent";
  await depot.until("08:05:50");
  expect(depot.partner.posted).toHaveLength(1);
  await depot.restart();
  depot.partner.takesReports = "well";
  await depot.until("09:00");
  await depot.restart();
  await depot.passes(60_000);
  const [first, ...rest] = depot.partner.posted.map(({ body }) => body);
  expect(rest.filter((body) => body === first)).toHaveLength(rest.length - 1);
  expect(new Set(bodies(depot).map(({ reportName }) => reportName))).toEqual(
    new Set(["EV-1/0/0", "EV-1/1/0"]),
  );
});

test("while the partner is down reports wait, it is asked ever less often, and all go out when it is back (F43, L4)", async () => {
  const depot = await aDepot().withVehicles(1).withChance(Math.random).reporting().running();
  depot.partner.takesReports = { status: 500 };
  await depot.deliver({ start: "08:00", minutes: 5, reports: Array.from({ length: 20 }, () => USAGE) });
  await depot.until("09:05");
  const tries = depot.partner.posted.length;
  expect(tries).toBeGreaterThan(5);
  expect(tries).toBeLessThan(60);
  expect(depot.reports().filter((line) => line.startsWith("waiting"))).toHaveLength(20);
  depot.partner.takesReports = "well";
  await depot.until("09:40");
  expect(depot.reports().filter((line) => line.startsWith("sent"))).toHaveLength(20);
});

test("gateways whose partner failed them together do not post their reports again together", async () => {
  let drawn = 0;
  const depot = await aDepot()
    .withVehicles(1)
    .withChance(() => (drawn += 0.37) % 1)
    .reporting()
    .running();
  depot.partner.takesReports = { status: 500 };
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE] });
  await depot.until("14:00");
  const times = depot.partner.posted.map(({ at }) => Date.parse(`1970-01-01T${at}Z`) / 1000);
  const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
  const late = pauses.slice(10);
  expect(Math.min(...late)).toBeLessThan(0.5 * Math.max(...late));
});

test("a clock that was two hours ahead and is set back does not hold reports back for two hours", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  depot.partner.takesReports = { status: 500 };
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE] });
  await depot.until("08:15");
  vi.setSystemTime(Date.parse("2026-11-21T06:15:00Z"));
  depot.partner.takesReports = "well";
  await depot.passes(16 * 60_000);
  expect(depot.reports()).toEqual(["sent EV-1/0/0 1 vehicle"]);
});

test("a clock that is set back while one report is composed loses none of those that were due with it", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE, DEMAND] });
  let isBack = false;
  Object.defineProperty(depot.disk, "full", {
    // As the first one is committed.
    get: () => {
      if (!isBack && Date.now() >= Date.parse("2026-11-21T08:05:30Z")) {
        isBack = true;
        vi.setSystemTime(Date.now() - 1000);
      }
      return false;
    },
    set: () => {},
  });
  await depot.until("08:06");
  expect(depot.reports()).toEqual(["sent EV-1/1/0 1 vehicle", "sent EV-1/0/0 1 vehicle"]);
});

test("F20: a clock that is known to be days ahead ends no report, neither one to come nor one that waits", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  depot.partner.takesReports = { status: 503 };
  await depot.deliver({ id: "EV-0", start: "06:00", minutes: 30, reports: [USAGE] });
  await depot.deliver({ start: "08:00", minutes: 30, reports: [USAGE] });
  await depot.until("07:00");
  vi.setSystemTime(Date.parse("2026-12-01T07:00:00Z"));
  depot.ahead = minutes(10 * 24 * 60);
  await depot.passes(180_000);
  expect(depot.reports()).toEqual(["planned EV-1/0/0", expect.stringMatching(/^waiting EV-0\/0\/0 /)]);
  vi.setSystemTime(Date.parse("2026-11-21T07:03:00Z"));
  depot.ahead = millis(0);
  depot.partner.takesReports = "well";
  await depot.until("08:31");
  expect(depot.reports()).toEqual(["sent EV-1/0/0 1 vehicle", "sent EV-0/0/0 1 vehicle"]);
});

test("a report that the partner refuses holds up no other, and the partner's answer is kept", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  depot.partner.takesReports = { status: 422 };
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE] });
  await depot.deliver({ id: "EV-2", start: "08:00", minutes: 10, reports: [USAGE] });
  await depot.until("08:06");
  depot.partner.takesReports = "well";
  await depot.until("09:00");
  expect(depot.reports()).toEqual([
    "sent EV-2/0/0 1 vehicle",
    "flagged EV-1/0/0 1 vehicle HTTP 422: said the partner",
  ]);
  await depot.resend("EV-1/0/0");
  await depot.passes(1000);
  expect(depot.reports()[1]).toBe("sent EV-1/0/0 1 vehicle");
  expect(depot.audit("operator")).toEqual(["report EV-1/0/0 is sent again by an operator"]);
});

test("a report that the partner forbids holds up no other; three in a row hold up all for a quarter of an hour", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  for (const lasts of [5, 10, 15, 16, 17, 20])
    await depot.deliver({ id: `EV-${lasts}`, start: "08:00", minutes: lasts, reports: [USAGE] });
  depot.partner.takesReports = { status: 403 };
  await depot.until("08:09");
  depot.partner.takesReports = "well";
  await depot.until("08:14");
  depot.partner.takesReports = { status: 403 };
  await depot.until("08:19");
  depot.partner.takesReports = "well";
  await depot.until("09:00");
  const lastTry = new Map(times(depot).map((line) => [line.slice(9), line.slice(0, 5)]));
  expect(Object.fromEntries(lastTry)).toEqual({
    "EV-10/0/0": "08:10",
    "EV-5/0/0": "08:32",
    "EV-15/0/0": "08:32",
    "EV-16/0/0": "08:32",
    "EV-17/0/0": "08:32",
    "EV-20/0/0": "08:32",
  });
  expect(depot.reports().every((report) => report.startsWith("sent"))).toBe(true);
});

test("waiting reports are not sent while reports are switched off, and are once they are on again", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  depot.partner.takesReports = { status: 500 };
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE] });
  await depot.until("08:06");
  depot.partner.takesReports = "well";
  depot.partner.posted.length = 0;
  await depot.restart({ reports: false });
  await depot.until("09:00");
  expect(times(depot)).toEqual([]);
  await depot.restart({ reports: true });
  await depot.until("09:01");
  expect(depot.reports()).toEqual(["sent EV-1/0/0 1 vehicle"]);
});

test("an endpoint that is not there is asked once a day, until the report is given up (F43)", async () => {
  const depot = await aDepot()
    .withVehicles(1)
    .withSilentChargers()
    .reporting({ giveUpAfter: "3d" })
    .running();
  depot.partner.takesReports = { status: 404 };
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE] });
  await depot.until("12:00");
  expect(depot.reports()).toEqual([
    "flagged EV-1/0/0 1 vehicle endpoint unknown (HTTP 404): said the partner",
  ]);
  await depot.until("2026-11-26T00:00:00Z");
  expect(depot.partner.posted).toHaveLength(3);
  expect(depot.audit("report").at(-1)).toContain("given up: endpoint unknown");
});

test("a full disk loses no report: it is made when there is room again, and sent after it is stored (F05)", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE] });
  await depot.until("08:04");
  depot.disk.full = true;
  await depot.until("08:20");
  expect(depot.partner.posted).toEqual([]);
  depot.disk.full = false;
  await depot.until("08:20:10");
  expect(times(depot).map((line) => line.slice(9))).toEqual(["EV-1/0/0"]);
});

test("a report that was sent just before a commit that failed is not sent again, neither then nor after a restart (F05, F43)", async () => {
  const depot = await aDepot().withVehicles(2).reporting().running();
  await depot.deliver({ id: "EV-1", start: "08:00", minutes: 5, vehicles: ["v1"], reports: [USAGE] });
  await depot.deliver({ id: "EV-2", start: "08:00:00.100", minutes: 5, vehicles: ["v2"], reports: [USAGE] });
  await depot.until("08:05:30.080");
  expect(depot.partner.posted).toHaveLength(1);
  depot.disk.full = true;
  await depot.until("08:05:40");
  depot.disk.full = false;
  await depot.until("08:10");
  await depot.restart();
  await depot.until("08:20");
  expect(bodies(depot).map(({ reportName }) => reportName)).toEqual(["EV-1/0/0", "EV-2/0/0"]);
  expect(depot.audit("report").filter((message) => message.includes(" sent: "))).toHaveLength(2);
});

test("an operator's wish to send a report again outlives a commit that failed (F05)", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ id: "EV-1", start: "08:00", minutes: 5, vehicles: ["v1"], reports: [USAGE] });
  await depot.deliver({ id: "EV-2", start: "08:05", minutes: 5, vehicles: ["v1"], reports: [USAGE] });
  depot.partner.takesReports = { status: 422 };
  await depot.until("08:10:29.900");
  depot.partner.takesReports = { status: 503 };
  depot.disk.full = true;
  await depot.resend("EV-1/0/0");
  await depot.until("08:10:31");
  [depot.disk.full, depot.partner.takesReports] = [false, "well"];
  await depot.until("08:20");
  expect(depot.reports().map((report) => report.split(" ").slice(0, 2).join(" "))).toEqual([
    "sent EV-2/0/0",
    "sent EV-1/0/0",
  ]);
});

async function dueAtTheStart() {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE] });
  await depot.until("08:04");
  return depot;
}

test("after a start no report is made before the partner was asked, but for ten seconds at most (F20)", async () => {
  const depot = await dueAtTheStart();
  await depot.stop();
  await depot.until("08:06");
  depot.partner.takesMs = 30_000;
  depot.start();
  await depot.until("08:06:09");
  expect(times(depot)).toEqual([]);
  await depot.until("08:06:15");
  expect(times(depot)).toHaveLength(1);
});

test("a clock that is ahead at the start may be set right before reports are made by it (F20)", async () => {
  const depot = await dueAtTheStart();
  depot.ahead = minutes(20);
  await depot.restart({ after: 120_000 });
  await depot.until("08:08");
  expect(times(depot)).toEqual([]);
  depot.ahead = millis(0);
  await depot.until("08:08:05");
  expect(times(depot)).toHaveLength(1);
});

test("a clock that stays ahead of the partner's is believed after five minutes: no report waits without end (L3)", async () => {
  const depot = await dueAtTheStart();
  depot.ahead = minutes(10 * 24 * 60);
  await depot.restart({ after: 120_000 });
  await depot.until("08:10:50");
  expect(times(depot)).toEqual([]);
  await depot.until("08:11:10");
  expect(times(depot)).toHaveLength(1);
});

const unreadable = (): never => {
  throw new Error("disk I/O error");
};

test("a disk that cannot be read costs one try of one report, not reporting (F05)", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE, DEMAND] });
  await depot.until("08:04");
  vi.spyOn(SqliteReads.prototype, "report").mockImplementationOnce(unreadable);
  await depot.until("08:05:30.500");
  expect(depot.reports()).toContain("waiting EV-1/0/0 1 vehicle its body could not be read: disk I/O error");
  await depot.until("08:10");
  expect(times(depot).map((line) => line.slice(9))).toEqual(["EV-1/1/0", "EV-1/0/0"]);
});

test("owed reports are read again when the disk could not be read after a commit that failed (F05)", async () => {
  const depot = await aDepot().withVehicles(1).reporting().running();
  await depot.deliver({ start: "08:00", minutes: 5, reports: [USAGE] });
  await depot.until("08:05:29");
  depot.disk.full = true;
  const read = vi.spyOn(SqliteReads.prototype, "owed").mockImplementation(unreadable);
  await depot.until("08:05:50");
  read.mockRestore();
  depot.disk.full = false;
  await depot.until("08:10");
  expect(times(depot).map((line) => line.slice(9))).toEqual(["EV-1/0/0"]);
});

test("readings are old only by a clock that the partner's confirms (F20)", async () => {
  const depot = await aDepot().withVehicles(1).withSilentChargers().reporting().running();
  await depot.until("08:00");
  await depot.telemetry("bay-01", { state: "charging", energyWh: 1000 });
  const kept = (): number => depot.keptReadings("bay-01", "2026-11-21T08:00:00Z");
  await depot.until("08:01");
  expect(kept()).toBeGreaterThan(0);
  depot.clockAgrees = false;
  vi.setSystemTime(Date.parse("2027-11-21T08:00:00Z"));
  await depot.until("2027-11-21T09:00:00Z");
  expect(kept()).toBeGreaterThan(0);
  depot.clockAgrees = true;
  await depot.until("2027-11-21T09:05:00Z");
  expect(kept()).toBe(0);
});
