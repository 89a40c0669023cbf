import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";

import { readingsOf } from "../../../src/reporting/reading.ts";
import { after, chargerId, type Instant, millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import {
  pruneReadings,
  putReadings,
  queryReadings,
  querySeats,
} from "../../../src/store/postgres/readings.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { NOON } from "../sqlite/words.ts";
import { aFleetOf } from "./fleetRows.ts";
import { aCluster } from "./state.ts";

const bay = chargerId("bay-01");
const bus = vehicleId("veh-214");
const DAY = 24 * 60;
const second = (n: number): Instant => after(NOON, millis(n * 1000));
const powers = (at: readonly Instant[], power: number, charger = bay) =>
  at.flatMap((each) => readingsOf({ charger, vehicle: bus }, { at: each, powerW: power }, each, null));
const seconds = (count: number, every = 1): readonly Instant[] =>
  Array.from({ length: count }, (_, n) => second(n * every));

describe.skipIf(postgresMissing() !== null)("readings in PostgreSQL", () => {
  const cluster = aCluster();
  /** Two sites of one database. */
  const twoSites = async () => {
    const { sites, database, sql } = await aFleetOf(cluster());
    await sites.put(["a", "b"].map((site) => ({ site, file: "{}", vehicles: [] })));
    const of = (site: string) => ({ database, site, siteKey: randomBytes(32) });
    const foreign: Instant[] = [];
    const found = async (from: ReturnType<typeof of>, since: Instant, until: Instant) =>
      (
        await queryReadings(
          from,
          [{ chargers: [bay], from: since, until }],
          ({ at }) => foreign.push(at),
          async () => {},
        )
      ).map(({ at }) => at);
    return { a: of("a"), b: of("b"), found, foreign, sql };
  };
  const ALWAYS = after(NOON, minutes(400 * DAY));

  test("a reading is found from its own time on, until before the end, and in its own site only", async () => {
    const { a, b, found, foreign } = await twoSites();
    await putReadings(a, 0, powers(seconds(3), 1));
    await putReadings(b, 0, powers([second(1)], 2));
    expect(await found(a, second(0), second(2))).toEqual([second(0), second(1)]);
    expect(await found(a, second(2), second(2))).toEqual([]);
    expect(await found(b, second(0), ALWAYS)).toEqual([second(1)]);
    expect(await querySeats(b, vehicleId("veh-9"), [{ from: second(0), until: ALWAYS }])).toEqual([[]]);
    expect(await querySeats(b, bus, [{ from: second(0), until: second(1) }])).toEqual([[bay]]);
    expect(foreign).toEqual([]);
  });

  test("what a vehicle did in a month of windows takes two statements, not two for each window", async () => {
    const { a } = await twoSites();
    const windows = Array.from({ length: 34 }, (_, n) => ({
      from: after(NOON, minutes(n * DAY)),
      until: after(NOON, minutes(n * DAY + 60)),
    }));
    await putReadings(
      a,
      0,
      powers(
        windows.map(({ from }) => from),
        1,
      ),
    );
    let statements = 0;
    const query: typeof a.database.query = (...asked) => {
      statements += 1;
      return a.database.query(...asked);
    };
    const counted = { ...a, database: { query } };
    const seats = await querySeats(counted, bus, windows);
    expect(seats).toEqual(windows.map(() => [bay]));
    const asked = windows.map((window, index) => ({ ...window, chargers: seats[index] ?? [] }));
    let pauses = 0;
    const found = await queryReadings(
      counted,
      asked,
      () => expect.unreachable(),
      async () => void (pauses += 1),
    );
    expect(found.map(({ at }) => at)).toEqual(windows.map(({ from }) => from));
    expect([statements, pauses]).toEqual([2, 34]);
  });

  test("past their number the oldest readings of a site go first, and its count stays right", async () => {
    const { a, b, found } = await twoSites();
    await putReadings(a, 0, powers(seconds(100), 1));
    // Stored again: none is counted twice.
    await putReadings(a, 0, powers(seconds(100), 1));
    await putReadings(b, 0, powers(seconds(5), 1));
    const now = second(300);
    expect(await pruneReadings(a, 0, now, minutes(60), 50)).toEqual({ rows: 50, leftEarly: true });
    expect(await found(a, NOON, ALWAYS)).toHaveLength(50);
    expect((await found(a, NOON, ALWAYS))[0]).toBeGreaterThanOrEqual(second(40));
    expect(await pruneReadings(a, 0, now, minutes(60), 50)).toEqual({ rows: 50, leftEarly: false });
    expect(await found(b, NOON, ALWAYS)).toHaveLength(5);
  });

  test("a closed report beyond the newest 10,000 takes its body along, in its own site only", async () => {
    const { a, sql } = await twoSites();
    await sql(`INSERT INTO body (site, kind, id, open, body, mac)
      SELECT site, kind, 'EV-1/0/' || n, n = 1, '', '' FROM unnest(ARRAY['a', 'b']) AS site,
      unnest(ARRAY['report', 'report_body']) AS kind, generate_series(1, 10003) AS n ORDER BY n`);
    await pruneReadings(a, 0, second(0), minutes(60), 50);
    const left = await sql(
      "SELECT site, kind, count(*)::int AS count FROM body GROUP BY site, kind ORDER BY site, kind",
    );
    expect(left).toEqual([
      { site: "a", kind: "report", count: 10_001 },
      { site: "a", kind: "report_body", count: 10_001 },
      { site: "b", kind: "report", count: 10_003 },
      { site: "b", kind: "report_body", count: 10_003 },
    ]);
  });

  test("readings that are too old go, with the days on which a vehicle was somewhere", async () => {
    const { a, found } = await twoSites();
    await putReadings(a, 0, powers([second(0), second(60), second(120)], 1));
    expect(await pruneReadings(a, 0, second(120 + 3600), minutes(60), 50)).toEqual({
      rows: 1,
      leftEarly: false,
    });
    expect(await found(a, NOON, ALWAYS)).toEqual([second(120)]);
    await pruneReadings(a, 0, after(NOON, minutes(3 * DAY)), minutes(60), 50);
    expect(await querySeats(a, bus, [{ from: NOON, until: ALWAYS }])).toEqual([[]]);
  });

  test("while the clock is not confirmed nothing is too old and nothing is thinned, but readings above the limit go", async () => {
    const { a, found } = await twoSites();
    await putReadings(a, 0, powers(seconds(120), 1));
    const ahead = after(NOON, minutes(365 * DAY));
    expect(await pruneReadings(a, 0, ahead, null, 200)).toEqual({ rows: 120, leftEarly: false });
    expect(await querySeats(a, bus, [{ from: NOON, until: ALWAYS }])).toEqual([[bay]]);
    expect((await pruneReadings(a, 0, ahead, null, 100)).rows).toBe(100);
    expect(await found(a, NOON, ALWAYS)).toHaveLength(100);
  });

  test("after eight days one reading a minute of each charger stays, the last one", async () => {
    const { a, b, found, sql } = await twoSites();
    const other = chargerId("bay-02");
    await putReadings(a, 0, powers(seconds(8, 20), 1));
    await putReadings(a, 0, powers([second(0)], 1, other));
    await putReadings(b, 0, powers(seconds(8, 20), 1));
    const all = await found(a, NOON, ALWAYS);
    const keep = minutes(30 * DAY);
    await pruneReadings(a, 0, after(NOON, minutes(8 * DAY)), keep, 1e6);
    expect(await found(a, NOON, ALWAYS)).toEqual(all);
    expect((await pruneReadings(a, 0, after(NOON, minutes(8 * DAY + 1)), keep, 1e6)).rows).toBe(7);
    expect(await found(a, NOON, ALWAYS)).toEqual(all.slice(2));
    await pruneReadings(a, 0, after(NOON, minutes(9 * DAY)), keep, 1e6);
    expect(await found(a, NOON, ALWAYS)).toEqual([second(40), second(100), second(140)]);
    expect(await found(b, NOON, ALWAYS)).toHaveLength(8);
    expect(await sql("SELECT readings FROM site ORDER BY id")).toEqual([{ readings: 4 }, { readings: 8 }]);
  });

  test("a process that leads no longer stores and prunes nothing", async () => {
    const { a, found } = await twoSites();
    await putReadings(a, 0, powers(seconds(3), 1));
    await putReadings(a, 7, powers([second(10)], 1));
    await pruneReadings(a, 7, after(NOON, minutes(3 * DAY)), minutes(60), 1);
    expect(await found(a, NOON, ALWAYS)).toHaveLength(3);
  });

  test("a reading that another program changed is left out and named", async () => {
    const { a, found, foreign, sql } = await twoSites();
    await putReadings(a, 0, powers(seconds(2), 1));
    await sql("UPDATE reading SET at = at + 1 WHERE at = $1", [second(1)]);
    expect(await found(a, NOON, ALWAYS)).toEqual([second(0)]);
    expect(foreign).toEqual([second(1) + 1]);
  });
});
