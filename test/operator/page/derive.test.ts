import { describe, expect, test } from "vitest";

import type { Alarm, Departure, SiteProblem, Status } from "../../../src/operator/page/apiAnswers.ts";
import type { SiteEvent } from "../../../src/operator/page/derive.ts";
import {
  agoOf,
  chargerState,
  compliance,
  eventsNow,
  eventState,
  followOf,
  followState,
  isStale,
  leavingNext,
  liveChargers,
  limiterOf,
  progressState,
  siteMode,
  slackState,
  troubles,
} from "../../../src/operator/page/derive.ts";
import { aShownCharger, at, noneAway } from "../../support/aPageRow.ts";
import { aDeparture } from "../../support/someAnswers.ts";

const ms = (time: string): number => Date.parse(at(time));
const measured = (state: string | null, powerW = 0) => ({
  at: at("05:00"),
  state,
  powerW,
  currentsA: [0, 0, 0],
  limitA: null,
});
const counted = (unreachable: number) => ({ chargers: { total: 3, unreachable } }) as unknown as Status;
const REACHED = { connected: true, reason: null, away: [] };
const SIXTEEN = { kind: "current", value: 16, unit: "A" } as const;

describe("a charger", () => {
  test.each([
    [{ online: false }, "offline"],
    [{ reachable: false }, "silent"],
    [{ commissioning: true }, "on trial"],
    [{ measured: measured("error") }, "fault"],
    [{ verdict: "refused" }, "refuses"],
    [{ verdict: "notFollowed" }, "ignores setpoint"],
    [{ measured: null }, "no message yet"],
    [{ measured: measured("unplugged") }, "unplugged"],
    [{ measured: measured(null), occupant: "nobody" }, "unplugged"],
    [{}, "charging"],
    [{ measured: measured("paused") }, "paused"],
    [{ measured: measured("connected"), allowed: { kind: "pause", value: null, unit: null } }, "paused"],
    [{ measured: measured("finished") }, "full"],
    [{ measured: measured("connected") }, "plugged in"],
  ] as const)("%j is shown as %s", (over, word) => {
    expect(chargerState(aShownCharger(over), noneAway).word).toBe(word);
  });

  test("behind a lost broker is not known, whatever was heard last, and its values are old at once", () => {
    const away = new Set(["yard"]);
    for (const last of [{ online: false }, { reachable: false }, {}, { verdict: "notFollowed" }] as const) {
      const charger = aShownCharger({ broker: "yard", ...last });
      expect(chargerState(charger, away)).toMatchObject({ word: "not known, broker down", tone: "warn" });
      expect(isStale(charger, ms("05:00"), away)).toBe(true);
    }
    expect(chargerState(aShownCharger(), away).word).toBe("charging");
  });

  test("is stale two minutes after its last reading, and at once when it is away", () => {
    const charger = aShownCharger();
    expect(isStale(charger, ms("05:02"), noneAway)).toBe(false);
    expect(isStale(charger, ms("05:02:01"), noneAway)).toBe(true);
    expect(isStale(aShownCharger({ online: false }), ms("05:00"), noneAway)).toBe(true);
    expect(isStale(aShownCharger({ measured: null, heardAt: null }), ms("05:00"), noneAway)).toBe(true);
    expect(agoOf(at("05:01"), ms("05:00"))).toBe(0);
  });

  test("is limited by the hold, then the event, then none", () => {
    const hold = {
      id: "h1",
      scope: { site: true },
      kind: "exempt",
      level: null,
      end: "at",
      since: at("05:00"),
      until: null,
      by: "kari",
      reason: "early",
      events: [],
      eventCount: 0,
    } as const;
    const asked = { ...SIXTEEN, event: "EV-1" };
    expect(limiterOf(aShownCharger({ hold, asked }))).toMatchObject({ word: "exempt", event: null });
    expect(limiterOf(aShownCharger({ hold: { ...hold, kind: "level" } }))?.word).toBe("override");
    expect(limiterOf(aShownCharger({ asked }))).toMatchObject({ word: "EV-1", event: "EV-1" });
    expect(limiterOf(aShownCharger())).toBeNull();
  });
});

describe("the progress of a command", () => {
  test.each([
    ["followed", "followed", "good"],
    ["accepted", "accepted", "info"],
    ["acknowledged", "sent", "info"],
    ["planned", "to be sent", "info"],
    ["refused", "refused", "bad"],
    ["notFollowed", "not followed", "bad"],
    ["observed", "not sent (observe)", "mute"],
    ["failed", "could not be sent", "mute"],
    ["none", "none", "mute"],
    ["of a later version", "of a later version", "mute"],
  ])("%s is shown as %s", (progress, word, tone) => {
    expect(progressState(progress)).toMatchObject({ word, tone });
  });

  test("a released charger follows nothing", () => {
    const verdict = "notFollowed";
    expect(followState(aShownCharger({ verdict }), noneAway).word).toBe("free");
    const allowed = { kind: "release", value: null, unit: null } as const;
    expect(followState(aShownCharger({ verdict, allowed }), noneAway).word).toBe("free");
    expect(followState(aShownCharger({ verdict, allowed: SIXTEEN }), noneAway)).toEqual(
      progressState(verdict),
    );
  });

  test("a charger that is not heard is not shown as following, by what it reported last", () => {
    const shown = aShownCharger({ verdict: "followed", allowed: SIXTEEN, broker: "main" });
    expect(followState(shown, noneAway)).toMatchObject({ word: "followed", tone: "good" });
    const unknown = { word: "not known", shape: "ring", tone: "mute" };
    expect(followState(shown, new Set(["main"]))).toEqual(unknown);
    expect(followState({ ...shown, online: false }, noneAway)).toEqual(unknown);
    expect(followState({ ...shown, reachable: false }, noneAway)).toEqual(unknown);
    // A refusal stays what it was: the charger answered.
    expect(followState({ ...shown, online: false, verdict: "refused" }, noneAway).word).toBe("refused");
  });
});

const event = (id: string, over: Partial<SiteEvent> = {}): SiteEvent => ({
  id,
  state: "active",
  start: at("05:00"),
  end: at("06:00"),
  ...over,
});

const under = (name: string) => aShownCharger({ asked: { ...SIXTEEN, event: name } });

describe("events", () => {
  test("an event changes its state by the clock, before the gateway sends it again", () => {
    const known = event("EV-1", { state: "planned", randomizeStartMs: 60_000 });
    expect(eventState(known, ms("04:59"))).toBe("planned");
    expect(eventState(known, ms("05:00"))).toBe("active");
    expect(eventState(known, ms("06:00:30"))).toBe("active");
    expect(eventState(known, ms("06:01"))).toBe("ended");
    expect(eventState(event("EV-1", { state: "ended" }), ms("05:30"))).toBe("ended");
    expect(eventState(event("EV-1", { state: "withdrawn" }), ms("05:30"))).toBe("withdrawn");
    expect(eventState({ id: "EV-1", state: "active" }, ms("09:00"))).toBe("active");
  });

  test("the strongest active event stands first, the next by its start", () => {
    const all = [
      event("weak", { priority: null }),
      event("strong", { priority: 1 }),
      event("late", { start: at("08:00"), end: at("09:00") }),
      event("soon", { start: at("07:00"), end: at("08:00") }),
    ];
    const { active, next } = eventsNow(all, ms("05:30"));
    expect([active, next].map((list) => list.map(({ id }) => id))).toEqual([
      ["strong", "weak"],
      ["soon", "late"],
    ]);
  });

  test("the event that most chargers are under stands before a stronger one of fewer", () => {
    const all = [event("strong", { priority: 1 }), event("wide", { priority: 9 })];
    const { active } = eventsNow(all, ms("05:30"), [under("wide"), under("strong"), under("wide")]);
    expect(active.map(({ id }) => id)).toEqual(["wide", "strong"]);
  });

  test("chargers that do not follow, refuse, are away or were never heard do not comply", () => {
    const asked = { ...SIXTEEN, event: "EV-1" };
    const all = [
      aShownCharger({ asked, verdict: "followed" }),
      aShownCharger({ asked, verdict: "notFollowed" }),
      aShownCharger({ asked, verdict: "refused", online: false }),
      aShownCharger({ asked, verdict: "followed", reachable: false }),
      aShownCharger({ asked, verdict: "acknowledged", reachable: null, measured: null }),
      aShownCharger(),
    ];
    expect(compliance("EV-1", all, noneAway)).toMatchObject({ total: 5, good: 1 });
    // A last will of the lost broker says nothing: the last known number stays.
    expect(compliance("EV-1", all, new Set([""]))).toMatchObject({ total: 5, good: 3 });
    expect(followOf({ total: 4, good: 1 }, { mode: "drive", broker: REACHED })).toMatchObject({
      word: "1 of 4 follow",
      tone: "warn",
    });
    expect(followOf({ total: 4, good: 4 }, null)).toMatchObject({ tone: "good" });
    // Nothing is sent, so nothing can be followed.
    expect(followOf({ total: 4, good: 4 }, { mode: "observe", broker: REACHED })).toMatchObject({
      word: "not sent: the site only observes",
      tone: "info",
    });
    // Nothing is heard of a charger, so nobody knows whether it still follows.
    const away = { connected: false, reason: "connect ECONNREFUSED", away: [""] };
    expect(followOf({ total: 4, good: 4 }, { mode: "drive", broker: away })).toMatchObject({
      word: "4 of 4 followed when last heard",
      tone: "warn",
    });
  });

  test("counts as live once it is heard, and not while it is away", () => {
    const unheard = aShownCharger({ charger: "bay-03", reachable: null });
    expect(liveChargers(counted(0), [aShownCharger(), aShownCharger(), aShownCharger()])).toBe(3);
    expect(liveChargers(counted(0), [aShownCharger(), aShownCharger(), unheard])).toBe(2);
    // The same charger, once it has been silent for long enough to be a problem.
    expect(liveChargers(counted(1), [aShownCharger(), aShownCharger(), unheard])).toBe(2);
    const away = aShownCharger({ charger: "bay-02", reachable: false });
    expect(liveChargers(counted(1), [aShownCharger(), away, unheard])).toBe(1);
    expect(liveChargers(counted(3), [])).toBe(0);
  });
});

const STATUS = { mode: "drive", partner: { stale: false }, problems: [] } as unknown as Status;

test("the mode of the site is one name, observe before any other", () => {
  const stale = { ...STATUS.partner, stale: true };
  expect(siteMode(STATUS, 0).word).toBe("NORMAL");
  expect(siteMode(STATUS, 1).word).toBe("EVENT");
  expect(siteMode({ ...STATUS, partner: stale }, 1).word).toBe("NO PARTNER");
  expect(siteMode({ ...STATUS, partner: stale, mode: "observe" }, 1).word).toBe("OBSERVE ONLY");
});

const alarm = (key: string, over: Partial<Alarm> = {}): Alarm => ({
  key,
  kind: "notFollowed",
  severity: "warning",
  state: "open",
  since: at("05:00"),
  lastSeen: at("05:00"),
  goneSince: null,
  clearedAt: null,
  count: 1,
  subject: key,
  message: key,
  action: "look",
  acknowledged: null,
  ...over,
});

const problem = (kind: SiteProblem["kind"], subject: string | null): SiteProblem => ({
  since: null,
  kind,
  subject,
  message: kind,
  action: "look",
});

const unknown = (charger: string) => aShownCharger({ charger, vehicle: null, occupant: "unknown" });

describe("open tasks of a person", () => {
  test("the gravest stands first, what a person acknowledged last, and what cleared is gone", () => {
    const alarms = [
      alarm("seen", { severity: "critical", state: "acknowledged" }),
      alarm("over", { state: "cleared" }),
      alarm("warns"),
      alarm("grave", { severity: "critical" }),
    ];
    expect(troubles(alarms, null, [], []).map(({ key }) => key)).toEqual(["grave", "warns", "seen"]);
  });

  test("a fact is named once: as an alarm, a problem, or a charger to check", () => {
    const status = {
      ...STATUS,
      problems: [problem("notFollowed", "bay-01"), problem("silent", "bay-02"), problem("disk", null)],
    };
    const found = troubles(
      [alarm("bay-01")],
      status,
      [unknown("bay-01"), unknown("bay-02"), unknown("bay-03")],
      [{ id: "veh-2", name: "Bus 2", charger: "bay-02", command: null, planned: [], departure: null }],
    );
    expect(found.map(({ key, vehicle }) => [key, vehicle])).toEqual([
      ["bay-01", null],
      ["disk null", null],
      ["silent bay-02", "veh-2"],
      ["look bay-03", null],
    ]);
  });

  test("an unknown vehicle is named by its identity, once a decision has it", () => {
    const occupant = { kind: "unknown", said: "rfid 04A2" } as const;
    const reason = { occupant } as NonNullable<ReturnType<typeof unknown>["reason"]>;
    const found = troubles([], null, [unknown("bay-01"), { ...unknown("bay-02"), reason }], []);
    expect(found.map(({ message }) => message)).toEqual([
      "bay-01: an unknown vehicle is plugged in",
      "bay-02: an unknown vehicle is plugged in (rfid 04A2)",
    ]);
  });
});

const departure = (vehicle: string, over: Partial<Departure> = {}): Departure => ({
  ...aDeparture,
  vehicle,
  at: at("05:40"),
  state: "onTime",
  slackS: null,
  ...over,
});

describe("departures", () => {
  test("the least slack stands first, the unknown by time, and what left a quarter of an hour ago is gone", () => {
    const all = [
      departure("unknown-late", { at: at("07:00") }),
      departure("unknown-soon", { at: at("06:00") }),
      departure("tight", { slackS: 60 }),
      departure("short", { slackS: -2520 }),
      departure("left", { at: at("05:00"), slackS: 0 }),
    ];
    expect(leavingNext(all, ms("05:20")).map(({ vehicle }) => vehicle)).toEqual([
      "short",
      "tight",
      "unknown-soon",
      "unknown-late",
    ]);
  });

  test.each([
    [{ state: "short" }, "SHORT"],
    [{ state: "ready", slackS: -1 }, "ready"],
    [{ slackS: null }, "not known"],
    [{ slackS: -1 }, "SHORT"],
    [{ slackS: 899 }, "tight"],
    [{ slackS: 900 }, "makes it"],
  ] as const)("%j is shown as %s", (over, word) => {
    expect(slackState(departure("veh-1", over)).word).toBe(word);
  });
});
