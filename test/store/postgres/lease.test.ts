import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";

import { Gate } from "../../support/aGate.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { NOON, row } from "../sqlite/words.ts";
import { aCluster, openedSite } from "./state.ts";

const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await sleep(10);
};

describe.skipIf(postgresMissing() !== null)("PostgreSQL", () => {
  const cluster = aCluster();

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
    clock = 6_000;
    expect(leadership?.state).toBe("in doubt");
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
});
