import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";

import type { Store } from "../../../src/domain/store.ts";
import { chargerId } from "../../../src/domain/units.ts";
import { Gate } from "../../support/aGate.ts";
import { freePort } from "../../support/freePort.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { commandRecord, row } from "../sqlite/words.ts";
import { aCluster, openedSite } from "./state.ts";

const words = async (store: Store) => (await store.audit({})).map((found) => found.words);

describe.skipIf(postgresMissing() !== null)("PostgreSQL", () => {
  const cluster = aCluster();
  const connected = async (): Promise<Client> => {
    const client = new Client(cluster().url);
    client.on("error", () => {});
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  };

  test("a leader whose site was taken stores nothing any more, and learns it from the answer", async () => {
    const open = openedSite(cluster);
    const first = await open();
    first.store.write([row("1")]);
    expect(await first.store.durable()).toEqual({ ok: true });
    const { site } = first.store;
    await (
      await connected()
    ).query(`UPDATE setpointd.site SET lease_until = clock_timestamp() WHERE id = '${site}'`);
    const second = await open({ process: "second" });
    const reasons: string[] = [];
    if (first.leadership !== null) first.leadership.onLost = (reason) => reasons.push(reason);
    first.store.write([row("too late"), { kind: "command", record: commandRecord("bay-01", 1) }]);
    const refused = { ok: false, reason: "another process leads this site now", dropped: [], stored: null };
    expect(await first.store.durable()).toEqual(refused);
    expect(first.leadership?.state).toBe("lost");
    expect(reasons).toEqual(["another process leads this site now"]);
    second.store.write([row("2")]);
    expect(await second.store.durable()).toEqual({ ok: true });
    expect(await words(second.store)).toEqual(["1", "2"]);
    expect(await second.store.verify()).toMatchObject({ ok: true, rows: 2 });
  });

  /** The commit of this row waits for a lock on the row of the site. */
  const waiting = async (url: string, text: string, length = 30_000) => {
    const { store } = await openedSite(cluster)({ url: () => url, length });
    store.write([{ kind: "command", record: commandRecord("bay-01", 1) }]);
    await store.durable();
    const locking = await connected();
    await locking.query("BEGIN");
    await locking.query(`SELECT 1 FROM setpointd.site WHERE id = '${store.site}' FOR UPDATE`);
    store.write([{ kind: "command", record: commandRecord("bay-01", 2) }, row(text)]);
    const answer = store.durable();
    const watching = await connected();
    const backend = async (): Promise<number> => {
      for (;;) {
        const { rows: found } = await watching.query(
          "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INTO audit%'",
        );
        if (found.length > 0) return Number(found[0].pid);
      }
    };
    return { store, locking, watching, answer, backend: await backend() };
  };

  test("a commit whose answer is lost is stored once, and answered as stored", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const { store, locking, answer } = await waiting(cluster().url.replace(/:\d+\//, `:${gate.port}/`), "1");
    await gate.shut();
    await locking.query("COMMIT");
    await gate.open();
    expect(await answer).toEqual({ ok: true });
    store.write([row("2")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(await words(store)).toEqual(["1", "2"]);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 2 });
  });

  test("a commit whose answer is lost until the lease is in doubt may be stored, and what was staged since is not", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const { store, locking } = await waiting(cluster().url.replace(/:\d+\//, `:${gate.port}/`), "1", 3_000);
    const running = store.committed();
    store.write([row("2")]);
    const later = store.committed();
    await gate.shut();
    await locking.query("COMMIT");
    const unsure = await running;
    expect(unsure).toMatchObject({ ok: false, isUnsure: true });
    expect(await later).toEqual({ ok: false, reason: expect.stringContaining("database: ") });
    await gate.open();
    // Without another commit.
    expect(await (!unsure.ok && unsure.isStored)).toBe(true);
  });

  test("a commit whose answer was lost in doubt is settled before the rollback: it does not arrive behind it", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const held = cluster().url.replace(/:\d+\//, `:${gate.port}/`);
    const nowhere = cluster().url.replace(/:\d+\//, `:${await freePort()}/`);
    let url = held;
    const { store, leadership } = await openedSite(cluster)({ url: () => url, length: 3_000 });
    store.write([row("before")]);
    await store.durable();
    gate.hold("in");
    url = nowhere;
    store.write([row("on its way"), { kind: "command", record: commandRecord("bay-01", 1) }]);
    const answer = store.durable();
    await waitFor(() => leadership?.state === "in doubt" && store.stats().failures > 0);
    url = cluster().url;
    const failed = await answer;
    expect(failed).toMatchObject({ ok: false, isUnsure: true, stored: { commands: [] } });
    expect(await (!failed.ok && failed.isStored)).toBe(false);
    gate.free();
    await waitFor(() => leadership?.state === "leading");
    store.write([row("after")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(await words(store)).toEqual(["before", "after"]);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 2 });
  });

  test("a commit whose answer was lost in doubt and that is stored counts once: what survives failed commits is not stored again", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const { store, leadership } = await openedSite(cluster)({
      url: () => cluster().url.replace(/:\d+\//, `:${gate.port}/`),
      length: 3_000,
    });
    gate.hold("out");
    store.write([
      row("a"),
      row("b", { kind: "daemon" }),
      { kind: "command", record: commandRecord("bay-01", 1) },
    ]);
    const kept = store.writeUntilStored([row("c")]);
    const answer = store.durable();
    await waitFor(() => leadership?.state === "in doubt" && store.stats().failures > 0);
    gate.free();
    await gate.shut();
    await gate.open();
    const committed = await answer;
    expect(!committed.ok && committed.stored?.commands).toEqual([commandRecord("bay-01", 1)]);
    expect(await (!committed.ok && committed.isStored)).toBe(true);
    await kept;
    await waitFor(() => leadership?.state === "leading");
    store.write([row("after")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(await words(store)).toEqual(["a", "b", "c", "after"]);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 4 });
  });

  test("a commit that the server ended is not stored, and what was staged since goes with it", async () => {
    const { store, locking, watching, answer, backend } = await waiting(cluster().url, "1");
    store.write([row("decided on what is not stored")]);
    const other = store.committed();
    await watching.query("SELECT pg_terminate_backend($1)", [backend]);
    await locking.query("COMMIT");
    const failed = await answer;
    expect(failed).toMatchObject({ ok: false });
    expect(!failed.ok && failed.stored?.commands).toEqual([commandRecord("bay-01", 1)]);
    expect(!failed.ok && failed.dropped).toHaveLength(3);
    expect(await other).toMatchObject({ ok: false });
    store.write([row("2")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(await words(store)).toEqual(["2"]);
    expect(await store.verify()).toMatchObject({ ok: true, rows: 1 });
  });

  test("a database that takes no writes is an answer: what is stored can be read, and later commits succeed", async () => {
    const { store, leadership } = await openedSite(cluster)();
    const admin = await connected();
    const readOnly = async (on: boolean): Promise<void> => {
      await admin.query(`ALTER SYSTEM SET default_transaction_read_only = ${on}`);
      await admin.query("SELECT pg_reload_conf()");
      for (;;) {
        const { rows } = await (await connected()).query("SHOW default_transaction_read_only");
        if (rows[0].default_transaction_read_only === (on ? "on" : "off")) return;
      }
    };
    await readOnly(true);
    store.write([row("1"), { kind: "commandForgotten", charger: chargerId("bay-01") }]);
    const kept = store.writeUntilStored([row("has to survive")]);
    expect(await store.durable()).toMatchObject({
      ok: false,
      reason: expect.stringContaining("read-only transaction"),
      dropped: { length: 2 },
      stored: { commands: [] },
    });
    expect(store.stats().failing).not.toBeNull();
    expect(leadership?.state).toBe("leading");
    // The session of the test has the setting too.
    await admin.query("SET default_transaction_read_only = off");
    await readOnly(false);
    await kept;
    expect(await words(store)).toEqual(["has to survive"]);
    expect(store.stats().failing).toBeNull();
  });

  test("a database that is killed and comes back loses nothing that was acknowledged", async () => {
    const { store } = await openedSite(cluster)({ length: 60_000 });
    store.write([row("1")]);
    expect(await store.durable()).toEqual({ ok: true });
    await cluster().stop("immediate");
    store.write([row("2")]);
    const answer = store.durable();
    await cluster().start();
    const { ok } = await answer;
    store.write([row("3")]);
    expect(await store.durable()).toEqual({ ok: true });
    expect(await words(store)).toEqual(ok ? ["1", "2", "3"] : ["1", "3"]);
    expect(await store.verify()).toMatchObject({ ok: true });
  });
});
