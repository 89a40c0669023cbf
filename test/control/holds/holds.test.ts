import {
  array,
  assert,
  boolean,
  constant,
  double,
  integer,
  oneof,
  option,
  property,
  record,
  shuffledSubarray,
  type Arbitrary,
} from "fast-check";
import { expect, test } from "vitest";

import { limit } from "../../../src/control/decide/limits.ts";
import { verdict } from "../../../src/control/decide/verdict.ts";
import {
  formatEnd,
  formatHold,
  holdFacts,
  applyingHold,
  Holds,
  newestFirst,
  restoredHold,
} from "../../../src/control/holds/holds.ts";
import {
  cappedAfterJump,
  heldAfterJump,
  deliveredWh,
  endOf,
  formatHoldLevel,
  type Hold,
  isRelease,
  LONGEST_HOLD,
  storedHold,
} from "../../../src/domain/hold.ts";
import {
  after,
  amperes,
  chargerId,
  eventId,
  instant,
  iso,
  millis,
  vehicleId,
  watts,
} from "../../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";
import { aLevelHold, aRelease } from "../../support/aHold.ts";
import { inForce } from "../../support/aVerdict.ts";
import { aDispatch, at } from "../../support/anEvent.ts";

const [bay, bus] = [chargerId("bay-01"), vehicleId("veh-214")];
const holdsOf = (...holds: readonly Hold[]): Holds => {
  const all = new Holds();
  for (const hold of holds) all.put(hold);
  return all;
};
const idsOf = (holds: readonly Hold[]) => holds.map(({ id }) => id);
const vehicleHold = aLevelHold({ id: "hold-7-2", scope: { kind: "vehicle", vehicle: bus } });
const siteHold = aLevelHold({ id: "hold-7-9", scope: { kind: "site" } });
const meter = { charger: bay, register: "energyWh", fromWh: 100, deliveredWh: 0 } as const;
const energyHold = aLevelHold({ id: "hold-7-4", end: { kind: "energy", wh: 5000, meter } });

test("narrower holds come first, of these the newest, and those of other chargers not at all", () => {
  const other = aLevelHold({ id: "hold-7-3", scope: { kind: "charger", charger: chargerId("bay-02") } });
  const all = holdsOf(aLevelHold(), siteHold, vehicleHold, other);
  expect(idsOf(all.over(bay, bus, at("05:30")))).toEqual(["hold-7-2", "hold-7-1", "hold-7-9"]);
  expect(idsOf(all.over(bay, null, at("05:30")))).toEqual(["hold-7-1", "hold-7-9"]);
  expect(idsOf(all.over(bay, bus, at("06:00")))).toEqual([]);
  expect(new Holds().over(bay, bus, at("05:30"))).toEqual([]);
});

test("a hold is put again in its new state, ends, and is deleted", () => {
  const all = holdsOf(aLevelHold(), vehicleHold, siteHold, energyHold);
  expect(idsOf(all.watching(bay))).toEqual(["hold-7-4"]);
  expect(all.watching(chargerId("bay-09"))).toEqual([]);
  for (const hold of [aLevelHold(), vehicleHold, siteHold, energyHold])
    all.put({ ...hold, ended: { at: at("05:40"), by: "ben", why: "done" } });
  expect([all.open(), all.over(bay, bus, at("05:30")), all.watching(bay)]).toEqual([[], [], []]);
  expect(all.all()).toHaveLength(4);
  expect(idsOf(all.due(after(at("05:40"), LONGEST_HOLD))).toSorted()).toEqual([
    "hold-7-1",
    "hold-7-2",
    "hold-7-4",
    "hold-7-9",
  ]);
  all.delete("hold-7-1");
  all.delete("hold-7-1");
  expect(all.get("hold-7-1")).toBeUndefined();
  const gone = holdsOf(aLevelHold());
  gone.delete("hold-7-1");
  expect(gone.due(at("07:00"))).toEqual([]);
  all.clear();
  expect([all.all(), all.next()]).toEqual([[], undefined]);
});

test("a hold that ended while the clock was in 1970 is known for a day all the same", () => {
  const all = new Holds();
  all.put({ ...aLevelHold(), ended: { at: instant(100_000), by: "setpointd", why: "unplugged" } });
  const { since } = aLevelHold();
  expect(idsOf(all.due(after(since, millis(LONGEST_HOLD - 1))))).toEqual([]);
  expect(idsOf(all.due(after(since, LONGEST_HOLD)))).toEqual(["hold-7-1"]);
});

test("the effect of a hold is new once, and again after it was nothing", () => {
  const all = new Holds();
  expect(all.noteEffect(bay, "EV-1")).toBe(true);
  expect(all.noteEffect(bay, "EV-1")).toBe(false);
  expect(all.noteEffect(bay, null)).toBe(false);
  expect(all.noteEffect(bay, "EV-1")).toBe(true);
});

test("a key finds its hold, a charger its release, and events in use are those of open holds", () => {
  const all = holdsOf(aLevelHold({ id: "hold-7-5", key: "k1 abc" }), aRelease(), energyHold);
  expect(all.withKey("k1")?.id).toBe("hold-7-5");
  expect(all.withKey("k")).toBeUndefined();
  expect(all.releaseOf(bay)?.id).toBe("hold-7-1");
  expect(all.releaseOf(chargerId("bay-02"))).toBeNull();
  expect(all.events()).toEqual(["EV-7731"]);
  expect(new Holds().open()).toEqual([]);
});

test("the newest hold is the last opened, at any clock, and the holds of earlier versions are the oldest", () => {
  const [a, b, c] = [
    aLevelHold({ id: "hold-8-1" }),
    aLevelHold({ id: "hold-7-20" }),
    aLevelHold({ id: "bay-01" }),
  ];
  const d = aLevelHold({ id: "bay-02", since: at("04:00") });
  expect(idsOf([d, c, b, a].toSorted(newestFirst))).toEqual(["hold-8-1", "hold-7-20", "bay-01", "bay-02"]);
});

test("an exemption from events that are not in force leaves a level of before in place", () => {
  const ranked = inForce([aDispatch()], settingsWith());
  expect(applyingHold([aRelease("bay-01", ["EV-0"]), vehicleHold], ranked)?.id).toBe("hold-7-2");
  expect(applyingHold([aRelease(), vehicleHold], ranked)?.id).toBe("hold-7-1");
  expect(applyingHold([], ranked)).toBeNull();
});

test("a hold of an earlier version is a release of its charger", () => {
  const stored = { charger: bay, events: [eventId("EV-1")], since: at("05:00"), until: at("06:00") };
  const hold = storedHold(stored);
  expect(hold).toMatchObject({ id: "bay-01", level: null, cap: null, end: { latest: at("06:00") } });
  expect(isRelease(hold)).toBe(true);
  expect([storedHold(siteHold), isRelease(siteHold)]).toEqual([siteHold, false]);
});

test("a day is the longest duration, also where the clock was set back, and from a restart on", () => {
  const hold = aLevelHold({ end: { kind: "at", at: at("06:00") }, cap: at("06:00") });
  expect(cappedAfterJump(hold, 600_000).cap).toBe(at("05:50"));
  expect(endOf(cappedAfterJump(hold, 600_000))).toBe(at("05:50"));
  expect(cappedAfterJump(aRelease(), 600_000)).toEqual(aRelease());
  expect(restoredHold(hold, instant(at("05:00") - LONGEST_HOLD)).cap).toBe(at("05:00"));
  expect(restoredHold(aRelease(), at("05:00"))).toEqual(aRelease());
  expect(endOf({ ...energyHold, cap: null })).toBe(after(energyHold.since, LONGEST_HOLD));
});

test("the opening moves with a clock that is set back, each time, where a report of the charger ends the hold", () => {
  const back = heldAfterJump(heldAfterJump(energyHold, 600_000), 600_000);
  expect(back.openedAt).toBe(energyHold.since - 1_200_000);
  expect(restoredHold(back, energyHold.since).openedAt).toBe(back.openedAt);
  expect(heldAfterJump(aRelease(), 600_000)).toEqual(aRelease());
});

test("energy is never counted backwards", () => {
  expect(deliveredWh(meter, 600)).toBe(500);
  expect(deliveredWh(meter, 50)).toBe(0);
});

const clock = (moment: number) => iso(instant(moment)).slice(11, 16);

test("each end and scope has its text and its facts", () => {
  const cap = at("23:00");
  expect(formatEnd(aLevelHold(), clock)).toBe("until 06:00");
  expect(
    formatEnd({ ...energyHold, end: { kind: "unplugged", charger: bay, vehicle: bus }, cap }, clock),
  ).toBe("until unplugged, at the latest 23:00");
  expect(formatEnd({ ...energyHold, cap }, clock)).toBe("until 5 kWh are delivered, at the latest 23:00");
  expect(formatEnd(aRelease(), clock)).toBe("until EV-7731 is over");
  const many = aRelease("bay-01", ["EV-1", "EV-2", "EV-3", "EV-4", "EV-5", "EV-6"]);
  expect(formatEnd(many, clock)).toBe("until EV-1, EV-2, EV-3, EV-4, EV-5 and 1 more are over");
  expect(formatHold(siteHold, clock)).toBe("hold hold-7-9 of anna on the site: 10 A until 06:00");
  expect(formatHold(vehicleHold, clock)).toContain("on veh-214: 10 A");
  expect(holdFacts(siteHold)).toMatchObject({
    scope: { site: true },
    kind: "level",
    level: { currentA: 10 },
  });
  expect(holdFacts(vehicleHold)).toMatchObject({ scope: { vehicle: "veh-214" }, events: [] });
  expect(holdFacts({ ...many, cap: null })).toMatchObject({ kind: "exempt", level: null, eventCount: 6 });
  expect(holdFacts({ ...energyHold, cap: null })).toMatchObject({
    until: iso(after(energyHold.since, LONGEST_HOLD)),
    end: "energy",
  });
  expect(formatHoldLevel(aRelease())).toBe("exempt");
});

const level = oneof(
  double({ min: 0.1, max: 500, noNaN: true }).map(
    (value) => ({ kind: "current", amperes: amperes(value) }) as const,
  ),
  double({ min: 1, max: 500_000, noNaN: true }).map(
    (value) => ({ kind: "power", watts: watts(value) }) as const,
  ),
  constant({ kind: "pause" } as const),
);
const events = array(
  record({ amperes: integer({ min: 0, max: 80 }), priority: integer({ min: 0, max: 3 }) }),
  {
    maxLength: 4,
  },
).map((all) =>
  all.map((one, index) =>
    aDispatch(
      { setpoint: { kind: "current", amperes: amperes(one.amperes) } },
      { id: `EV-${index}`, priority: one.priority },
    ),
  ),
);

test("a hold never raises a charger above its limits or those of its vehicle, whatever the events", () => {
  assert(
    property(
      level,
      events,
      option(integer({ min: 1, max: 63 })),
      boolean(),
      (asked, dispatches, vehicleMax, takesWatts) => {
        const charger = aCharger({ takesWatts });
        const vehicle = aVehicle({ maxCurrent: vehicleMax === null ? null : amperes(vehicleMax) });
        const found = verdict({
          charger,
          vehicle,
          occupant: { kind: "vehicle", vehicle: vehicle.id, source: "fixed" },
          inForce: inForce(dispatches, settingsWith()),
          hold: aLevelHold({ level: asked }),
          measuredVoltage: null,
          measuredPhases: null,
        });
        const most = Math.min(32, vehicleMax ?? Infinity);
        const { desired } = found;
        if (desired.kind === "current") expect(desired.amperes).toBeLessThanOrEqual(most);
        else if (desired.kind === "power") expect(desired.watts).toBeLessThanOrEqual(most * 690);
        else expect(desired.kind).toBe("pause");
        if (asked.kind !== "pause") expect(desired).toEqual(limit(asked, charger, vehicle).desired);
        expect([found.winner, found.overruledCount]).toEqual([null, dispatches.length]);
      },
    ),
  );
});

test("every hold ends: time alone ends each one but an exemption from events, within a day of its opening", () => {
  const end: Arbitrary<Hold["end"]> = oneof(
    integer({ min: 1, max: LONGEST_HOLD }).map(
      (ms) => ({ kind: "at", at: after(at("05:00"), millis(ms)) }) as const,
    ),
    constant({ kind: "unplugged", charger: bay, vehicle: bus } as const),
    constant(energyHold.end),
    constant({ kind: "events", events: [eventId("EV-1")], latest: instant(Infinity) } as const),
  );
  const jumps = array(integer({ min: 1, max: 3 * LONGEST_HOLD }), { maxLength: 3 });
  assert(
    property(end, level, jumps, (kind, asked, back) => {
      const opened = aLevelHold({
        end: kind,
        level: asked,
        since: at("05:00"),
        cap: after(at("05:00"), LONGEST_HOLD),
      });
      const hold = back.reduce(cappedAfterJump, opened);
      const shift = back.reduce((sum, jump) => sum + jump, 0);
      // By the clock that was set back, a day of real time after the opening.
      const last = instant(after(at("05:00"), LONGEST_HOLD) - shift);
      expect(endOf(hold)).toBeLessThanOrEqual(last);
      expect(holdsOf(hold).over(bay, bus, last)).toEqual([]);
      // No earlier than asked by more than the jumps.
      expect(endOf(hold)).toBeGreaterThanOrEqual(endOf(opened) - shift);
    }),
  );
});

test("the hold that applies is a function of what is stored: any order of loading gives the same", () => {
  const stored = [aLevelHold(), vehicleHold, siteHold, energyHold, aRelease("bay-01", ["EV-1"])].map(
    (hold, index) => ({
      ...hold,
      id: `hold-7-${index + 1}`,
    }),
  );
  const expected = idsOf(holdsOf(...stored).over(bay, bus, at("05:30")));
  assert(
    property(shuffledSubarray(stored, { minLength: stored.length }), (order) => {
      expect(idsOf(holdsOf(...order).over(bay, bus, at("05:30")))).toEqual(expected);
    }),
  );
});
