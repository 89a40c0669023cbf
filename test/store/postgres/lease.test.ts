import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { Database } from "../../../src/store/postgres/database.ts";
import { readLeader, takeLease } from "../../../src/store/postgres/lease.ts";
import { Gate } from "../../support/aGate.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { NOON, row } from "../sqlite/words.ts";
import { aCluster, openedSite } from "./state.ts";

const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await sleep(10);
};

describe.skipIf(postgresMissing() !== null)("PostgreSQL", () => {
  const cluster = aCluster();
  const sql = async (text: string): Promise<void> => {
    const client = new Client(cluster().url);
    await client.connect();
    await client.query(text);
    await client.end();
  };

  test("a leader is in doubt at two thirds of its lease, and leads on when it could renew it", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const open = openedSite(cluster);
    const url = cluster().url.replace(/:\d+\//, `:${gate.port}/`);
    const { leadership, store, epoch } = await open({ url: () => url, length: 3_000 });
    await until(() => leadership?.state === "leading" && store.beat(NOON).ok);
    await gate.shut();
    await until(() => leadership?.state === "in doubt");
    expect(store.beat(NOON)).toEqual({
      ok: false,
      reason: "the lease is in doubt",
      isReadable: true,
    });
    await gate.open();
    await until(() => leadership?.state === "leading");
    store.write([row("1")]);
    expect(await store.durable()).toEqual({ ok: true });
    await store[Symbol.asyncDispose]();
    expect((await open()).epoch).toBeGreaterThan(epoch);
  });

  test("the doubt is a matter of the clock: a process that was frozen has it before its first timer", async () => {
    let clock = 0;
    const open = openedSite(cluster);
    const { leadership } = await open({ length: 9_000, monotonic: () => clock });
    clock = 5_999;
    expect(leadership?.state).toBe("leading");
    expect(leadership?.view(NOON)).toMatchObject({ since: NOON - 5_999, leaseUntil: NOON + 3_001 });
    clock = 6_000;
    expect(leadership?.state).toBe("in doubt");
    expect(leadership?.view(NOON).self).toBe(false);
    expect(leadership?.doubts).toBe(0);
    await until(() => leadership?.state === "leading");
    expect(leadership?.doubts).toBe(1);
  });

  test("a process that releases its site does not lead it from then on, before the database knows it", async () => {
    const { store } = await openedSite(cluster)();
    await store[Symbol.asyncDispose]();
    await using database = new Database({
      url: () => cluster().url,
      schema: "setpointd",
      patience: 10_000,
      log: pino({ level: "silent" }),
    });
    const [led] = await database.query("SELECT id FROM site ORDER BY led_since DESC LIMIT 1");
    const options = { site: String(led?.["id"]), process: "one", length: 60_000 };
    const lease = await takeLease(database, options, () => 0);
    expect(lease?.state).toBe("leading");
    const released = lease?.release();
    expect(lease?.state).toBe("lost");
    await released;
    expect(lease?.state).toBe("lost");
    expect(await takeLease(database, { ...options, process: "two" }, () => 0)).toMatchObject({
      state: "leading",
    });
    // The second release of a stop leaves the site of the next leader alone.
    await lease?.release();
    expect(await readLeader(database, options.site, () => NOON)).toMatchObject({
      leader: { process: "two" },
    });
  });

  test("while the leader renews, no other process gets the site; once it cannot, the stand-in leads with a higher epoch", async () => {
    await using gate = await Gate.before(cluster().port);
    await gate.open();
    const open = openedSite(cluster);
    const url = cluster().url.replace(/:\d+\//, `:${gate.port}/`);
    const first = await open({ url: () => url, length: 3_000 });
    const { signal } = new AbortController();
    let second: Awaited<ReturnType<typeof open>> | null = null;
    const led = open({ process: "second", length: 3_000, standBy: { signal } }).then(
      (opened) => (second = opened),
    );
    await sleep(4_000);
    expect(second).toBeNull();
    await gate.shut();
    const { epoch } = await led;
    expect(epoch).toBeGreaterThan(first.epoch);
    expect(first.leadership?.state).toBe("in doubt");
    const lost = Promise.withResolvers<string>();
    if (first.leadership !== null) first.leadership.onLost = lost.resolve;
    await gate.open();
    expect(await lost.promise).toBe("another process leads this site now");
    expect(first.leadership?.state).toBe("lost");
  });

  test("a site whose leader stopped is led at once, also if the clock of the database was set back since", async () => {
    const open = openedSite(cluster);
    const first = await open();
    await first.store[Symbol.asyncDispose]();
    await sql("UPDATE setpointd.site SET lease_until = clock_timestamp() + interval '1 minute'");
    expect((await open({ process: "second" })).epoch).toBeGreaterThan(first.epoch);
  });

  test("a new leader knows whether the last lease was released, and for how long the site had no leader", async () => {
    let clock = 0;
    const open = openedSite(cluster);
    const first = await open({ length: 60_000, monotonic: () => clock });
    expect(first.leadership?.lapsed(NOON)).toBeNull();
    first.leadership?.begun("http://gw-1:8080");
    expect(first.leadership?.failover).toBeNull();
    expect(first.leadership?.view(NOON)).toMatchObject({ self: true, page: "http://gw-1:8080" });
    await first.store[Symbol.asyncDispose]();

    const second = await open({ process: "second", length: 60_000, monotonic: () => clock });
    expect(second.leadership?.lapsed(NOON)).toBeNull();
    clock = 500;
    second.leadership?.begun(null);
    const released = second.leadership?.failover ?? 0;
    expect(released).toBeGreaterThan(500);
    clock = 9_000;
    second.leadership?.begun(null);
    expect(second.leadership?.failover).toBe(released);
    await sql("UPDATE setpointd.site SET lease_until = clock_timestamp() - interval '7 s'");
    const terms = { lost: 0 };
    const third = await open({ process: "third", length: 60_000, terms, monotonic: () => clock });
    const lapsed = third.leadership?.lapsed(NOON);
    expect(lapsed?.process).toBe("second");
    expect(NOON - (lapsed?.at ?? 0)).toBeGreaterThanOrEqual(7_000);
    clock = 9_100;
    expect(third.leadership?.lapsed(NOON)).toEqual(lapsed);
    third.leadership?.begun(null);
    expect(third.leadership?.failover).toBeGreaterThanOrEqual(7_100);

    // A lost lease is counted once, by the process that lost it.
    await sql("UPDATE setpointd.site SET epoch = epoch + 1 WHERE leader = 'third'");
    third.store.write([row("1")]);
    expect((await third.store.durable()).ok).toBe(false);
    expect(third.leadership?.state).toBe("lost");
    expect(terms).toEqual({ lost: 1 });
  });
});
