import { expect, test } from "vitest";

import { type ExplainedMoment, explain } from "../../../src/control/decide/explain.ts";
import { mostOf } from "../../../src/control/decide/limits.ts";
import type { Reason } from "../../../src/domain/reason.ts";
import { iso, watts } from "../../../src/domain/units.ts";
import { aCharger, aVehicle } from "../../support/aCharger.ts";
import { aLevelHold } from "../../support/aHold.ts";
import { aDispatch, at } from "../../support/anEvent.ts";

const event = (id: string, priority: number | null, more = {}) => ({
  event: id,
  priority,
  asked: "16 A",
  from: iso(at("05:00")),
  until: iso(at("06:00")),
  offsetMs: 0,
  spreadMs: 0,
  cutAt: null,
  ...more,
});

const reason = (changes: Partial<Reason>): Reason => ({
  words: "bay-01 to 16 A",
  cause: "event",
  winner: event("EV-1", 1),
  overruled: [],
  overruledCount: 0,
  limits: [],
  hold: null,
  held: null,
  occupant: null,
  until: null,
  ...changes,
});

const explained = (changes: Partial<ExplainedMoment>, ties: "newest" | "mostRestrictive" = "newest") =>
  explain(
    {
      at: at("05:30"),
      isAhead: false,
      charger: aCharger(),
      vehicle: aVehicle(),
      unknown: null,
      reason: null,
      otherHolds: [],
      waiting: [],
      bars: [],
      ...changes,
    },
    { ties },
    iso,
  );

test("without a reason the charger's own default wins", () => {
  expect(explained({})).toMatchObject({
    sentence: "bay-01 (Bus 214) decides by itself, up to 32 A: no event applies",
    claims: [{ kind: "default", status: "wins" }],
  });
  expect(explained({ vehicle: null })).toMatchObject({
    sentence: "bay-01 decides by itself, up to 32 A: no event applies",
  });
});

test("a vehicle that the configuration does not know is named where no event applies because of it", () => {
  const unknown = { charger: "bay-01", identity: "rfid 04aa" };
  expect(explained({ vehicle: null, unknown }).sentence).toBe(
    "bay-01 decides by itself, up to 32 A: bay-01 reports rfid 04aa, which no vehicle has, so no event applies",
  );
  expect(explained({ charger: null, unknown }).sentence).toBe(
    "Bus 214 is at no charger: no event acts on it now; bay-01 reports rfid 04aa, which no vehicle has",
  );
});

test("after a release, by the record, the charger's own default wins", () => {
  expect(explained({ reason: reason({ winner: null }) }).claims).toMatchObject([
    { kind: "default", status: "wins" },
  ]);
});

test("a vehicle at no charger, and one that is not known, have a sentence of their own", () => {
  expect(explained({ charger: null }).sentence).toBe("Bus 214 is at no charger: no event acts on it now");
  expect(explained({ charger: null, vehicle: null })).toMatchObject({ charger: null, vehicle: null });
  expect(explained({ charger: null, isUnrecorded: true })).toMatchObject({
    sentence: "Bus 214: no decision is on record up to 2026-11-21T05:30:00.000Z",
  });
});

test("an overruled event has the reason why it lost, and a long list is counted", () => {
  const overruled = [event("EV-2", 2), event("EV-3", 1), event("EV-4", null)];
  const found = explained({ reason: reason({ overruled, overruledCount: 9 }) });
  expect(found.claims.map(({ source, status, because }) => [source, status, because])).toEqual([
    ["EV-1", "wins", "priority 1"],
    ["EV-2", "overruled", "priority 2; EV-1 has priority 1"],
    ["EV-3", "overruled", "priority 1 as EV-1, which is newer"],
    ["EV-4", "overruled", "no priority; EV-1 has priority 1"],
    ["6 more", "overruled", "rank lower than those above"],
    ["charger", "overruled", "without a setpoint the charger decides by itself, up to 32 A"],
  ]);
  const [, , restrictive] = explained(
    { reason: reason({ overruled, overruledCount: 3 }) },
    "mostRestrictive",
  ).claims;
  expect(restrictive?.because).toBe("priority 1 as EV-1, which asks for less or is newer");
});

test("the winner shows its random start, and that it was withdrawn", () => {
  const winner = event("EV-1", 1, { offsetMs: 137_000, spreadMs: 600_000 });
  const because = (member: object) =>
    explained({ reason: reason({ winner: { ...winner, ...member } }) }).claims[0]?.because;
  expect(because({})).toBe("priority 1, starts 137 s into a random 600 s");
  expect(because({ cutAt: iso(at("05:10")) })).toContain("withdrawn or changed: its release is spread");
});

/** Times of the day, without the day. */
const clock = (sentence: string) => sentence.replaceAll(/2026-11-21T([\d:]+)\.000Z/g, "$1");

test("the sentence of an event says who, what, until when, and the random start", () => {
  const winner = event("EV-7731", 1, {
    asked: "11 kW",
    from: iso(at("05:02:17")),
    until: iso(at("06:00:41")),
    offsetMs: 137_000,
    spreadMs: 600_000,
  });
  const limits = [{ by: "takes amperes", asked: "11 kW", allowed: "16 A" }];
  const overruled = [event("EV-2", 2)];
  const shown = reason({ winner, limits });
  expect(clock(explained({ reason: shown }).sentence)).toBe(
    "Bus 214 at bay-01 is limited to 16 A until 06:00:41 because event EV-7731 (priority 1) asks for 11 kW; started 05:02:17 (random offset 137 s of max 600 s). Without any event the charger decides by itself, up to 32 A",
  );
  const ahead = { reason: { ...shown, overruled, overruledCount: 3 }, isAhead: true };
  expect(explained(ahead).sentence).toMatch(/; starts .*; overrules EV-2 and 2 more\. Without/);
  const observing = { reason: shown, bars: [{ source: "observing", until: null, because: "not sent" }] };
  expect(explained(observing).sentence).toMatch(
    /at bay-01 would be limited to 16 A until .*; not sent\. Without/,
  );
  const paused = [{ by: "charger minimum", asked: "4 A", allowed: "pause" }];
  expect(explained({ reason: { ...shown, limits: paused } }).sentence).toContain("at bay-01 is paused until");
  const capped = [{ by: "charger maximum", asked: "40 A", allowed: "32 A" }];
  expect(explained({ reason: { ...shown, limits: capped } }).sentence).toContain(
    "; 40 A asked, the charger allows 32 A.",
  );
  // The next level has to wait: what holds is not what the event asks for.
  const held = { by: "minInterval", until: iso(at("05:40")) };
  expect(explained({ reason: { ...shown, held } }).sentence).toMatch(/^bay-01 to 16 A\. Without/);
});

test("limits and conditions follow the winner, and a record of another program does not break it", () => {
  const bars = [{ source: "release ramp", until: at("05:40"), because: "others rise first" }];
  const limits = [{ by: "charger maximum", asked: "40 A", allowed: "32 A" }, {}];
  const winner = {};
  const overruled = [{ priority: 3 }];
  const found = explained({
    bars: [...bars, { source: "offline", until: null, because: "offline" }],
    reason: reason({ winner, limits, overruled, overruledCount: 1 }),
  });
  expect(found.claims).toMatchObject([
    { kind: "event", source: "", level: null, status: "wins", because: "no priority" },
    { kind: "limit", source: "release ramp", until: iso(at("05:40")), status: "limits" },
    { kind: "limit", source: "offline", until: null },
    {
      kind: "limit",
      source: "charger maximum",
      level: { currentA: 32 },
      because: "40 A asked, 32 A allowed",
    },
    { kind: "limit", source: "" },
    { status: "overruled", because: "priority 3" },
    { kind: "default" },
  ]);
  expect(found.sentence).toContain("; others rise first; offline. Without any event");
});

test("a hold wins over each event, or sets some aside, and another hold gives way to it", () => {
  const held = {
    id: "hold-7-1",
    kind: "level",
    level: { currentA: 10 },
    since: iso(at("05:00")),
    until: iso(at("06:00")),
    by: "anna",
    reason: "leaves early",
    events: ["EV-1"],
  };
  const other = aLevelHold({ id: "hold-7-9", level: null, scope: { kind: "site" } });
  const level = explained({
    reason: reason({ winner: null, hold: held, overruled: [event("EV-1", 1)], overruledCount: 1 }),
    otherHolds: [other, aLevelHold({ id: "hold-7-8", scope: { kind: "site" } })],
  });
  expect(level.claims).toMatchObject([
    {
      kind: "hold",
      source: "hold-7-1",
      level: { currentA: 10 },
      status: "wins",
      because: "by anna: leaves early",
    },
    { kind: "event", source: "EV-1", because: "priority 1; a hold beats every event" },
    {
      source: "hold-7-9",
      level: { release: true },
      because: expect.stringContaining("another claim applies"),
    },
    { source: "hold-7-8", level: { currentA: 10 }, status: "overruled" },
    { kind: "default", status: "overruled" },
  ]);
  expect(level.without.level).toEqual({ currentA: 10 });
  const exempt = { ...held, kind: "exempt", level: null, reason: "" };
  expect(explained({ reason: reason({ hold: exempt }) }).claims).toMatchObject([
    { kind: "event", source: "EV-1", status: "wins" },
    { kind: "hold", level: { release: true }, status: "limits", because: "by anna" },
    { kind: "event", source: "EV-1", status: "overruled", because: "set aside by hold-7-1" },
    { kind: "default" },
  ]);
  expect(explained({ reason: reason({ winner: null, hold: { events: ["EV-1"] } }) }).claims).toMatchObject([
    { kind: "hold", source: "", because: "by an operator" },
    { kind: "event", because: "set aside by an operator" },
    { kind: "default" },
  ]);
});

test("the next event is named where none applies, not one that ends early", () => {
  const cut = aDispatch({ cutAt: at("05:10") }, { id: "EV-0" });
  const next = aDispatch({ from: at("06:00") }, { id: "EV-9" });
  const waiting = [cut, next].map((dispatch) => ({ dispatch, because: "starts" }));
  const found = explained({ waiting });
  expect(found.sentence).toBe(
    `bay-01 (Bus 214) decides by itself, up to 32 A: no event applies; EV-9 starts ${iso(at("06:00"))}`,
  );
  expect(found.claims[1]).toMatchObject({ source: "EV-0", level: { currentA: 16 }, status: "waits" });
});

test("the largest level is in the unit of the charger, and absent without a maximum", () => {
  const none = { maxCurrent: null, maxPower: null };
  expect(mostOf(aCharger(), null)).toEqual({ currentA: 32 });
  expect(mostOf(aCharger({ ...none, maxPower: watts(150_000) }), null)).toEqual({ powerW: 150_000 });
  expect(mostOf(aCharger({ ...none, maxPower: watts(6900), takesWatts: false }), null)).toEqual({
    currentA: 10,
  });
  expect(explained({ charger: aCharger(none) }).without).toEqual({ level: { release: true }, most: null });
});
