import { expect, test } from "vitest";

import { type Instant, instant } from "../../src/domain/units.ts";
import { problemsOf } from "../../src/ocpp/problems.ts";
import type { Station } from "../../src/ocpp/station.ts";
import { type Counted, StationCounts } from "../../src/ocpp/stationCounts.ts";

const NOW = instant(Date.parse("2026-11-23T12:00:00Z"));
const HOUR = 3_600_000;
const outlet = { unit: null, phases: 3, voltage: 230, id: 1 };

type Outlets = readonly {
  readonly connector: {
    readonly applied: { readonly reported: object | null };
    readonly amperes: number | null;
  };
  readonly config: object;
}[];

/** Problems of a station that is ready, after these counted events. */
function problems(
  counted: readonly Counted[],
  {
    at = NOW,
    away = 0,
    smartCharging = true,
    upstream = null,
    outlets = [],
  }: {
    readonly at?: Instant;
    readonly away?: number;
    readonly smartCharging?: boolean;
    readonly upstream?: object | null;
    readonly outlets?: Outlets;
  } = {},
): readonly string[] {
  const counts = new StationCounts(() => clock);
  let clock = NOW;
  for (const kind of counted) counts.add(kind);
  clock = at;
  const life = { kind: "ready", on: { upstream }, capabilities: { smartCharging } };
  const station = { life, counts, outlets, absentFor: () => away } as unknown as Station;
  return problemsOf(station, at).map(({ kind }) => kind);
}

/** An outlet that accepted 16 A and reports another limit. */
const reporting = (value: number) => ({
  outlets: [{ connector: { applied: { reported: { value, unit: "A" } }, amperes: 16 }, config: outlet }],
});

test("a fault is a problem for an hour after its last occurrence, and counted for good", () => {
  expect(problems(["unanswered"])).toEqual(["unanswered"]);
  expect(problems(["unanswered"], { at: instant(NOW + HOUR) })).toEqual([]);
  const counts = new StationCounts(() => NOW);
  counts.add("boots");
  expect([counts.of("boots"), counts.all.boots, counts.recent("replaced")]).toEqual([1, 1, 0]);
});

test("an accidental failure is a problem only when it happens often", () => {
  expect(problems(["replaced", "replaced", "bootsAfterProfile"])).toEqual([]);
  expect(problems(["replaced", "replaced", "replaced"])).toEqual(["duplicateIdentity"]);
});

test("a charger without Smart Charging, and one that is away for more than 5 minutes, are problems", () => {
  expect(problems([], { smartCharging: false })).toEqual(["noSmartCharging"]);
  expect([problems([], { away: 300_000 }), problems([], { away: 300_001 })]).toEqual([[], ["absent"]]);
});

test("a charger that reports a higher limit than it accepted is a problem", () => {
  expect([problems([], reporting(16.4)), problems([], reporting(32))]).toEqual([[], ["ignoresLimit"]]);
});

const beside = (isOutranked: boolean) => ({
  outlets: [{ connector: { applied: { reported: null }, amperes: null, isOutranked }, config: outlet }],
  upstream: { isUp: true, waiting: 0, counts: { refused: 0 } },
});

test("an upstream that is away or refuses, and one whose profile cannot be outranked, are problems", () => {
  const away = { isUp: false, waiting: 3, counts: { refused: 1 } };
  expect(problems([], { upstream: away })).toEqual(["upstreamAway", "messageRefused"]);
  expect(problems(["foreignProfiles"], beside(false))).toEqual([]);
  expect(problems(["foreignProfiles"], beside(true))).toEqual(["profilesOfUpstream"]);
});
