import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { aSite, anEvent, startOf, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";

const SECOND = 1000;

interface StretchRow {
  readonly charger: string;
  readonly vehicle: string;
  readonly from: string;
  readonly until: string;
  readonly kind: string;
  readonly value: number | null;
  readonly unit: string | null;
  readonly event: string;
  readonly offsetMs: number;
  readonly reason: { readonly words: string };
}

interface DispatchRow {
  readonly event: string;
  readonly vehicle: string;
  readonly from: string;
  readonly until: string;
  readonly offsetMs: number;
}

function listFile(site: Site, events: unknown): string {
  const file = join(site.directory, "list.json");
  writeFileSync(file, JSON.stringify(events));
  return file;
}

const distance = (a: number, b: string): number => Math.abs(a - Date.parse(b));

describe.skipIf(!mosquittoAvailable)("plan and run agree", () => {
  test("plan shows the events of the list alone: an open hold changes nothing", async () => {
    await using site = await aSite();
    const event = anEvent("EV-1", { startIn: 600 * SECOND, lastsMs: 600 * SECOND, amperes: 10 });
    const file = listFile(site, [event]);
    const planned = async (): Promise<string> => {
      const { stdout, stderr } = await setpointd(["plan", "-c", site.config, "--events", file, "--json"]);
      expect(stderr).toBe("");
      return stdout;
    };
    const before = await planned();
    expect(JSON.parse(before)).toMatchObject([{ charger: "bay-01", value: 10, event: "EV-1" }]);
    await using daemon = await site.run();
    const until = new Date(Date.now() + 900 * SECOND).toISOString();
    const level = ["--level", "8A", "--reason", "leaves early", "--until", until];
    expect((await setpointd(["hold", "bay-01", "-c", site.config, ...level])).code).toBe(0);
    expect(await planned()).toBe(before);
    await daemon.end("SIGKILL");
    expect(await planned()).toBe(before);
  });

  test("run keeps every window, level and winner that plan printed, to within a second", async () => {
    await using site = await aSite({ pollEvery: "1s" });
    const { partner, floor } = site;
    await using daemon = await site.run();
    const begun = new Date().toISOString();
    const events = [
      anEvent("EV-long", {
        startIn: 4 * SECOND,
        randomizeStartMs: 2 * SECOND,
        lastsMs: 8 * SECOND,
        vehicles: ["veh-1", "veh-2", "veh-3", "not-ours"],
      }),
      anEvent("EV-urgent", {
        startIn: 7 * SECOND,
        lastsMs: 2 * SECOND,
        kilowatts: 5.5,
        priority: 1,
        vehicles: ["veh-1", "veh-2"],
      }),
      anEvent("EV-zero", { startIn: 5 * SECOND, lastsMs: 3 * SECOND, amperes: 0, vehicles: ["veh-4"] }),
    ].map((event) => partner.put(event));
    const list = listFile(site, events);
    const planned = await setpointd(["plan", "-c", site.config, "--events", list, "--json", "--at", begun]);
    expect([planned.code, planned.stderr]).toEqual([
      0,
      expect.stringMatching(/^event EV-long .*: 1 of its vehicles is not ours: not-ours\n$/),
    ]);
    const rows: StretchRow[] = JSON.parse(planned.stdout);

    expect(new Set(rows.map(({ charger }) => charger))).toEqual(
      new Set(["bay-01", "bay-02", "bay-03", "bay-04"]),
    );
    for (const charger of ["bay-01", "bay-02", "bay-03", "bay-04"]) {
      const own = rows.filter((row) => row.charger === charger);
      let count = 0;
      for (const [index, row] of own.entries()) {
        const { at, set } = await floor.nth(charger, ++count, 20_000);
        expect(distance(at, row.from)).toBeLessThan(SECOND);
        const { kind, value, unit, event, vehicle } = set;
        expect({ kind, value, unit, event, vehicle }).toEqual({
          kind: row.kind,
          value: row.value,
          unit: row.unit,
          event: row.event,
          vehicle: row.vehicle,
        });
        if (own[index + 1]?.from === row.until) continue;
        const end = await floor.nth(charger, ++count, 20_000);
        expect(end.set.kind).toBe("release");
        expect(distance(end.at, row.until)).toBeLessThan(SECOND);
      }
      expect(floor.sets(charger)).toHaveLength(count);
    }
    expect(rows.find(({ charger }) => charger === "bay-04")).toMatchObject({
      kind: "pause",
      value: null,
      unit: null,
    });
    expect(daemon.errors).toBe("");
  });

  test("plan prints exactly the members of the contract, offsets by the formula, and ends but not starts before --at", async () => {
    await using site = await aSite();
    const spread = 600 * SECOND;
    const later = anEvent("EV-2", {
      startIn: 3600 * SECOND,
      randomizeStartMs: spread,
      lastsMs: 1800 * SECOND,
      kilowatts: 7.4,
      priority: 3,
      vehicles: ["veh-2", "veh-1"],
    });
    const over = anEvent("EV-1", { startIn: -7200 * SECOND, lastsMs: 3600 * SECOND });
    const running = anEvent("EV-3", { startIn: -60 * SECOND, lastsMs: 600 * SECOND, vehicles: ["veh-3"] });
    const args = ["plan", "-c", site.config, "--events", listFile(site, [later, over, running])];
    const stretches: StretchRow[] = JSON.parse((await setpointd([...args, "--json"])).stdout);
    const dispatches: DispatchRow[] = JSON.parse((await setpointd([...args, "--dispatches"])).stdout);

    expect(stretches.map(({ event }) => event).toSorted()).toEqual(["EV-2", "EV-2", "EV-3"]);
    expect(stretches.find(({ event }) => event === "EV-3")?.from).toBe(running.intervalPeriod.start);
    const offsetMs = site.offset(later, "veh-1", spread);
    const from = new Date(startOf(later) + offsetMs).toISOString();
    const until = new Date(startOf(later) + offsetMs + 1800 * SECOND).toISOString();
    const level = { kind: "power", value: 7400, unit: "W" };
    expect(dispatches.find(({ event, vehicle }) => event === "EV-2" && vehicle === "veh-1")).toStrictEqual({
      event: "EV-2",
      vehicle: "veh-1",
      from,
      until,
      ...level,
      priority: 3,
      offsetMs,
    });
    const stretch = stretches.find(({ charger, event }) => event === "EV-2" && charger === "bay-01");
    expect(stretch).toStrictEqual({
      charger: "bay-01",
      vehicle: "veh-1",
      from,
      until,
      ...level,
      event: "EV-2",
      offsetMs,
      reason: stretch?.reason,
    });
    expect(stretch?.reason.words).toContain("EV-2");

    const early = await setpointd([...args, "--json", "--at", over.intervalPeriod.start]);
    expect(JSON.parse(early.stdout)).toHaveLength(4);
  });

  test("plan reads standard input, leaves out what it cannot read, names a level at the end, and asks for nothing but the configuration", async () => {
    await using site = await aSite();
    const good = anEvent("EV-1", { startIn: 60 * SECOND, lastsMs: 60 * SECOND });
    const args = ["plan", "-c", site.config, "--events", "-"];
    const planned = await setpointd([...args, "--json"], {
      input: JSON.stringify({ events: [good, { ID: "EV-2" }] }),
    });
    expect(planned.code).toBe(0);
    expect(planned.stderr).toContain("left out: [1]");
    expect(JSON.parse(planned.stdout)).toHaveLength(1);
    const told = await setpointd(args, { input: JSON.stringify([good]) });
    // One zone in a line, which the first one names.
    expect(told.stdout).toMatch(/^times in \S+\n(\S.*?) {2}(\S.*?) {2}bay-01 \(veh-1\) to 16 A until \2: /);
    const foreign = anEvent("EV-3", { lastsMs: 60 * SECOND, vehicles: ["veh-1", "theirs"] });
    const odd = await setpointd(args, { input: JSON.stringify([foreign]) });
    expect([odd.code, odd.stderr]).toEqual([
      0,
      expect.stringContaining("1 of its vehicles is not ours: theirs\n"),
    ]);
    site.configure({ control: { atEnd: { current: 10 } } });
    const kept = await setpointd(args, { input: JSON.stringify([good]) });
    expect(kept.stderr).toBe("bay-01: no release where its events end: 10 A instead, as atEnd says\n");
    const none = await setpointd([...args, "--json"], { input: "[]" });
    expect(none).toEqual({ code: 0, stdout: "[]\n", stderr: "" });
    expect(site.partner.faults.requests.token).toBe(0);
  });

  test("plan waits for the whole list on standard input, however slowly it is written", async () => {
    await using site = await aSite();
    const event = anEvent("EV-1", { startIn: 60 * SECOND, lastsMs: 60 * SECOND });
    // A pipe holds a small part of it, so that the reader is faster than the writer.
    const input = JSON.stringify([{ ...event, note: "x".repeat(8_000_000) }]);
    const planned = await setpointd(["plan", "-c", site.config, "--events", "-", "--json"], { input });
    expect(planned.stderr).toBe("");
    expect(JSON.parse(planned.stdout)).toHaveLength(1);
  });

  test("the plan of a large depot comes out whole, however slowly it is read", async () => {
    await using site = await aSite();
    const numbers = Array.from({ length: 1000 }, (_, index) => index + 1);
    site.configure({
      chargers: numbers.map((number) => ({ id: `bay-${number}`, current: { max: 32 } })),
      vehicles: numbers.map((number) => ({ id: `veh-${number}`, charger: `bay-${number}` })),
    });
    const vehicles = numbers.map((number) => `veh-${number}`);
    const event = anEvent("EV-1", { lastsMs: 60 * SECOND, randomizeStartMs: 60 * SECOND, vehicles });
    const args = ["plan", "-c", site.config, "--events", "-", "--json"];
    const planned = await setpointd(args, { input: JSON.stringify([event]) });
    expect(planned.code).toBe(0);
    expect(JSON.parse(planned.stdout)).toHaveLength(1000);
  });

  test("plan reports why a list cannot be planned, with exit code 1, and an unreadable moment with 2", async () => {
    await using site = await aSite();
    const plan = (...args: string[]) => setpointd(["plan", "-c", site.config, ...args], { input: "no JSON" });
    const absent = await plan("--events", join(site.directory, "absent.json"), "--json");
    expect([absent.code, absent.stdout]).toEqual([1, ""]);
    expect(absent.stderr).toContain("absent.json cannot be read");
    const unparsable = await plan("--events", "-", "--json");
    expect([unparsable.code, unparsable.stdout]).toEqual([1, ""]);
    expect(unparsable.stderr).toMatch(/^standard input is not a list of events: /);
    const rubbish = await setpointd(["plan", "-c", site.config, "--events", "-"], {
      input: '[{"ID":"EV-2"}]',
    });
    expect([rubbish.code, rubbish.stdout]).toEqual([1, ""]);
    expect(rubbish.stderr).toMatch(/^left out: .*\nstandard input holds no event that can be read\n$/);
    const moment = await plan("--events", "-", "--at", "tomorrow");
    expect(moment.code).toBe(2);
    expect(moment.stderr).toContain("--at tomorrow");
    const unnamed = await plan("--json");
    expect(unnamed.code).toBe(2);
    expect(unnamed.stderr).toContain("--events");
    for (const { stderr } of [absent, unparsable, moment, unnamed]) expect(stderr).not.toMatch(/^\s+at /m);
  });
});
