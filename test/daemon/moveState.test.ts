import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";

import { moveState } from "../../src/daemon/moveState.ts";
import { openOffline, type StateOfSite } from "../../src/daemon/offline.ts";
import type { Change } from "../../src/domain/changes.ts";
import type { OpenedState, Store } from "../../src/domain/store.ts";
import {
  after,
  chargerId,
  eventId,
  instant,
  type Millis,
  millis,
  minutes,
  vehicleId,
} from "../../src/domain/units.ts";
import { readingsOf } from "../../src/reporting/reading.ts";
import { GENESIS } from "../../src/store/chain.ts";
import { MoveProgress, type MovedState, NotMoved } from "../../src/store/movedState.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import { newKeys } from "../../src/store/postgres/siteKeys.ts";
import { storeInDatabase } from "../../src/store/postgres/move.ts";
import { storeInFolder } from "../../src/store/sqlite/move.ts";
import { least, SECRET } from "../support/aConfiguration.ts";
import { aRelease } from "../support/aHold.ts";
import { anAlarm } from "../support/anAlarm.ts";
import { postgresMissing } from "../support/postgres.ts";
import { launch, setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";
import { aCluster } from "../store/postgres/state.ts";
import { aDirectory, open } from "../store/sqlite/state.ts";
import { commandRecord, NOON, reportRecord, row, tombstone } from "../store/sqlite/words.ts";

const EVENTS = 1_200;
const CHARGERS = Array.from({ length: 40 }, (_, n) => chargerId(`bay-${n}`));
const log = pino({ level: "silent" });
const monotonic = (): Millis => millis(performance.now());
const machine = { now: () => after(NOON, minutes(60)), monotonic, randomBytes, log };
const quiet = (): void => {};

const changesOf = (n: number): readonly Change[] => {
  const [event, charger] = [eventId(`EV-${n}`), `bay-${n % 40}`];
  return [
    { kind: "event", known: tombstone(event) },
    { kind: "command", record: commandRecord(charger, n) },
    row("16 A", {
      event,
      charger: chargerId(charger),
      command: `7-${n}`,
      facts: { a: [n, null, "æ\u0000"] },
    }),
    row("sent", { kind: "outcome", event, charger: chargerId(charger), facts: { progress: "acknowledged" } }),
    { kind: "report", record: reportRecord(`${event}/0/0`), body: `{"name":"${event}\\u0000"}` },
  ];
};

const once: readonly Change[] = [
  { kind: "hold", hold: aRelease("bay-02", ["EV-7"], NOON, NOON) },
  {
    kind: "observePeriod",
    period: { since: NOON, until: NOON, cap: after(NOON, minutes(1440)), by: "anna", reason: "work" },
  },
  {
    kind: "binding",
    binding: {
      charger: chargerId("bay-1"),
      vehicle: vehicleId("v"),
      identity: "rfid 04aa",
      by: "anna",
      reason: "it stands there",
      since: NOON,
      key: null,
    },
  },
  { kind: "alarm", alarm: anAlarm("broker") },
  { kind: "plugIn", charger: chargerId("bay-1"), plugIn: { vehicle: vehicleId("v"), at: NOON, energyWh: 5 } },
  {
    kind: "departure",
    departure: {
      vehicle: vehicleId("v"),
      at: NOON,
      need: { kind: "energy", wh: 18_000 },
      source: "api",
      by: "kari",
      setAt: NOON,
    },
  },
  {
    kind: "prices",
    series: { region: "NO1", kind: "forecast", fetchedAt: NOON, prices: [], doubts: [], raw: "{}" },
  },
  {
    kind: "duty",
    duty: {
      event: eventId("EV-1"),
      descriptor: 0,
      receivedAt: NOON,
      issued: { k: 0, moment: NOON },
      withdrawn: null,
      state: "open",
      reason: null,
    },
  },
  {
    kind: "quarantine",
    at: NOON,
    source: "webhook",
    rejected: { kind: "rejected", id: null, path: "[0]", reason: "not an event", raw: "{\u0000}" },
  },
  { kind: "evaluated", at: after(NOON, minutes(1)) },
];

/** Fills a state with a few thousand rows of every table, and prunes the oldest of the record. */
async function fill(store: Store): Promise<void> {
  store.write(once);
  for (let n = 0; n < EVENTS; n += 1) store.write(changesOf(n));
  expect(await store.durable()).toEqual({ ok: true });
  for (let n = 0; n < 3_000; n += 1) {
    const at = after(NOON, millis(n * 1_000));
    const charger = CHARGERS[n % 40] ?? chargerId("bay-0");
    store.keepReadings(
      readingsOf(
        { charger, vehicle: vehicleId(`v-${n % 7}`) },
        { at, powerW: n + 0.5, soc: n % 100 },
        at,
        null,
      ),
    );
  }
  const old = await store.oldRows({ before: null, maxRows: 100, most: 300 });
  if (old === null) throw new Error("nothing to prune");
  const { through, hash } = old;
  store.write([
    row("pruned", { kind: "checkpoint", facts: { through, hash } }),
    { kind: "auditPruned", through },
  ]);
  expect(await store.durable()).toEqual({ ok: true });
}

/** All that a state has, as the rest of the program reads it. */
async function contentOf({ store, storedState, siteKey }: OpenedState) {
  const [from, until] = [instant(0), instant(NOON * 2)];
  return {
    siteKey: siteKey.toString("hex"),
    proofKey: store.proofKey.export({ format: "der", type: "pkcs8" }).toString("hex"),
    storedState,
    head: store.head(),
    verified: await store.verify(),
    audit: await store.audit({ limit: 1e6 }),
    ofCharger: await store.audit({ charger: "bay-3", limit: 1e6 }),
    whole: await store.archive.whole([eventId("EV-7")]),
    readings: await store.readings(CHARGERS, from, until),
    seats: await store.seats(vehicleId("v-3"), from, until),
    reports: await store.reports({ limit: 1e6 }),
    report: await store.report("EV-7/0/0"),
    alarms: await store.alarms(),
    departures: await store.departures(),
    prices: await store.prices(),
    quarantine: await store.quarantine(10),
  };
}

/** Opens a state, uses it, and closes it again. */
async function within<T>(site: StateOfSite, use: (opened: OpenedState) => Promise<T>): Promise<T> {
  const opened = await openOffline(site, machine, { create: true });
  if (!opened.ok) throw new Error(opened.reason);
  await using _store = opened.store;
  return await use(opened);
}

const idOf = (id: string): StateOfSite["site"] => ({ id, timezone: "UTC" }) as StateOfSite["site"];
const inFolder = (id: string, state = aDirectory()): StateOfSite => ({
  state,
  keys: { site: null, proof: null },
  database: null,
  site: idOf(id),
});

const lost = async (): Promise<never> => {
  throw new NotMoved("the lease was lost");
};

/** Exit code of a verb, and all that it prints. */
async function verb(...args: readonly string[]) {
  const { code, stdout, stderr } = await setpointd(args, { env: { SECRET } });
  return [code, stdout + stderr];
}

let schemas = 0;

describe.skipIf(postgresMissing() !== null)("moving a state", () => {
  const cluster = aCluster();
  const inDatabase = (id: string, state = aDirectory(), operatorKey: Buffer | null = null): StateOfSite => ({
    state,
    keys: { site: null, proof: null },
    database: {
      url: () => cluster().url,
      schema: `moved_${(schemas += 1)}`,
      siteKeys: operatorKey === null ? null : () => [operatorKey],
      lease: millis(10_000),
    },
    site: idOf(id),
  });
  const query = async (site: StateOfSite, sql: string, ...values: readonly unknown[]) => {
    await using database = new Database({
      url: () => cluster().url,
      schema: site.database?.schema ?? "",
      patience: 5_000,
      log,
    });
    return await database.query(sql, values);
  };

  test("a state of thousands of rows is the same in the database, and again in a folder: record, keys, events, readings, reports", async () => {
    const folder = inFolder("depot");
    await within(folder, ({ store }) => fill(store));
    const before = await within(folder, contentOf);
    expect(before.verified).toMatchObject({ ok: true, rows: 2_101 });
    expect(before.readings.length).toBeGreaterThan(3_000);

    const operatorKey = randomBytes(32);
    const database = inDatabase("depot", aDirectory(), operatorKey);
    const lines: string[] = [];
    let clock = 0;
    // Each step lasts 5 s.
    const slow = { ...machine, monotonic: () => millis((clock += 5_000)) };
    expect(await moveState(folder, database, slow, (line) => lines.push(line))).toMatchObject({
      readings: 3_000,
      audit: 2_101,
    });
    expect(new Set(lines.map((line) => line.replace(/^after \d+ s: /, "")))).toEqual(
      new Set([
        "the state is being verified",
        ...[500, 1_000, 1_500, 2_000, 2_101].map(
          (rows) => `copied: ${rows} of 2101 rows of the record, 0 of 3000 readings`,
        ),
        ...[500, 1_000, 1_500, 2_000, 2_500, 3_000].map(
          (readings) => `copied: 2101 of 2101 rows of the record, ${readings} of 3000 readings`,
        ),
        "the copy is being verified",
      ]),
    );
    // Without statistics the server reads the whole table for each page.
    expect(
      await query(database, "SELECT reltuples::int AS rows FROM pg_class WHERE oid = 'audit'::regclass"),
    ).toEqual([{ rows: 2_101 }]);
    expect(readdirSync(database.state)).toEqual([]);
    expect(await within(database, contentOf)).toEqual(before);

    const back = inFolder("depot");
    expect(await moveState(database, back, machine, quiet)).toMatchObject({ readings: 3_000, audit: 2_101 });
    expect(readdirSync(back.state).toSorted()).toEqual([
      "epoch",
      "lock",
      "proof.key",
      "setpointd.db",
      "site.key",
    ]);
    for (const key of ["site.key", "proof.key"])
      expect(readFileSync(join(back.state, key))).toEqual(readFileSync(join(folder.state, key)));
    const opened = open(back.state, { at: machine.now() });
    if (!opened.ok) throw new Error(opened.reason);
    await using store = opened.store;
    // Not taken for a backup: that would send every charger its level again.
    expect([opened.isRestored, opened.assertAll]).toEqual([false, false]);
    expect(await contentOf(opened)).toEqual(before);
    store.write([row("goes on")]);
    await store.durable();
    expect(await store.verify()).toMatchObject({ ok: true, rows: 2_102 });
  });

  test("without siteKeys the keys are files in the folder of the new state, and others there are refused", async () => {
    const folder = inFolder("depot");
    await within(folder, async ({ store }) => store.write([row("16 A")]));
    const database = inDatabase("depot");
    writeFileSync(join(database.state, "site.key"), randomBytes(32));
    expect(await moveState(folder, database, machine, quiet)).toMatch("site.key is not the key of the state");
    const other = inDatabase("depot");
    expect(await moveState(folder, other, machine, quiet)).toMatchObject({ audit: 1 });
    expect(readFileSync(join(other.state, "site.key"))).toEqual(readFileSync(join(folder.state, "site.key")));
    expect((await query(other, "SELECT keys FROM site"))[0]).toEqual({ keys: null });
    const back = inFolder("depot");
    writeFileSync(join(back.state, "proof.key"), randomBytes(32));
    expect(await moveState(other, back, machine, quiet)).toMatch("proof.key is not the key of the state");
    const credential = { path: "/run/site.key", read: () => randomBytes(32) };
    const handed = { ...inFolder("depot"), keys: { site: credential, proof: null } };
    expect(await moveState(other, handed, machine, quiet)).toMatch(
      "/run/site.key is not the key of the state",
    );
  });

  test("a state that somebody uses is not moved, and neither is one to a place that has one", async () => {
    const [folder, database] = [inFolder("depot"), inDatabase("depot")];
    await within(folder, async ({ store }) => {
      store.write([row("16 A")]);
      expect(await moveState(folder, database, machine, quiet)).toMatch(
        "another setpointd is using this state",
      );
    });
    expect(await moveState(folder, database, machine, quiet)).toMatchObject({ audit: 1 });
    expect(await moveState(folder, database, machine, quiet)).toMatch(
      "the site depot has a state in the schema",
    );
    expect(await moveState(database, folder, machine, quiet)).toMatch("setpointd.db exists already");
    const back = inFolder("depot");
    await within(database, async () =>
      expect(await moveState(database, back, machine, quiet)).toMatch(
        "another setpointd leads the site depot",
      ),
    );
    await query(database, "INSERT INTO delivery (site, body, mac) VALUES ('depot', '{}', '')");
    expect(await moveState(database, back, machine, quiet)).toMatch("no leader has ingested yet: 1");
    await query(database, "DELETE FROM delivery");
    await query(database, "INSERT INTO fleet_site VALUES ('depot', 1, '{}', '', now())");
    expect(await moveState(database, back, machine, quiet)).toMatch("setpointd site remove depot first");
    expect(existsSync(join(back.state, "setpointd.db"))).toBe(false);
    // The lease is free again after each refusal.
    expect(await within(database, (opened) => opened.store.verify())).toMatchObject({ ok: true });
  });

  test("a place without a state, an edited one, another site and two of a kind are refused with the reason", async () => {
    const [empty, database] = [inFolder("depot"), inDatabase("depot")];
    expect(await moveState(empty, database, machine, quiet)).toMatch("nothing has run there yet");
    expect(await moveState(database, empty, machine, quiet)).toMatch(
      "the site depot has no state in this database",
    );
    expect(await moveState(empty, inFolder("depot"), machine, quiet)).toMatch("both are folders");
    expect(await moveState(database, inDatabase("depot"), machine, quiet)).toMatch("both are databases");
    expect(await moveState(empty, inDatabase("other"), machine, quiet)).toMatch("of the site other");
    const unreachable = inDatabase("depot");
    const away = {
      ...unreachable,
      database: { ...unreachable.database!, url: () => "postgres://x@127.0.0.1:1/x" },
    };
    await within(empty, async ({ store }) =>
      store.write([row("16 A"), { kind: "command", record: commandRecord("bay-1", 1) }]),
    );
    expect(await moveState(empty, away, machine, quiet)).toMatch(
      "state.postgres.url: database: connect ECONNREFUSED",
    );
    expect(await moveState(empty, database, machine, quiet)).toMatchObject({ audit: 1 });
    await query(database, "UPDATE body SET body = '{}'");
    expect(await moveState(database, inFolder("depot"), machine, quiet)).toBe(
      "the stored command bay-1 was changed",
    );
  });

  test("a move that ends in the middle, or whose copy does not verify, leaves nothing behind", async () => {
    const keys = newKeys(randomBytes);
    const state = (rows: MovedState["rows"], check = async () => {}): MovedState => ({
      keys,
      head: GENESIS,
      epoch: 7,
      evaluatedAt: null,
      aliveAt: null,
      total: { audit: 0, readings: 0 },
      thinnedMinute: 0,
      rows,
      check,
    });
    const cells = [1, NOON, "decision", null, null, null, null, "16 A"] as const;
    const hash = createHash("sha256").update("another").digest("hex");
    const half = async function* (): ReturnType<MovedState["rows"]> {
      yield { table: "audit", rows: [{ cells, facts: "null", hash }] };
      throw new NotMoved("killed");
    } as MovedState["rows"];
    const changed = async function* () {
      yield { table: "audit", rows: [{ cells, facts: "null", hash }] };
    } as MovedState["rows"];
    const none = async function* () {} as MovedState["rows"];
    const database = inDatabase("depot");
    const progress = new MoveProgress(quiet, monotonic);
    const folder = { directory: aDirectory(), keys: database.keys, now: machine.now, monotonic, progress };
    // The draft of a move that was killed.
    mkdirSync(join(folder.directory, "moving-abc"));
    const options = {
      url: database.database?.url ?? (() => ""),
      schema: database.database?.schema ?? "",
      site: "depot",
      process: "test",
      length: 10_000,
      directory: database.state,
      keys: database.keys,
      siteKeys: null,
      now: machine.now,
      random: randomBytes,
      monotonic,
      log,
      progress,
    };
    for (const [bad, reason] of [
      [state(half), "killed"],
      [state(changed), "row 1"],
      [state(none, lost), "the lease was lost"],
    ] as const) {
      await expect(storeInDatabase(options, bad)).rejects.toThrow(reason);
      await expect(storeInFolder(folder, bad)).rejects.toThrow(reason);
    }
    expect(await query(database, "SELECT 1 FROM site UNION ALL SELECT 1 FROM audit")).toEqual([]);
    expect(readdirSync(database.state)).toEqual([]);
    expect(readdirSync(folder.directory)).toEqual(["lock"]);
    // An empty state is one too.
    expect(await storeInDatabase(options, state(none))).toMatchObject({ audit: 0 });
    expect(await storeInFolder(folder, state(none))).toMatchObject({ audit: 0 });
    expect(open(folder.directory)).toMatchObject({ ok: true, isRestored: false });
  });

  test("a verb that reads a new place creates nothing there, so that a state can be moved to it", async () => {
    const place = inDatabase("unborn", aDirectory(), randomBytes(32));
    const opened = await openOffline(place, machine);
    expect(opened).toMatchObject({
      ok: false,
      isMissing: true,
      reason: expect.stringMatching(/no state of the site unborn in the schema moved_\d+ of this database/),
    });
    expect(await query(place, "SELECT to_regclass('site') AS site")).toEqual([{ site: null }]);
    await within(inDatabase("other", aDirectory()), async () => {});
    const source = inFolder("unborn");
    await within(source, async () => {});
    expect(await moveState(source, place, machine, quiet)).toMatchObject({ audit: expect.any(Number) });
    expect(await openOffline(place, machine)).toHaveProperty("ok", true);
  });

  test("the verb moves to a configuration and back to a folder, and the record verifies in each", async () => {
    const directory = aDirectory();
    const write = (name: string, state: unknown): string => {
      writeFileSync(join(directory, name), stringify({ ...least, state }));
      return join(directory, name);
    };
    writeFileSync(join(directory, "database-url"), cluster().url, { mode: 0o600 });
    const site = write("site.yaml", "./state");
    const postgres = { url: { file: "database-url" }, schema: "by_verb" };
    const later = write("later.yaml", { folder: "./state", postgres });
    await within(inFolder("depot", join(directory, "state")), async ({ store }) =>
      store.write([row("16 A")]),
    );
    expect(await verb("state", "move", "-c", site, "--to", later)).toEqual([
      0,
      expect.stringContaining("the schema by_verb of the database: 1 rows of the record"),
    ]);
    expect(await verb("audit", "verify", "-c", later)).toEqual([0, expect.stringContaining("1 ")]);
    const target = join(directory, "back");
    expect(await verb("state", "move", "-c", later, "--to", target)).toEqual([
      0,
      expect.stringContaining(`${target}: 1 rows of the record`),
    ]);
    const last = write("last.yaml", "./back");
    expect(await verb("audit", "verify", "-c", last)).toEqual([0, expect.stringContaining("1 ")]);
    expect(await verb("state", "move", "-c", later, "--to", target)).toEqual([
      1,
      expect.stringContaining("nothing was moved: "),
    ]);
  });

  test("a move that is killed leaves the source usable and no target, and the same command moves it later", async () => {
    const directory = aDirectory();
    const write = (name: string, state: unknown): string => {
      writeFileSync(join(directory, name), stringify({ ...least, state }));
      return join(directory, name);
    };
    writeFileSync(join(directory, "database-url"), cluster().url, { mode: 0o600 });
    const site = write("site.yaml", "./state");
    const postgres = { url: { file: "database-url" }, schema: "killed", lease: "3s" };
    const later = write("later.yaml", { folder: "./later", postgres });
    const target = join(directory, "back");
    const back = write("back.yaml", "./back");
    await within(inFolder("depot", join(directory, "state")), ({ store }) => fill(store));
    await using database = new Database({
      url: () => cluster().url,
      schema: "killed",
      patience: 30_000,
      log,
    });
    expect(await migrate(database, "killed")).toBe(null);
    const waiting = () =>
      database.query("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'quarantine'::regclass");
    /** Kills a move at a table that it copies after thousands of rows. */
    const killed = async (...args: readonly string[]): Promise<void> =>
      database.transaction(async (query) => {
        await query("LOCK TABLE quarantine");
        const child = launch(["state", "move", ...args], { SECRET });
        await waitFor(async () => (await waiting()).length > 0);
        child.kill("SIGKILL");
        await new Promise((ended) => child.once("close", ended));
      });

    await killed("-c", site, "--to", later);
    expect(await verb("audit", "verify", "-c", site)).toEqual([0, expect.stringContaining("2101 ")]);
    // The server ends the transaction once it reads that the connection is closed.
    await waitFor(async () => (await waiting()).length === 0);
    expect(await database.query("SELECT 1 FROM site UNION ALL SELECT 1 FROM audit")).toEqual([]);
    expect(await verb("state", "move", "-c", site, "--to", later)).toEqual([
      0,
      expect.stringContaining("2101 rows of the record"),
    ]);

    await killed("-c", later, "--to", target);
    expect(existsSync(join(target, "setpointd.db"))).toBe(false);
    expect(readdirSync(target).filter((name) => name.startsWith("moving-"))).toHaveLength(1);
    // The lease of the killed process ends first.
    const moved = await waitFor(async () => {
      const [code, output] = await verb("state", "move", "-c", later, "--to", target);
      if (code !== 0) expect(output).toMatch("another setpointd leads the site depot");
      return code === 0 ? output : null;
    });
    expect(moved).toMatch("2101 rows of the record");
    expect(readdirSync(target).filter((name) => name.startsWith("moving-"))).toEqual([]);
    expect(await verb("audit", "verify", "-c", later)).toEqual([0, expect.stringContaining("2101 ")]);
    expect(await verb("audit", "verify", "-c", back)).toEqual([0, expect.stringContaining("2101 ")]);
  });
});
