import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connectAsync } from "mqtt";
import { describe, expect, test } from "vitest";

import { mqttClientId } from "../../src/chargers/broker/address.ts";
import type { Daemon } from "../support/aDaemon.ts";
import type { SetPayload } from "../support/aFloor.ts";
import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { type Fault, FaultProxy } from "../support/faultProxy.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
const PATIENCE = { timeoutMs: 60_000 };
/** Longer than all waits of a test together. */
const HANG = 180_000;

const warnings = (daemon: Daemon, words: string): number =>
  daemon.lines.filter(({ level, msg }) => level >= 40 && msg.includes(words)).length;

/** Acting at bay-01 and bay-02; bay-03 has nothing to do. */
async function aSiteBehindAProxy() {
  await using stack = new AsyncDisposableStack();
  const site = stack.use(await aSite());
  const proxy = stack.use(await FaultProxy.before(site.broker.port));
  site.configure({ mqtt: { url: `mqtt://127.0.0.1:${proxy.port}` } });
  const daemon = stack.use(await site.run());
  await daemon.deliver([
    anEvent("EV-1", { lastsMs: 5 * MINUTE }),
    anEvent("EV-2", { lastsMs: 5 * MINUTE, vehicles: ["veh-2"] }),
  ]);
  for (const charger of ["bay-01", "bay-02"]) await site.floor.nth(charger, 1);
  const running = stack.move();
  return { site, proxy, daemon, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** While a fault lasts: changes of one event, and the end of the other. */
async function lifeGoesOn(daemon: Daemon, changes: readonly number[] = [12, 10]): Promise<void> {
  for (const amperes of changes) await daemon.deliver(anEvent("EV-1", { lastsMs: 5 * MINUTE, amperes }));
  await daemon.deliver({ objectType: "EVENT", operation: "DELETE", object: { ID: "EV-2" } });
}

/** `each`: the connection may have stood while it was decided, so that a charger hears every command in turn. */
type Heard = "the last" | "each";

/** From the message `from` on: the state that holds comes at most once to a charger, and nothing comes after it. */
async function onlyWhatHolds(
  { floor }: Site,
  daemon: Daemon,
  from: number,
  heard: Heard = "the last",
): Promise<void> {
  const last = () => [floor.told("bay-01").at(-1), floor.told("bay-02").at(-1)];
  await waitFor(() => JSON.stringify(last()) === '["10 A EV-1","release EV-2"]', PATIENCE);
  await waitFor(() => daemon.hasBroker(), PATIENCE);
  // Another event passes through the same pipe: nothing may still be on its way before it.
  await daemon.deliver(anEvent("EV-last", { lastsMs: MINUTE, vehicles: ["veh-4"] }));
  await floor.nth("bay-04", 1, PATIENCE.timeoutMs);
  const since = floor.heard.slice(from).filter(({ topic }) => topic.endsWith("/set"));
  for (const bay of ["bay-01", "bay-02"]) {
    const seqs = since.flatMap(({ topic, text }) =>
      topic.includes(bay) ? [(JSON.parse(text) as SetPayload).seq] : [],
    );
    // None comes twice, and none comes after a newer one.
    expect(seqs, bay).toEqual([...new Set(seqs)].toSorted((a, b) => a - b));
    if (heard === "the last") expect(seqs.length, bay).toBeLessThanOrEqual(1);
  }
  expect(floor.sets("bay-03")).toEqual([]);
  expect(floor.on("gateway/online").at(-1)?.text).toBe("true");
}

const outages: readonly (readonly [string, Fault, string])[] = [
  ["F81: half open", { kind: "halfOpen" }, "no PUBACK"],
  ["F83: refused at the door", { kind: "refuse" }, ""],
  ["F84: cut again and again before it is up", { kind: "limited", bytes: 150 }, ""],
];

describe.skipIf(!mosquittoAvailable).concurrent("a broker that misbehaves", () => {
  test.each(outages)(
    "%s: once healed each charger receives its setpoint, at most once; each reason was logged once, and retries were rare",
    async (_name, fault, reason) => {
      await using it = await aSiteBehindAProxy();
      const { site, proxy, daemon } = it;
      const calls = proxy.calls;
      proxy.fault = fault;
      if (fault.kind !== "halfOpen") proxy.reset();
      await lifeGoesOn(daemon);
      await waitFor(() => proxy.calls > calls, PATIENCE);
      expect(proxy.calls - calls).toBeLessThan(10);
      expect(await daemon.hasBroker()).toBe(false);
      const told = daemon.lines.filter(
        ({ level, msg }) => level >= 40 && msg.startsWith("broker unreachable"),
      );
      const reasons = told.map((line) => String(line["reason"]));
      expect(reasons[0]).toContain(reason);
      expect(reasons).toEqual([...new Set(reasons)]);
      expect(reasons.length).toBeLessThan(4);
      const from = site.floor.heard.length;
      proxy.fault = { kind: "none" };
      await onlyWhatHolds(site, daemon, from);
    },
    HANG,
  );

  test.each([
    ["F82: slow", { kind: "slow", bytesPerSecond: 4000 }, null],
    ["F82: far away", { kind: "latency", ms: 700 }, 1400],
  ] as const)(
    "%s: what is decided arrives late, in order and once, and no webhook waits for it",
    async (_name, fault, roundTripMs) => {
      await using it = await aSiteBehindAProxy();
      const { site, proxy, daemon } = it;
      proxy.fault = fault;
      const from = site.floor.heard.length;
      const began = performance.now();
      await lifeGoesOn(daemon, [10]);
      // Each of two webhooks that waited for the broker would take a whole round trip.
      if (roundTripMs !== null) expect(performance.now() - began).toBeLessThan(2 * roundTripMs);
      await onlyWhatHolds(site, daemon, from);
      expect(warnings(daemon, "broker")).toBe(0);
    },
    HANG,
  );

  test(
    "F92: reset in the middle of publishes, ten times over, no charger ever goes back to an older command",
    async () => {
      await using it = await aSiteBehindAProxy();
      const { site, proxy, daemon } = it;
      for (let amperes = 20; amperes > 10; amperes -= 1) {
        await daemon.deliver(anEvent("EV-1", { lastsMs: 5 * MINUTE, amperes }));
        proxy.reset();
        await waitFor(async () => !(await daemon.hasBroker()));
        if (amperes % 3 === 0) await waitFor(() => daemon.hasBroker(), PATIENCE);
      }
      await lifeGoesOn(daemon);
      await waitFor(() => daemon.hasBroker(), PATIENCE);
      await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1", PATIENCE);
      const seqs = site.floor.sets("bay-01").map(({ set }) => set.seq);
      expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    },
    HANG,
  );

  test(
    "F84: another client with our id disconnects us once; we reconnect, and no charger receives a command twice",
    async () => {
      await using it = await aSiteBehindAProxy();
      const { site, daemon } = it;
      const from = site.floor.heard.length;
      const clientId = mqttClientId("depot", readFileSync(join(site.state, "site.key")));
      const intruder = await connectAsync(site.broker.url, { clientId, reconnectPeriod: 0 });
      intruder.on("error", () => undefined);
      await waitFor(
        () => warnings(daemon, "broker unreachable") + warnings(daemon, "client id") > 0,
        PATIENCE,
      );
      await lifeGoesOn(daemon);
      await intruder.endAsync(true);
      await onlyWhatHolds(site, daemon, from, "each");
    },
    HANG,
  );

  test(
    "F95: a storm of malformed messages and unknown clients delays no command, and is logged once",
    async () => {
      await using it = await aSiteBehindAProxy();
      const { site, daemon } = it;
      const storm = await connectAsync(site.broker.url, { reconnectPeriod: 0 });
      for (let count = 0; count < 20_000; count += 1) {
        const charger = count % 2 === 0 ? "bay-01" : `stranger-${count}`;
        storm.publish(`setpointd/depot/chargers/${charger}/telemetry`, `{"at":${count}`);
      }
      await storm.publishAsync("setpointd/depot/chargers/bay-03/telemetry", "x".repeat(500_000), { qos: 1 });
      const from = site.floor.heard.length;
      await lifeGoesOn(daemon, [10]);
      await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1", PATIENCE);
      await onlyWhatHolds(site, daemon, from);
      expect(warnings(daemon, "not readable")).toBeLessThanOrEqual(2);
      expect(daemon.lines.length).toBeLessThan(100);
      await storm.endAsync(true);
    },
    HANG,
  );
});
