import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import { InboxReader } from "../../../src/daemon/leading.ts";
import { type Change, scopeOf } from "../../../src/domain/changes.ts";
import type { Delivery, EventHint } from "../../../src/domain/delivery.ts";
import { MOST_WAITING } from "../../../src/domain/leadership.ts";
import type { Store } from "../../../src/domain/store.ts";
import { eventId, instant, millis } from "../../../src/domain/units.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { Inbox } from "../../../src/store/postgres/inbox.ts";
import { Gate } from "../../support/aGate.ts";
import { Postgres, postgresMissing, serverUser } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { commandRecord, NOON, row } from "../sqlite/words.ts";
import { aCluster, aSite, type NewProcess, openedSite } from "./state.ts";

const words = async (store: Store) => (await store.audit({})).map((found) => found.words);
const through = (cluster: Postgres, gate: Gate) => () => cluster.url.replace(/:\d+\//, `:${gate.port}/`);
const verified = async (store: Store) => expect(await store.verify()).toMatchObject({ ok: true });
const HOUR = 3_600_000;
const bay = (name: string): Change => ({ kind: "command", record: commandRecord(name, 1) });

const delivery = (number: number): Delivery => ({
  source: "webhook",
  at: instant(NOON + number),
  askedAt: instant(NOON + number),
  notices: [],
  complete: false,
});

/** A folder on a small disk of its own. Null: this user may not mount one. */
function aSmallDisk(): string | null {
  const folder = mkdtempSync(join(tmpdir(), "small-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", folder], { stdio: "ignore" });
  } catch {
    rmSync(folder, { recursive: true });
    return null;
  }
  onTestFinished(() => {
    execFileSync("umount", ["-l", folder]);
    rmSync(folder, { recursive: true, force: true });
  });
  const user = serverUser();
  if (user !== null) chownSync(folder, user.uid, user.gid);
  return folder;
}

describe.skipIf(postgresMissing() !== null)("PostgreSQL", () => {
  const cluster = aCluster();
  const connected = async (): Promise<Client> => {
    const client = new Client(cluster().url);
    client.on("error", () => {});
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  };

  /** A leader behind a gate, and a stand-in that leads as soon as it can. */
  const twins = async (gate: Gate, process = "test") => {
    const open = openedSite(cluster);
    const first = await open({ url: through(cluster(), gate), length: 3_000, process });
    first.store.write([row("before")]);
    await first.store.durable();
    const { signal } = new AbortController();
    const next = open({ process: "second", length: 3_000, standBy: { signal } });
    return { first, next };
  };

  test.each(["in", "out"] as const)(
    "a network that is cut one way (%s): a commit on its way is stored once or refused, and another process leads",
    async (direction) => {
      await using gate = await Gate.before(cluster().port);
      await gate.open();
      const { first, next } = await twins(gate);
      gate.hold(direction);
      first.store.write([row("on its way"), { kind: "command", record: commandRecord("bay-01", 1) }]);
      const answer = first.store.durable();
      const { store, epoch } = await next;
      expect(epoch).toBeGreaterThan(first.epoch);
      expect(first.leadership?.state).not.toBe("leading");
      store.write([row("of the next")]);
      expect(await store.durable()).toEqual({ ok: true });
      // What the network held arrives late.
      gate.free();
      expect(await answer).toMatchObject({ ok: false });
      await waitFor(() => first.leadership?.state === "lost");
      const before = direction === "out" ? ["before", "on its way"] : ["before"];
      expect(await words(store)).toEqual([...before, "of the next"]);
      await verified(store);
    },
  );

  test("a leader that gets no answers keeps the site for no more than one renewal, however many connections it has", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const { first, next } = await twins(gate, "without answers");
    // As many idle connections as there may be: a statement on each still reaches the server.
    await Promise.all([1, 2, 3, 4, 5, 6].map(() => first.store.audit({})));
    gate.hold("out");
    const watching = await connected();
    const read = async () =>
      (
        await watching.query("SELECT lease_until::text FROM setpointd.site WHERE leader = 'without answers'")
      ).rows.map(({ lease_until: until }) => String(until));
    const ends = new Set(await read());
    await waitFor(
      async () => {
        const found = await read();
        for (const end of found) ends.add(end);
        return found.length === 0;
      },
      { everyMs: 50 },
    );
    // The end that was known, and that of one renewal whose answer was lost.
    expect(ends.size).toBeLessThanOrEqual(2);
    expect((await next).epoch).toBeGreaterThan(first.epoch);
  });

  test("without a free connection the leader goes on, a new process reports that, and leads once there is one", async () => {
    const open = aSite(cluster);
    const first = await open();
    if (!first.ok) throw new Error(first.reason);
    first.store.write([row("1")]);
    await first.store.durable();
    const taken: Client[] = [];
    for (;;) {
      const client = new Client(cluster().url);
      client.on("error", () => {});
      try {
        await client.connect();
      } catch {
        break;
      }
      taken.push(client);
    }
    const refused = await aSite(cluster)();
    first.store.write([row("2")]);
    expect(await first.store.durable()).toEqual({ ok: true });
    await Promise.all(taken.map((client) => client.end()));
    expect(refused).toEqual({
      ok: false,
      reason: expect.stringMatching(/too many clients.*expected a higher max_connections/),
    });
    expect(await words(first.store)).toEqual(["1", "2"]);
    await first.store[Symbol.asyncDispose]();
    await waitFor(async () => (await open()).ok);
  });

  test("a long lock on the record: commits fail and the site stays led; a lock on the site ends the lead", async () => {
    const open = openedSite(cluster);
    const { store, leadership } = await open({ length: 1_500 });
    const locking = await connected();
    await locking.query("BEGIN");
    await locking.query("LOCK TABLE setpointd.audit IN ACCESS EXCLUSIVE MODE");
    store.write([row("1")]);
    const failed = store.durable();
    await waitFor(() => store.stats().failing !== null);
    expect(leadership?.state).toBe("leading");
    await locking.query("ROLLBACK");
    expect(await failed).toMatchObject({ ok: false, reason: expect.stringContaining("timeout") });
    store.write([row("2")]);
    await waitFor(async () => (await store.durable()).ok);
    await locking.query("BEGIN");
    await locking.query("LOCK TABLE setpointd.site IN ACCESS EXCLUSIVE MODE");
    await waitFor(() => leadership?.state === "in doubt");
    await locking.query("ROLLBACK");
    await waitFor(() => leadership?.state === "leading");
    store.write([row("3")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect((await words(store)).at(-1)).toBe("3");
    await verified(store);
  });

  test("what is decided between a failed commit and its rollback is not stored, and a repeat in between is not answered as stored", async () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const { store } = await openedSite(cluster)({ schema: "between", log });
    const admin = await connected();
    await admin.query("ALTER TABLE between.body RENAME TO away");
    store.write([row("1"), bay("bay-01")]);
    const failed = store.durable();
    await waitFor(() => store.stats().failures > 0);
    // The state cannot be read either.
    const repeat = store.durable();
    store.write([row("2"), bay("bay-02"), row("kept", { kind: "daemon" })]);
    const later = store.durable();
    const ofAnotherRoom = store.committed();
    await admin.query("ALTER TABLE between.away RENAME TO body");
    const lost = await failed;
    expect(lost).toMatchObject({ ok: false, stored: { commands: [], events: [] } });
    // All that the rollback has to cover.
    expect(scopeOf(lost.ok ? [] : lost.dropped).chargers).toEqual(new Set(["bay-01", "bay-02"]));
    for (const answer of [await repeat, await later])
      expect(answer).toEqual({ ok: false, reason: "an earlier commit failed", dropped: [], stored: null });
    expect(await ofAnotherRoom).toMatchObject({ ok: false });
    const drops = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg.includes("are dropped"));
    expect(drops.at(-1)).toMatchObject({ reason: "an earlier commit failed", changes: 2, kept: 1 });
    store.write([row("3"), bay("bay-01")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(await words(store)).toEqual(["kept", "3"]);
    await verified(store);
  });

  test("a stored value that another program edited ends the run whose failed commit it concerns", async () => {
    const { store } = await openedSite(cluster)({ schema: "edited" });
    const admin = await connected();
    store.write([bay("bay-01")]);
    expect(await store.durable()).toEqual({ ok: true });
    await admin.query("UPDATE edited.body SET body = body || ' '");
    await admin.query("ALTER TABLE edited.quarantine RENAME TO away");
    store.write([bay("bay-01")]);
    await expect(store.durable()).rejects.toThrow("the stored command bay-01 was edited by another program");
  });

  test("what is stored is answered as stored, also where a commit that nobody waited for failed before", async () => {
    const { store } = await openedSite(cluster)({ schema: "unawaited" });
    const admin = await connected();
    await admin.query("ALTER TABLE unawaited.body RENAME TO away");
    store.write([bay("bay-01")]);
    await waitFor(() => store.stats().failures > 0);
    await admin.query("ALTER TABLE unawaited.away RENAME TO body");
    store.write([row("1")]);
    const first = store.durable();
    store.write([row("2")]);
    const second = store.durable();
    expect(await first).toMatchObject({ ok: true, lost: { dropped: [{ kind: "command" }] } });
    expect(await second).toEqual({ ok: true });
    expect(await words(store)).toEqual(["1", "2"]);
    await verified(store);
  });

  test("changes that are kept are not logged with each of their tries, and are stored in the end", async () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const { store } = await openedSite(cluster)({ schema: "tries", log });
    const admin = await connected();
    await admin.query("ALTER TABLE tries.audit RENAME TO away");
    const stored = store.writeUntilStored([row("1")]);
    await waitFor(() => store.stats().failures >= 3);
    expect(lines).toEqual([]);
    store.write([{ kind: "command", record: commandRecord("bay-01", 1) }]);
    await waitFor(() => lines.some((line) => line.includes('"changes":1')));
    await admin.query("ALTER TABLE tries.away RENAME TO audit");
    await stored;
    expect(await words(store)).toEqual(["1"]);
  });

  test("what has to be kept, and was written during a commit, survives the next one, which fails", async () => {
    const { store } = await openedSite(cluster)({ schema: "during" });
    const admin = await connected();
    await admin.query("BEGIN");
    await admin.query("LOCK TABLE during.audit IN EXCLUSIVE MODE");
    store.write([row("1")]);
    const first = store.committed();
    await waitFor(
      async () =>
        (
          await admin.query(
            "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'during.audit'::regclass",
          )
        ).rows.length > 0,
    );
    let isStored = false;
    const kept = store.writeUntilStored([row("a report was sent")]).then(() => (isStored = true));
    await admin.query("ALTER TABLE during.audit ADD CHECK (body NOT LIKE '%was sent%') NOT VALID");
    await admin.query("COMMIT");
    expect(await first).toEqual({ ok: true });
    await waitFor(() => store.stats().failures > 0);
    expect(isStored).toBe(false);
    await admin.query("ALTER TABLE during.audit DROP CONSTRAINT audit_body_check");
    await kept;
    expect(await words(store)).toEqual(["1", "a report was sent"]);
  });

  test("clocks that are an hour wrong give no process a site that is led, and the epoch rises", async () => {
    const open = aSite(cluster);
    const early = await open({ now: () => instant(NOON + HOUR) });
    if (!early.ok) throw new Error(early.reason);
    early.store.write([row("1")]);
    await early.store.durable();
    const late: Parameters<NewProcess>[0] = { process: "late", now: () => instant(NOON - HOUR) };
    expect(await open(late)).toMatchObject({ ok: false });
    expect(early.leadership?.state).toBe("leading");
    await early.store[Symbol.asyncDispose]();
    const second = await open(late);
    if (!second.ok) throw new Error(second.reason);
    expect(second.epoch).toBeGreaterThan(early.epoch);
    second.store.write([row("2")]);
    expect(await second.store.durable()).toEqual({ ok: true });
    await verified(second.store);
  });

  test("a full disk of the database is an answer: nothing of the commit is stored, and later commits succeed", async ({
    skip,
  }) => {
    const folder = aSmallDisk();
    if (folder === null) return skip("no mount for this user");
    const { store } = await openedSite(cluster)({ schema: "full_disk" });
    const admin = await connected();
    await admin.query(`CREATE TABLESPACE small LOCATION '${folder}'`);
    await admin.query("ALTER TABLE full_disk.audit SET TABLESPACE small");
    store.write([row("1")]);
    expect(await store.durable()).toEqual({ ok: true });
    const filler = join(folder, "filler");
    try {
      writeFileSync(filler, Buffer.alloc(4 * 1024 * 1024));
    } catch {
      // It is full now.
    }
    const many = Array.from({ length: 60 }, (_, number) => row(`${number} ${"x".repeat(1_000)}`));
    store.write([...many, { kind: "command", record: commandRecord("bay-01", 1) }]);
    expect(await store.durable()).toMatchObject({
      ok: false,
      reason: expect.stringContaining("No space left on device"),
      stored: { commands: [] },
    });
    expect(store.stats().failing).not.toBeNull();
    rmSync(filler);
    store.write([row("2")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(await words(store)).toEqual(["1", "2"]);
    await verified(store);
    return undefined;
  });

  test("a replica that is promoted has every commit that was answered, and the site goes on there", async () => {
    await using primary = await Postgres.start();
    await using replica = await primary.replica();
    await using gate = await Gate.before(primary.port);
    await gate.open();
    const open = openedSite(() => primary);
    const first = await open({ url: through(primary, gate), length: 3_000 });
    const acknowledged: string[] = [];
    for (const text of ["1", "2", "3"]) {
      first.store.write([row(text)]);
      if ((await first.store.durable()).ok) acknowledged.push(text);
    }
    const { signal } = new AbortController();
    const next = open({
      url: through(primary, gate),
      process: "second",
      length: 3_000,
      standBy: { signal },
    });
    first.store.write([row("4")]);
    const last = first.store.durable();
    await primary.stop("immediate");
    await replica.promote();
    await gate.lead(replica.port);
    if ((await last).ok) acknowledged.push("4");
    // The first process may lead on, or the second leads.
    const { store } = await Promise.race([
      next,
      waitFor(() => (first.leadership?.state === "leading" ? first : null)),
    ]);
    store.write([row("on the replica")]);
    await waitFor(async () => (await store.durable()).ok);
    const found = await words(store);
    expect(found.filter((text) => acknowledged.includes(text))).toEqual(acknowledged);
    expect(found.at(-1)).toBe("on the replica");
    await verified(store);
  });

  test("a delivery is announced to the leader, a lost connection is noticed, and one that fails goes to the quarantine", async () => {
    const open = aSite(cluster);
    const first = await open();
    if (!first.ok || first.leadership === null) throw new Error("not led");
    const { leadership, store } = first;
    const stop = new AbortController();
    const begun = Promise.withResolvers<Inbox>();
    const standIn = open({
      process: "second",
      length: 300,
      standBy: { signal: stop.signal, begin: async (inbox) => (begun.resolve(inbox), null) },
    });
    const inbox = await begun.promise;
    expect(leadership.backlog).toBeNull();
    let announced = 0;
    leadership.onWaiting = () => (announced += 1);
    const hints: EventHint[] = [];
    leadership.onHint = (wanted) => void hints.push(wanted);
    await waitFor(() => leadership.isNotified);
    // A hint of the stand-in is announced as well, and other announcements on the channel are none.
    await using outside = new Database({
      url: () => cluster().url,
      schema: "setpointd",
      patience: 5_000,
      log: pino({ level: "silent" }),
    });
    for (const payload of ["{", "null", '{"site":"another","hint":"list"}', '{"hint":[1]}'])
      await outside.query("SELECT pg_notify('setpointd_delivery_setpointd', $1)", [payload]);
    const ids = Array.from({ length: 7 }, (_, index) => eventId(`EV-${index}`));
    await inbox.hint("list");
    await inbox.hint(ids);
    await waitFor(() => hints.length === 3);
    expect(hints).toEqual(["list", ids.slice(0, 5), ids.slice(5)]);
    expect(await inbox.put(delivery(1))).toMatchObject({ ok: true });
    await waitFor(() => announced === 1);
    const admin = await connected();
    await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'setpointd announcements'",
    );
    await waitFor(() => !leadership.isNotified);
    await inbox.put(delivery(2));
    expect(await leadership.waiting()).toMatchObject([delivery(1), delivery(2)]);
    await waitFor(() => leadership.isNotified);
    await inbox.put(delivery(3));
    await waitFor(() => announced === 2);
    const [, second] = await leadership.waiting();
    const backlog = leadership.backlog;
    expect(backlog?.count).toBe(3);
    if (second === undefined) throw new Error("no delivery");
    expect(await leadership.setAside(second, "cannot be stored")).toBe(true);
    // It waits no more.
    expect(await leadership.setAside(second, "cannot be stored")).toBe(false);
    expect(await leadership.waiting()).toMatchObject([delivery(1), delivery(3)]);
    expect(leadership.backlog?.count).toBe(2);
    expect(leadership.backlog?.longest).toBeGreaterThan(backlog?.longest ?? 0);
    expect(await store.quarantine(10)).toMatchObject([{ at: NOON + 2, reason: "cannot be stored" }]);
    stop.abort();
    await standIn;
  });

  test("a hundred deliveries that can never be stored hide none behind them, and go to the quarantine", async () => {
    const opened = await openedSite(cluster)();
    const { leadership, store, siteKey } = opened;
    if (leadership === null) throw new Error("not led");
    await using database = new Database({
      url: () => cluster().url,
      schema: "setpointd",
      patience: 5_000,
      log: pino({ level: "silent" }),
    });
    const inbox = new Inbox({ database, site: store.site, siteKey });
    const put = (number: number) => inbox.put(delivery(number));
    for (let number = 0; number < MOST_WAITING; number += 1) await put(number);
    const ingested: number[] = [];
    let clock = 0;
    const reader = new InboxReader({
      leadership,
      ingest: async ({ at, stored = 0 }) => {
        if (at < NOON + MOST_WAITING) return { ok: false, reason: "cannot be stored" };
        store.write([{ kind: "deliveryTaken", stored }]);
        const answer = await store.committed();
        if (!answer.ok) return answer;
        ingested.push(at - NOON);
        return { ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } };
      },
      // Each wait is over at the next look.
      monotonic: () => millis((clock += 60_000)),
      log: pino({ level: "silent" }),
    });
    for (const number of [1_000, 1_001, 1_002]) {
      await put(number);
      await reader.read();
      expect(leadership.backlog?.count).toBe(MOST_WAITING + (number === 1_000 ? 0 : 1));
      await reader.read();
      expect(ingested.at(-1)).toBe(number);
    }
    await reader.read();
    expect(await store.quarantine(1_000)).toHaveLength(MOST_WAITING);
    expect([await leadership.waiting(), leadership.backlog]).toEqual([[], null]);
  });
});
