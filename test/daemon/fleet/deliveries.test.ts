import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { describe, expect, test, vi } from "vitest";

import { DeliveryReader, FleetDeliveries } from "../../../src/daemon/fleet/deliveries.ts";
import { eventsIn } from "../../../src/daemon/fleet/routing.ts";
import type { Delivery, IngestAnswer } from "../../../src/domain/delivery.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { failed } from "../../../src/vtn/http.ts";
import { anEvent } from "../../support/anEvent.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { aFleetOf } from "../../store/postgres/fleetRows.ts";
import { aCluster } from "../../store/postgres/state.ts";

const now = instant(Date.UTC(2026, 10, 24));
const lease = { epoch: 1, state: "leading" } as const;
const put = (site: string, vehicle: string) => ({ site, file: "{}", vehicles: [vehicle] });

/** A clock by which each wait is over at the next look. */
const waited = (): (() => number) => {
  let at = 0;
  return () => (at += 60_000);
};

const notice = (id: string) => ({
  kind: "event" as const,
  event: anEvent({ id: eventId(id), targets: [{ type: "vehicle", values: ["bus-1"] }] }),
});

describe.skipIf(postgresMissing() !== null)("deliveries to a fleet", () => {
  const cluster = aCluster();

  test("a site whose row another program edited keeps no other site from its delivery", async () => {
    const { sites, process, sql } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a", "bus-1"), put("b", "bus-2"), put("c", "bus-3")]);
    await sql("UPDATE site SET keys = (SELECT keys FROM site WHERE id = 'b') WHERE id = 'a'");
    await sql("UPDATE fleet_site SET file = '{ }' WHERE id = 'b'");
    const logged: string[] = [];
    let stored = 0;
    const deliveries = new FleetDeliveries({
      sites,
      inbox,
      log: pino({}, { write: (line) => void logged.push(line) }),
      onStored: () => (stored += 1),
    });
    const event = anEvent({
      id: eventId("EV-1"),
      targets: [{ type: "vehicle", values: ["bus-1", "bus-2", "bus-3"] }],
    });
    const delivery = { source: "webhook", at: now, askedAt: now, complete: false } as const;
    expect(await deliveries.put({ ...delivery, notices: [{ kind: "event", event }] })).toEqual({
      ok: true,
      ingested: { accepted: 1, repeats: 0, rejected: 0 },
    });
    await work.take(3);
    // The keys of the site b are whole. Its delivery waits until its file is put again.
    expect((await inbox.waiting([], 10)).map(({ site }) => site).toSorted()).toEqual(["b", "c"]);
    expect(stored).toBe(1);
    expect(logged.join("")).toContain('"site":"a"');
  });

  test("a process with another key of the operator refuses a delivery: the sender repeats it, and it is not lost", async () => {
    const operatorKeys = [randomBytes(32)];
    const { sites, process } = await aFleetOf(cluster(), operatorKeys);
    await sites.put([put("a", "bus-1")]);
    const right = operatorKeys.splice(0, 1, randomBytes(32));
    const log = pino({ level: "silent" });
    const { inbox, work } = process("one");
    const deliveries = new FleetDeliveries({ sites, inbox, log, onStored: () => {} });
    const delivery = { source: "webhook", at: now, askedAt: now, complete: false } as const;
    const refused = await deliveries.put({ ...delivery, notices: [notice("EV-1")] });
    expect(refused).toEqual({ ok: false, reason: "the keys of the sites of this delivery cannot be read" });
    operatorKeys.unshift(...right);
    expect((await deliveries.put({ ...delivery, notices: [notice("EV-1")] })).ok).toBe(true);
    await work.take(1);
    expect(await inbox.waiting([], 10)).toHaveLength(1);
  });

  test("an entry that cannot be read and that no site has is logged with its path and the reason", async () => {
    const { sites, process } = await aFleetOf(cluster());
    const { inbox } = process("one");
    await sites.put([put("a", "bus-1")]);
    await inbox.put([], [{ event: "EV-known", site: "a" }], []);
    const logged: object[] = [];
    const log = pino(
      { base: null, timestamp: false },
      { write: (line) => void logged.push(JSON.parse(line)) },
    );
    const deliveries = new FleetDeliveries({ sites, inbox, log, onStored: () => {} });
    const delivery = { source: "webhook", at: now, askedAt: now, complete: false } as const;
    const rejected = { kind: "rejected", path: "[0].payload", raw: "{}" } as const;
    const foreign = anEvent({ id: eventId("EV-1"), targets: [{ type: "vehicle", values: ["bus-9"] }] });
    await deliveries.put({
      ...delivery,
      notices: [
        { ...rejected, id: eventId("EV-known"), reason: "a site records it" },
        { ...rejected, id: eventId("EV-2"), reason: `no\nsetpoint ${"x".repeat(500)}` },
        { ...rejected, id: null, reason: "no id" },
        { kind: "event", event: foreign },
      ],
    });
    const reason = `no\uFFFDsetpoint ${"x".repeat(116)}...`;
    expect(logged).toEqual([
      expect.objectContaining({
        msg: "a delivery has entries that cannot be read and that no site records",
        entries: [
          { event: "EV-2", path: "[0].payload", reason },
          { event: null, path: "[0].payload", reason: "no id" },
        ],
        count: 2,
      }),
      expect.objectContaining({ events: ["EV-1"], count: 1 }),
    ]);
  });

  test("the list is requested for an event that cannot be fetched by its id", async () => {
    const { sites, process } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a", "bus-1")]);
    await work.take(1);
    const log = pino({ level: "silent" });
    const deliveries = new FleetDeliveries({ sites, inbox, log, onStored: () => {} });
    const event = anEvent({ id: eventId("EV-1"), targets: [{ type: "vehicle", values: ["bus-1"] }] });
    const delivery = {
      source: "fetch",
      at: now,
      askedAt: now,
      complete: false,
      notices: [{ kind: "event", event }],
    } as const;
    await deliveries.fetch([eventId("EV-1"), eventId("EV-2")], async (id) =>
      id === "EV-1" ? { kind: "read", delivery, skew: null } : failed("the partner answered 502", 502, null),
    );
    expect((await inbox.waiting([], 10)).map(({ site }) => site)).toEqual(["a"]);
    expect((await work.snapshot()).wanted).toBe(1);
  });

  test("a site that knows an event from a list, or from before the fleet, gets its delete and its later revisions", async () => {
    const { sites, process, sql } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a", "bus-1"), put("b", "bus-2"), put("removed", "bus-3")]);
    await sites.remove("removed");
    // The site `alone` has the same database and is not part of the fleet.
    for (const site of ["a", "removed", "alone"])
      await sql(
        "INSERT INTO body (site, kind, id, open, body, mac) VALUES ($1, 'event', 'EV-1', true, '', '')",
        [site],
      );
    const logged: string[] = [];
    const log = pino({}, { write: (line) => void logged.push(line) });
    const deliveries = new FleetDeliveries({ sites, inbox, log, onStored: () => {} });
    const id = eventId("EV-1");
    const delivery = { source: "webhook", at: now, askedAt: now, complete: false } as const;
    const event = anEvent({ id, targets: [{ type: "vehicle", values: ["bus-2"] }] });
    await deliveries.put({ ...delivery, notices: [{ kind: "event", event }] });
    await deliveries.put({ ...delivery, notices: [{ kind: "deleted", id, revision: now }] });
    await deliveries.put({ ...delivery, source: "fetch", notices: [{ kind: "gone", id }] });
    await work.take(3);
    const ids = (await inbox.waiting([], 10)).map((each) => each.id);
    const waiting = (await inbox.bodies(ids)).map(({ site, body }) => {
      const { notices } = JSON.parse(body) as Delivery;
      return `${site} ${notices.map(({ kind }) => kind).join()}`;
    });
    expect(waiting.toSorted()).toEqual(["a deleted", "a event", "a gone", "b deleted", "b event", "b gone"]);
    expect(logged).toEqual([]);
  });

  test("an event and its delete that two processes store at the same time both reach the site", async () => {
    const { sites, process } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a", "bus-1")]);
    await work.take(1);
    const log = pino({ level: "silent" });
    const from = { source: "webhook", at: now, askedAt: now, complete: false } as const;
    const quiet = new FleetDeliveries({ sites, inbox, log, onStored: () => {} });
    /** A process that has read which sites are concerned, and commits only after another one stored this. */
    const slow = (meanwhile: Delivery) => {
      let isLate = true;
      const late = {
        sitesOf: inbox.sitesOf.bind(inbox),
        all: () => inbox.all(),
        deleted: inbox.deleted.bind(inbox),
        wantList: () => inbox.wantList(),
        put: async (...rows: Parameters<typeof inbox.put>) => {
          if (isLate) expect((await quiet.put(meanwhile)).ok).toBe(true);
          isLate = false;
          await inbox.put(...rows);
        },
      };
      return new FleetDeliveries({ sites, inbox: late, log, onStored: () => {} });
    };
    const both = (id: string): readonly [Delivery, Delivery] => {
      const event = anEvent({ id: eventId(id), targets: [{ type: "vehicle", values: ["bus-1"] }] });
      return [
        { ...from, notices: [{ kind: "event", event }] },
        { ...from, notices: [{ kind: "deleted", id: eventId(id), revision: now }] },
      ];
    };
    const [firstEvent, firstDelete] = both("EV-1");
    expect((await slow(firstDelete).put(firstEvent)).ok).toBe(true);
    const [secondEvent, secondDelete] = both("EV-2");
    expect((await slow(secondEvent).put(secondDelete)).ok).toBe(true);
    const ids = (await inbox.waiting([], 10)).map(({ id }) => id);
    const stored = (await inbox.bodies(ids)).map(({ body }) =>
      (JSON.parse(body) as Delivery).notices
        .map((each) => `${each.kind} ${each.kind === "event" ? each.event.id : each.id}`)
        .join(),
    );
    expect(stored).toEqual(["event EV-1", "deleted EV-1", "event EV-2", "deleted EV-2"]);
  });

  test("sites ingest some deliveries at a time, and those that hang hold up no other", async () => {
    const { sites, process } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    const names = Array.from({ length: 40 }, (_, index) => `s${index}`);
    await sites.put(names.map((site) => put(site, `bus-${site}`)));
    const log = pino({ level: "silent" });
    const event = anEvent({
      id: eventId("EV-1"),
      targets: [{ type: "vehicle", values: names.map((site) => `bus-${site}`) }],
    });
    const delivery = { source: "webhook", at: now, askedAt: now, complete: false } as const;
    await new FleetDeliveries({ sites, inbox, log, onStored: () => {} }).put({
      ...delivery,
      notices: [{ kind: "event", event }],
    });
    await work.take(names.length);
    const ends: (() => void)[] = [];
    let begun = 0;
    const ingest = (): Promise<IngestAnswer> => {
      begun += 1;
      return new Promise((resolve) => {
        ends.push(() => resolve({ ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } }));
      });
    };
    const failed = { resolve: (error: unknown) => expect.fail(String(error)) };
    const led = new Map(
      [...(await sites.read(names))].flatMap(([site, stored]) =>
        typeof stored === "string"
          ? []
          : [[site, { siteKey: stored.siteKey, lease, failed, ingest }] as const],
      ),
    );
    const reading = new DeliveryReader(inbox, led, log, waited()).read();
    await waitFor(() => begun === 16);
    for (const end of ends.splice(0, 10)) end();
    await waitFor(() => begun === 26);
    // The other six and the ten that came after them hang.
    await waitFor(() => begun === 40);
    await reading;
    for (const end of ends) end();
  });

  test("a delivery that can never be stored goes to the quarantine, and those of the same commit are stored", async () => {
    const { sites, process, sql } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a", "bus-1"), put("b", "bus-2")]);
    const stored = await sites.read(["a", "b"]);
    const leases = new Map((await work.take(2)).map((each) => [each.site, each]));
    const from = { source: "webhook", at: now, askedAt: now, complete: false } as const;
    const ingested: string[] = [];
    let isLeading = false;
    let waiting: { readonly delivery: Delivery; readonly settle: (answer: IngestAnswer) => void }[] = [];
    /** As a store: deliveries of one turn share a commit. */
    const commit = async (): Promise<void> => {
      const all = waiting;
      waiting = [];
      const ids = all.map(({ delivery }) => eventsIn(delivery.notices).join());
      const isBad = !isLeading || ids.includes("BAD");
      if (!isBad) ingested.push(...ids);
      for (const { delivery, settle } of all) {
        if (!isBad) await inbox.drop(delivery.stored ?? 0);
        settle(
          isBad
            ? { ok: false, reason: "too large" }
            : { ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } },
        );
      }
    };
    const led = new Map(
      [...stored].flatMap(([site, found]) => {
        const own = leases.get(site);
        if (typeof found === "string" || own === undefined) return [];
        return [
          [
            site,
            {
              siteKey: found.siteKey,
              lease: {
                epoch: own.epoch,
                get state() {
                  return isLeading ? ("leading" as const) : ("in doubt" as const);
                },
              },
              failed: { resolve: (error: unknown) => expect.fail(String(error)) },
              ingest: (delivery: Delivery) =>
                new Promise<IngestAnswer>((settle) => {
                  // The site b has commits of its own.
                  if (site === "b")
                    return settle({ ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } });
                  if (waiting.length === 0) setTimeout(() => void commit(), 5);
                  waiting.push({ delivery, settle });
                }),
            },
          ] as const,
        ];
      }),
    );
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const reader = new DeliveryReader(inbox, led, log, waited());
    const deliver = async (site: string, ...ids: readonly string[]): Promise<void> => {
      const found = stored.get(site);
      if (typeof found !== "object") throw new Error(found);
      const { siteKey } = found;
      const rows = ids.map((id) => ({ site, siteKey, delivery: { ...from, notices: [notice(id)] } }));
      await inbox.put(rows, [], []);
    };
    await deliver("a", "BAD", "GOOD", "LATER");
    const kept = async (): Promise<readonly unknown[]> =>
      (await sql("SELECT body FROM quarantine WHERE site = 'a'")).map((row) =>
        JSON.parse(String(row["body"])),
      );
    /** In doubt nothing can be stored, which is no fault of a delivery. */
    for (let times = 0; times < 6; times += 1) {
      await reader.read();
      await waitFor(() => waiting.length === 0);
    }
    expect(await kept()).toEqual([]);
    isLeading = true;
    await waitFor(async () => {
      await reader.read();
      return ingested.length === 2;
    });
    expect(ingested.toSorted()).toEqual(["GOOD", "LATER"]);
    // Nothing else is stored, so the database may be at fault.
    for (let times = 0; times < 6; times += 1) {
      await reader.read();
      await waitFor(() => waiting.length === 0);
    }
    expect(await kept()).toEqual([]);
    await waitFor(async () => {
      await deliver("b", "OTHER");
      await reader.read();
      return (await kept()).length > 0;
    });
    expect(await kept()).toMatchObject([{ event: "BAD", reason: "too large", source: "webhook" }]);
    expect(lines.join("")).toContain("it is in the quarantine");
    expect((await inbox.waiting([], 10)).map(({ site }) => site)).not.toContain("a");
  });

  /** Site "a" of a fleet, led by its only process. */
  const aLedSite = async () => {
    const { sites, process } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("a", "bus-1")]);
    const stored = (await sites.read(["a"])).get("a");
    if (typeof stored !== "object") throw new Error(stored);
    await work.take(1);
    return { inbox, siteKey: stored.siteKey };
  };

  test("deliveries of a commit that failed once are stored one after another, without a wait for the next read", async () => {
    const { inbox, siteKey } = await aLedSite();
    let isFailing = true;
    let failures = 0;
    const ingested: (number | undefined)[] = [];
    const ingest = async ({ stored: id }: Delivery): Promise<IngestAnswer> => {
      if (isFailing) failures += 1;
      if (isFailing) return { ok: false, reason: "the connection was lost" };
      await inbox.drop(id ?? 0);
      ingested.push(id);
      return { ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } };
    };
    const site = {
      siteKey,
      lease,
      failed: { resolve: (error: unknown) => expect.fail(String(error)) },
      ingest,
    };
    const delivery = { source: "webhook", at: now, askedAt: now, complete: false, notices: [] } as const;
    await inbox.put(
      Array.from({ length: 12 }, () => ({ site: "a", siteKey, delivery })),
      [],
      [],
    );
    const reader = new DeliveryReader(inbox, new Map([["a", site]]), pino({ level: "silent" }), waited());
    await reader.read();
    await waitFor(() => failures === 12);
    isFailing = false;
    await reader.read();
    await waitFor(() => ingested.length === 12);
    expect(ingested).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
  });

  test("while nothing can be stored, a delivery is tried less and less often, and one that arrives at once", async () => {
    const { inbox, siteKey } = await aLedSite();
    const tried: (number | undefined)[] = [];
    const ingest = async ({ stored: id }: Delivery): Promise<IngestAnswer> => {
      tried.push(id);
      return { ok: false, reason: "cannot be stored" };
    };
    const failed = { resolve: (error: unknown) => expect.fail(String(error)) };
    const led = new Map([["a", { siteKey, lease, failed, ingest }]]);
    let clock = 0;
    const reader = new DeliveryReader(inbox, led, pino({ level: "silent" }), () => clock);
    const delivery = { source: "webhook", at: now, askedAt: now, complete: false, notices: [] } as const;
    const deliver = () => inbox.put([{ site: "a", siteKey, delivery }], [], []);
    await deliver();
    // An hour of looks.
    for (let look = 0; look < 4 * 3_600; look += 1, clock += 250)
      if (tried.length < 8 || clock % 60_000 === 0) await reader.read();
    expect(tried.length).toBeLessThan(70);
    expect(tried.length).toBeGreaterThan(50);
    clock += 1;
    await deliver();
    await reader.read();
    expect(tried.at(-1)).toBe((tried[0] ?? 0) + 1);
  });

  test("an announcement of a delivery that the database refuses to read does not end the process", async () => {
    const { process, sql } = await aFleetOf(cluster());
    const reader = new DeliveryReader(process("one").inbox, new Map(), pino({ level: "silent" }), waited());
    await sql("ALTER TABLE delivery RENAME TO away");
    reader.readSoon();
    // The loop reads again, and logs the failure.
    await expect(reader.read()).rejects.toThrow("delivery");
    // No other call waits for this one. An unhandled rejection would fail the test.
    reader.readSoon();
    await sql("SELECT pg_sleep(0.1)");
    await sql("ALTER TABLE away RENAME TO delivery");
    await reader.read();
  });

  test("deliveries of a site that does not run yet hold up no other site, however many and large they are", async () => {
    const { sites, process } = await aFleetOf(cluster());
    const { inbox, work } = process("one");
    await sites.put([put("starting", "bus-1"), put("running", "bus-2")]);
    const stored = await sites.read(["starting", "running"]);
    const keyOf = (site: string): Buffer => {
      const found = stored.get(site);
      return typeof found === "object" ? found.siteKey : Buffer.alloc(0);
    };
    const event = anEvent({ id: eventId("EV-1"), name: "x".repeat(900_000) });
    const small = { source: "webhook", at: now, askedAt: now, complete: false, notices: [] } as const;
    const large = { ...small, notices: [{ kind: "event", event } as const] };
    const of = (site: string, delivery: Delivery) => ({ site, siteKey: keyOf(site), delivery });
    await inbox.put(
      Array.from({ length: 1_000 }, () => of("starting", small)),
      [],
      [],
    );
    await inbox.put(
      [of("starting", large), ...Array.from({ length: 10 }, () => of("running", large))],
      [],
      [],
    );
    await work.take(2);
    const ingested: (number | undefined)[] = [];
    const site = (name: string, isReady: boolean) => ({
      siteKey: keyOf(name),
      lease,
      failed: { resolve: (error: unknown) => expect.fail(String(error)) },
      ingest: isReady
        ? async (delivery: Delivery): Promise<IngestAnswer> => {
            ingested.push(delivery.stored);
            return { ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } };
          }
        : null,
    });
    const led = new Map([["running", site("running", true)]]);
    const bodies = vi.spyOn(inbox, "bodies");
    const reader = new DeliveryReader(inbox, led, pino({ level: "silent" }), waited());
    await reader.read();
    expect(ingested).toEqual(Array.from({ length: 10 }, (_, index) => 1_002 + index));
    const read = await Promise.all(bodies.mock.results.map(({ value }) => value));
    expect(read.map((rows) => rows.length)).toEqual([4, 4, 2]);

    led.set("starting", site("starting", false));
    await reader.read();
    expect(ingested.length).toBe(20);
    led.set("starting", site("starting", true));
    await reader.read();
    expect(ingested.slice(20).filter((id) => id !== undefined && id <= 1_001)).toEqual(
      Array.from({ length: 1_001 }, (_, index) => index + 1),
    );
  });
});
