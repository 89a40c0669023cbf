import { describe, expect, test, vi } from "vitest";

import { textOf } from "../../src/domain/audit.ts";
import { vehicleId } from "../../src/domain/units.ts";
import { SqliteStore } from "../../src/store/sqlite/store.ts";
import { aDepot } from "../support/aDepot.ts";
import type { TestDepot } from "../support/testDepot.ts";

/** A depot with two buses at 01:00 of 2026-11-21, in UTC. */
const aSite = (): Promise<TestDepot> =>
  aDepot()
    .withVehicle("v1", "bay-01", { name: "Bus 1", departures: [{ at: "05:40", energy: 40 }] })
    .withVehicle("v2", "bay-02", { name: "Bus 2" })
    .startingAt("01:00")
    .withDepartures()
    .running();

/** A store whose next commits succeed without an answer. */
function aLostAnswer() {
  const known = Promise.withResolvers<boolean>();
  const { committed } = SqliteStore.prototype;
  const lost = vi.spyOn(SqliteStore.prototype, "committed").mockImplementation(async function (
    this: SqliteStore,
  ) {
    await committed.call(this);
    return { ok: false, reason: "no answer", isUnsure: true, isStored: known.promise };
  });
  return { known, lost };
}

const shown = (depot: TestDepot): readonly string[] =>
  depot
    .departureList()
    .map((row) =>
      [...["vehicle", "at", "source", "by"].map((member) => textOf(row, member)), JSON.stringify(row["need"])]
        .map(String)
        .join(" "),
    );

describe("a day of the weekly departures that is skipped", () => {
  test("leaves the vehicle without a departure on that day, over a restart, until it is cleared", async () => {
    const depot = await aSite();
    const skip = (date: unknown) => depot.departures.api.skip("Bus 1", { date }, "kari");
    expect(await skip("2026-11-21")).toMatchObject({
      ok: true,
      value: {
        vehicle: "v1",
        date: "2026-11-21",
        next: { at: "2026-11-22T05:40:00.000Z", source: "weekly" },
      },
    });
    expect(await skip("2026-11-23")).toMatchObject({ value: { next: { at: "2026-11-22T05:40:00.000Z" } } });
    expect(depot.audit("operator")).toContain("kari skipped the departure of Bus 1 on 2026-11-21");
    await depot.restart();
    expect(shown(depot)).toEqual(['v1 2026-11-22T05:40:00.000Z weekly null {"energyWh":40000}']);
    await depot.setDeparture("v1", { at: "2026-11-22T07:00:00Z", soc: 80 });
    await depot.until("2026-11-22T08:00");
    expect(shown(depot)).toEqual(['v1 2026-11-24T05:40:00.000Z weekly null {"energyWh":40000}']);
    expect(await depot.departures.api.clear("v1", "ben")).toMatchObject({
      value: { next: { at: "2026-11-23T05:40:00.000Z" } },
    });
  });

  test("has no departure that was set for it either, and other days keep theirs", async () => {
    const depot = await aSite();
    for (const vehicle of ["v1", "v2"]) {
      await depot.setDeparture(vehicle, { at: "2026-11-21T04:30:00Z", soc: 80 });
      expect(await depot.departures.api.skip(vehicle, { date: "2026-11-21" }, "kari")).toMatchObject({
        ok: true,
      });
    }
    expect(shown(depot)).toEqual(['v1 2026-11-22T05:40:00.000Z weekly null {"energyWh":40000}']);
    expect(await depot.departures.api.skip("v2", { date: "2026-11-21" }, "kari")).toMatchObject({
      problem: { status: 400 },
    });
  });

  test("is refused where the vehicle does not leave, or has left", async () => {
    const depot = await aSite();
    const expected = expect.stringContaining("has a departure ahead");
    for (const [vehicle, date] of [
      ["v1", "2026-11-20"],
      ["v1", "tomorrow"],
      ["v1", 5],
      ["v2", "2026-11-21"],
    ] as const)
      expect(await depot.departures.api.skip(vehicle, { date }, "kari")).toMatchObject({
        problem: { status: 400, errors: [{ path: "date", expected }] },
      });
    expect(await depot.departures.api.skip("v9", { date: "2026-11-21" }, "kari")).toMatchObject({
      problem: { status: 404 },
    });
  });
});

describe("a departure that is set", () => {
  test("replaces the weekly one of its day, is on record with the name of the person, and is listed", async () => {
    const depot = await aSite();
    const answer = await depot.setDeparture("bus 1", { at: "04:30", energyWh: 18_000 }, "kari");
    expect(answer).toMatchObject({
      ok: true,
      value: { vehicle: "v1", at: "2026-11-21T04:30:00.000Z", source: "api", by: "kari" },
    });
    expect(shown(depot)).toEqual(['v1 2026-11-21T04:30:00.000Z api kari {"energyWh":18000}']);
    const words = depot.audit("operator");
    expect(words).toContain("kari set the departure of Bus 1: 04:30:00 with 18 kWh");
  });

  test("survives a restart, and the weekly one applies again once it is cleared", async () => {
    const depot = await aSite();
    await depot.setDeparture("v2", { at: "2026-11-22T06:00:00+01:00", soc: 80 });
    await depot.restart();
    expect(shown(depot)).toEqual([
      'v1 2026-11-21T05:40:00.000Z weekly null {"energyWh":40000}',
      'v2 2026-11-22T05:00:00.000Z api anna {"soc":80}',
    ]);
    expect(await depot.departures.api.clear("v2", "ben")).toEqual({
      ok: true,
      value: { vehicle: "v2", next: null },
    });
    await depot.setDeparture("v1", { at: "05:30", soc: 70 });
    expect(await depot.departures.api.clear("v1", "ben")).toMatchObject({
      value: { next: { at: "2026-11-21T05:40:00.000Z", source: "weekly" } },
    });
    await depot.restart();
    expect(shown(depot)).toEqual(['v1 2026-11-21T05:40:00.000Z weekly null {"energyWh":40000}']);
  });

  test("of two that are set at once the second replaces the first, also in what is stored", async () => {
    const depot = await aSite();
    const answers = await Promise.all([
      depot.setDeparture("v2", { at: "05:30", soc: 70 }, "kari"),
      depot.setDeparture("v2", { at: "06:30", soc: 80 }, "ben"),
      depot.departures.api.skip("v1", { date: "2026-11-21" }, "kari"),
      depot.departures.api.skip("v1", { date: "2026-11-22" }, "ben"),
    ]);
    for (const answer of answers) expect(answer).toMatchObject({ ok: true });
    const expected = [
      'v2 2026-11-21T06:30:00.000Z api ben {"soc":80}',
      'v1 2026-11-23T05:40:00.000Z weekly null {"energyWh":40000}',
    ];
    expect(shown(depot)).toEqual(expected);
    await depot.restart();
    expect(shown(depot)).toEqual(expected);
  });

  test("is in force once it is known to be stored, and no other is taken until then", async () => {
    const depot = await aSite();
    const { known, lost } = aLostAnswer();
    const title = "it is not known whether this was stored";
    const first = depot.setDeparture("v2", { at: "05:30", soc: 70 }, "kari");
    expect(await first).toMatchObject({ problem: { status: 503, title } });
    lost.mockRestore();
    const second = () => depot.setDeparture("v2", { at: "06:30", soc: 80 }, "ben");
    expect(await second()).toMatchObject({
      problem: { status: 503, title: expect.stringMatching(/^nothing/) },
    });
    // What is perhaps set is not missing.
    const cleared = await depot.departures.api.clear("v2", "ben");
    expect(cleared).toMatchObject({ problem: { status: 503, title: expect.stringMatching(/^nothing/) } });
    known.resolve(true);
    await depot.until("01:01");
    expect(shown(depot)).toContain('v2 2026-11-21T05:30:00.000Z api kari {"soc":70}');
    expect(await second()).toMatchObject({ ok: true });
    expect(depot.storedDepartures().map(({ by }) => by)).toEqual(["ben"]);
  });

  test("is refused when it cannot be stored, and nothing changes", async () => {
    const depot = await aSite();
    depot.disk.full = true;
    expect(await depot.setDeparture("v1", { at: "05:30", soc: 70 })).toMatchObject({
      problem: { status: 503 },
    });
    expect(await depot.departures.api.importCsv("vehicle,at,soc\nv1,05:30,70", "kari", null)).toMatchObject({
      problem: { status: 503 },
    });
    depot.disk.full = false;
    await depot.setDeparture("v2", { at: "05:30", soc: 70 });
    depot.disk.full = true;
    expect(await depot.departures.api.clear("v2", "kari")).toMatchObject({ problem: { status: 503 } });
    depot.disk.full = false;
    expect(shown(depot)).toHaveLength(2);
  });

  test("that has passed still replaces the weekly ones of its day, and is forgotten the day after", async () => {
    const depot = await aSite();
    await depot.setDeparture("v1", { at: "02:00", soc: 70 });
    await depot.until("02:05");
    expect(shown(depot)).toEqual(['v1 2026-11-22T05:40:00.000Z weekly null {"energyWh":40000}']);
    await depot.restart();
    expect(shown(depot)).toEqual(['v1 2026-11-22T05:40:00.000Z weekly null {"energyWh":40000}']);
    await depot.until("2026-11-22T04:05:00Z");
    expect(depot.departures.setFor(vehicleId("v1"))).toEqual([]);
  });

  test.each([
    [{ at: "25:00", soc: 80 }, ["at"]],
    [{ at: "2026-11-21T00:59:00Z", soc: 80 }, ["at"]],
    [{ at: "2027-01-21T00:59:00Z", soc: 80 }, ["at"]],
    [{ at: "2026-11-21T05:00:00", soc: 80 }, ["at"]],
    // A day that does not exist: JavaScript reads it as December 1.
    [{ at: "2026-11-31T05:00:00Z", soc: 80 }, ["at"]],
    [{ at: "2026-11-21T05:00:00+25:00", soc: 80 }, ["at"]],
    [{ at: 5, soc: 80 }, ["at"]],
    [{ at: "05:40", soc: 80, constructor: 1 }, ["constructor"]],
    [{ at: "05:40" }, ["energyWh"]],
    [{ at: "05:40", energyWh: 1, soc: 80 }, ["energyWh"]],
    [{ at: "05:40", energyWh: -1 }, ["energyWh"]],
    [{ at: "05:40", soc: "80" }, ["soc"]],
    [{ at: "05:40", soc: 101, when: 3 }, ["when", "soc"]],
    ["05:40", ["at", "energyWh"]],
    [null, ["at", "energyWh"]],
  ])("%j is refused with the path of each mistake", async (body, paths) => {
    const depot = await aSite();
    const answer = await depot.setDeparture("v1", body);
    expect(answer).toMatchObject({
      ok: false,
      problem: { status: 400, errors: paths.map((path) => ({ path })) },
    });
    expect(depot.departures.setFor(vehicleId("v1"))).toEqual([]);
  });

  test("with less than one Wh is not a departure that needs nothing", async () => {
    const depot = await aSite();
    expect(await depot.setDeparture("v1", { at: "05:40", energyWh: 0.4 })).toMatchObject({
      value: { need: { energyWh: 1 } },
    });
  });

  test("for an unknown vehicle, or a clear of nothing, is answered with 404", async () => {
    const depot = await aSite();
    const unknown = { problem: { status: 404, errors: [{ path: "vehicle", expected: "one of v1, v2" }] } };
    expect(await depot.setDeparture("v9", { at: "05:40", soc: 80 })).toMatchObject(unknown);
    expect(await depot.departures.api.clear("v9", "kari")).toMatchObject(unknown);
    expect(await depot.departures.api.clear("v1", "kari")).toMatchObject({
      problem: { status: 404, detail: expect.stringContaining("a weekly one of the configuration") },
    });
    expect(await depot.departures.api.clear("v2", "kari")).toMatchObject({
      problem: { status: 404, detail: "Bus 2 has no departure" },
    });
  });
});

const send = async (depot: TestDepot, text: unknown, key: string | null = null) => {
  const answer = depot.departures.api.importCsv(text, "kari", key);
  await depot.passes(10);
  return answer;
};

describe("a file of departures", () => {
  const BLOCKS = "vehicle,at,energyKwh,soc\nv1,05:10,30,\nv1,14:00,20,\nBus 2,00:30,,80\n";

  test("sets all of its departures, the next time of day each, and replaces those before", async () => {
    const depot = await aSite();
    await depot.setDeparture("v1", { at: "04:00", soc: 70 });
    expect(await send(depot, BLOCKS)).toEqual({ ok: true, value: { departures: 3, vehicles: 2 } });
    expect(shown(depot)).toEqual([
      'v1 2026-11-21T05:10:00.000Z csv kari {"energyWh":30000}',
      'v2 2026-11-22T00:30:00.000Z csv kari {"soc":80}',
    ]);
    await depot.restart();
    await depot.until("05:10");
    await depot.passes(61_000);
    expect(shown(depot)[0]).toBe('v1 2026-11-21T14:00:00.000Z csv kari {"energyWh":20000}');
  });

  test("with a mistake changes nothing, and names each line and column", async () => {
    const depot = await aSite();
    const text = "vehicle,at,soc\nv1,05:10,80\nv9,05:10,80\nv2,soon,80\nv1,05:10,70\nv2,05:10,full";
    expect(await send(depot, text)).toMatchObject({
      ok: false,
      problem: {
        status: 400,
        errors: [
          { path: "line 6, soc", found: "full" },
          { path: "line 3, vehicle", found: "v9" },
          { path: "line 4, at", found: "soon" },
          { path: "line 5, at", found: "05:10" },
        ],
      },
    });
    expect(await send(depot, "v1,05:10,80")).toMatchObject({ problem: { errors: [{ path: "line 1" }] } });
    expect(await send(depot, { vehicle: "v1" })).toMatchObject({ problem: { status: 400 } });
    expect(depot.departures.setFor(vehicleId("v1"))).toEqual([]);
  });

  test("sent again with its key gets the first answer; the key with another file is refused", async () => {
    const depot = await aSite();
    const first = await send(depot, BLOCKS, "k1");
    await depot.setDeparture("v1", { at: "04:00", soc: 70 });
    expect(await send(depot, BLOCKS, "k1")).toEqual(first);
    expect(shown(depot)[0]).toContain("04:00");
    expect(await send(depot, "vehicle,at,soc\nv1,05:10,80", "k1")).toMatchObject({
      problem: { status: 409 },
    });
    expect(await send(depot, "nonsense", "k2")).toMatchObject({ problem: { status: 400 } });
    expect(await send(depot, BLOCKS, "k2")).toMatchObject({ ok: true });
  });

  test.each([true, false])(
    "sent again with its key after an answer in doubt is on record once (it was stored: %s)",
    async (isStored) => {
      const depot = await aSite();
      const { known, lost } = aLostAnswer();
      expect(await send(depot, BLOCKS, "k1")).toMatchObject({ problem: { status: 503 } });
      lost.mockRestore();
      known.resolve(isStored);
      await depot.until("01:01");
      const before = depot.audit().length;
      expect(await send(depot, BLOCKS, "k1")).toEqual({ ok: true, value: { departures: 3, vehicles: 2 } });
      expect(depot.audit().length - before).toBe(isStored ? 0 : 3);
    },
  );

  test("of a departure that is being stored, a clear finds it", async () => {
    const depot = await aSite();
    const [, cleared] = await Promise.all([
      depot.setDeparture("v2", { at: "05:30", soc: 70 }),
      depot.departures.api.clear("v2", "kari"),
    ]);
    expect(cleared).toMatchObject({ ok: true });
  });
});
