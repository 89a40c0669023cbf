import { pino } from "pino";
import { describe, expect, test } from "vitest";

import { DeliveryReader, FleetDeliveries } from "../../../src/daemon/fleet/deliveries.ts";
import type { IngestAnswer } from "../../../src/domain/delivery.ts";
import { eventId, instant } from "../../../src/domain/units.ts";
import { anEvent } from "../../support/anEvent.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { waitFor } from "../../support/waitFor.ts";
import { aFleetOf } from "../../store/postgres/fleetRows.ts";
import { aCluster } from "../../store/postgres/state.ts";

const now = instant(Date.UTC(2026, 10, 24));
const put = (site: string, vehicle: string) => ({ site, file: "{}", vehicles: [vehicle] });

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
        typeof stored === "string" ? [] : [[site, { siteKey: stored.siteKey, failed, ingest }] as const],
      ),
    );
    const reading = new DeliveryReader(inbox, led, log).read();
    await waitFor(() => begun === 16);
    for (const end of ends.splice(0, 10)) end();
    await waitFor(() => begun === 26);
    // The other six and the ten that came after them hang.
    await waitFor(() => begun === 40);
    await reading;
    for (const end of ends) end();
  });
});
