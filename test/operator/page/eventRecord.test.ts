import { describe, expect, test } from "vitest";

import type { ProofFact } from "../../../src/operator/page/apiAnswers.ts";
import type { SiteEvent } from "../../../src/operator/page/derive.ts";
import { energyTotals, firstRows, revisionsIn, vehicleRows } from "../../../src/operator/page/eventRecord.ts";
import { aRow, at } from "../../support/aPageRow.ts";

const EVENT: SiteEvent = {
  id: "EV-1",
  state: "active",
  start: at("05:00"),
  end: at("06:00"),
  randomizeStartMs: 600_000,
  vehicles: ["veh-1"],
};
const winner = (offsetMs: number, event = "EV-1") => ({ winner: { event, offsetMs } });
const wins = (time: string, offsetMs = 0) => aRow(time, "decision", { facts: winner(offsetMs) });
const held = (time: string) => aRow(time, "decision", { facts: { winner: null, hold: {} } });
const released = (time: string) => aRow(time, "decision", { facts: { winner: null, hold: null } });
const outcome = (time: string, progress: string) => aRow(time, "outcome", { facts: { progress } });
const ms = (time: string): number => Date.parse(at(time));

/** `kind HH:MM-HH:MM` of each bar. */
const bars = (rows: Parameters<typeof vehicleRows>[0], now: string, event = EVENT): readonly string[] =>
  vehicleRows(rows, event, ms(now))[0]?.bars.map(
    ({ kind, from, until }) =>
      `${kind} ${new Date(from).toISOString().slice(11, 16)}-${new Date(until).toISOString().slice(11, 16)}`,
  ) ?? [];
const result = (rows: Parameters<typeof vehicleRows>[0], now = "05:30"): string | undefined =>
  vehicleRows(rows, EVENT, ms(now))[0]?.result.word;

describe("the course of an event", () => {
  test("a vehicle waits for its drawn start, is at the setpoint, and is released", () => {
    const rows = [wins("05:02", 120_000), outcome("05:03", "followed"), released("06:02")];
    expect(bars(rows, "06:30")).toEqual(["offset 05:00-05:02", "on 05:02-06:02"]);
    expect(result(rows)).toBe("followed");
  });

  test("a stretch that was not followed ends when it is followed again", () => {
    const rows = [
      wins("05:00"),
      outcome("05:05", "followed"),
      outcome("05:10", "notFollowed"),
      outcome("05:20", "followed"),
    ];
    expect(bars(rows, "05:30")).toEqual(["on 05:00-05:10", "bad 05:10-05:20", "on 05:20-05:30"]);
    expect(result(rows)).toBe("followed");
    expect(result(rows.slice(0, 3))).toBe("not followed");
  });

  test("a vehicle at a level of a person counts as overridden, until the event applies again", () => {
    const rows = [
      wins("05:00"),
      outcome("05:01", "followed"),
      aRow("05:10", "operator", { facts: { hold: "hold-7-1", effect: true } }),
    ];
    expect(bars(rows, "05:20")).toEqual(["on 05:00-05:10", "held 05:10-05:20"]);
    expect(result(rows)).toBe("overridden");
    expect(bars([...rows, wins("05:20")], "05:30")).toEqual([
      "on 05:00-05:10",
      "held 05:10-05:20",
      "sent 05:20-05:30",
    ]);
  });

  test("a refusal counts as not followed", () => {
    expect(result([wins("05:00"), outcome("05:01", "refused")])).toBe("not followed");
  });

  test("a site that only observes shows what would have been sent, and takes no bar for a setpoint", () => {
    const rows = [aRow("05:00", "decision", { facts: { ...winner(0), observed: true } }), released("05:20")];
    expect(bars(rows, "05:30")).toEqual(["observed 05:00-05:20"]);
    expect(result(rows)).toBe("not sent (observe)");
  });

  test("an override shows as such, and its own result does not count for the event", () => {
    const rows = [wins("05:00"), held("05:10"), outcome("05:11", "followed")];
    expect(bars(rows, "05:30")).toEqual(["sent 05:00-05:10", "held 05:10-05:30"]);
    expect(result(rows)).toBe("overridden");
  });

  test("a setpoint that no reading confirms is not shown as followed", () => {
    const rows = [wins("05:00"), outcome("05:01", "acknowledged")];
    expect(bars(rows, "05:30")).toEqual(["sent 05:00-05:30"]);
    expect(bars([...rows, outcome("05:02", "followed"), wins("05:20")], "05:30")).toEqual(["on 05:00-05:30"]);
  });

  test("the bar of another event's win ends this one's", () => {
    const rows = [wins("05:00"), aRow("05:10", "decision", { facts: winner(0, "EV-2") })];
    expect(bars(rows, "05:30")).toEqual(["sent 05:00-05:10"]);
    expect(result(rows)).toBe("sent");
  });

  test("a vehicle at no charger is absent, and a missed start is shown as such", () => {
    expect(bars([], "05:30")).toEqual(["absent 05:00-05:30"]);
    expect(result([])).toBe("not started");
    expect(result([aRow("05:20", "missed")])).toBe("missed");
  });

  test("of an event for a whole fleet, the vehicles that need a look come first, and those that never started last", () => {
    const fleet = { ...EVENT, vehicles: ["veh-8", "veh-9", "veh-1", "veh-2"] };
    const rows = [
      wins("05:00"),
      outcome("05:01", "followed"),
      aRow("05:00", "decision", { vehicle: "veh-2", facts: winner(0) }),
      aRow("05:01", "outcome", { vehicle: "veh-2", facts: { progress: "refused" } }),
    ];
    const all = vehicleRows(rows, fleet, ms("05:30"));
    const names = (most: number) => firstRows(all, most).map(({ vehicle }) => vehicle);
    expect(names(4)).toEqual(["veh-8", "veh-9", "veh-1", "veh-2"]);
    expect(names(3)).toEqual(["veh-2", "veh-1", "veh-8"]);
  });

  test("an event ahead has no bar yet", () => {
    expect(bars([], "04:30")).toEqual([]);
  });

  test("bars end with the event and its longest start offset", () => {
    expect(bars([wins("05:00")], "09:00")).toEqual(["sent 05:00-06:10"]);
  });

  test("an event that is no longer stored is drawn from its rows alone", () => {
    const rows = [
      wins("05:00"),
      released("05:40"),
      aRow("05:50", "outcome", { vehicle: "veh-2", facts: { progress: "followed" } }),
    ];
    const lines = vehicleRows(rows, undefined, ms("09:00"));
    expect(lines.map(({ vehicle }) => vehicle)).toEqual(["veh-1", "veh-2"]);
    expect(lines[0]?.bars).toEqual([{ kind: "sent", from: ms("05:00"), until: ms("05:40") }]);
    expect(vehicleRows([], undefined, ms("09:00"))).toEqual([]);
  });
});

const revision = (time: string, facts: object | null, text = "") =>
  aRow(time, "event", { facts, words: text });

describe("the revisions of an event", () => {
  const first = {
    outcome: "new",
    source: "webhook",
    start: at("05:00"),
    durationMs: 3_600_000,
    randomizeStartMs: 0,
    priority: 5,
    ask: { kind: "current", level: 16 },
    targets: { vehicles: 4 },
  };

  test("stand with the newest first, each with what differs from the one before", () => {
    const all = revisionsIn([
      revision("04:00", first),
      revision("05:12", { ...first, outcome: "changed", durationMs: 1_800_000, priority: null }),
    ]);
    expect(all.map(({ how }) => how)).toEqual(["changed, webhook", "new, webhook"]);
    expect(all[1]?.changes).toEqual([]);
    expect(all[0]?.changes).toEqual([
      { what: "end", before: at("06:00"), after: at("05:30") },
      { what: "priority", before: 5, after: null },
    ]);
  });

  test("a withdrawal in between changes nothing, and the next revision compares with the last that had times", () => {
    const all = revisionsIn([
      revision("04:00", first),
      revision("04:30", { outcome: "withdrawn" }, "EV-1 is withdrawn"),
      revision("05:00", { ...first, ask: { kind: "power", level: 7.4 }, targets: {} }),
    ]);
    expect(all[1]).toMatchObject({ text: "EV-1 is withdrawn", how: "withdrawn", changes: [] });
    expect(all[0]?.changes).toEqual([
      { what: "ask", before: "16 A", after: "7.4 kW" },
      { what: "vehicles", before: 4, after: null },
    ]);
  });

  test("facts of any shape are shown without a failure", () => {
    const [odd] = revisionsIn([revision("04:00", null, "words")]);
    expect(odd).toMatchObject({ text: "words", how: "", changes: [] });
    const unknown = revisionsIn([
      revision("04:00", { start: at("05:00"), ask: { kind: "PRICE" } }),
      revision("04:01", { start: at("05:00") }),
    ]);
    expect(unknown[0]?.changes).toEqual([{ what: "ask", before: "PRICE", after: null }]);
  });
});

const fact = (what: string, vehicle: string, value?: number, from = at("05:00")): ProofFact => ({
  section: "vehicle",
  what,
  vehicle,
  from,
  print: "",
  ...(value === undefined ? {} : { value }),
});

describe("the energy of an event", () => {
  test("is the sum over vehicles and windows, by the estimate where the meter alone shows too little", () => {
    const facts = [
      fact("energy", "veh-1", 2),
      fact("energy", "veh-1", 3, at("05:30")),
      fact("energy", "veh-2", 0.1),
      fact("estimated energy", "veh-2", 1),
      fact("baseline", "veh-1", 8),
      fact("energy", "veh-3"),
      fact("baseline", "veh-3"),
      { section: "site" as const, what: "energy", value: 99, print: "" },
    ];
    expect(energyTotals(facts)).toEqual({ deliveredWh: 6000, baselineWh: 8000, measured: 2, compared: 1 });
  });

  test("is not known without readings", () => {
    expect(energyTotals([])).toEqual({ deliveredWh: null, baselineWh: null, measured: 0, compared: 0 });
  });
});
