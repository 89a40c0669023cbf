import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";

import type { ReportRow } from "../../src/operator/listViews.ts";
import type { WireEvent } from "../../src/sim/events.ts";
import type { Daemon } from "../support/aDaemon.ts";
import { anEvent, aSite, type Site, startOf } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const STEP = 500;

const descriptor = (payloadType: string, readingType: string, aggregate = false) => ({
  payloadType,
  readingType,
  aggregate,
  historical: true,
  frequency: 0,
  numIntervals: 0,
  repeat: 0,
  startInterval: 0,
});
const USAGE = descriptor("USAGE", "DIRECT_READ");
const DEMAND = descriptor("DEMAND", "MEAN", true);

const reporting = (report: object = {}) => aSite({ over: { report: { settleDelay: "1s", ...report } } });
const rows = (daemon: Daemon) => daemon.view<readonly ReportRow[]>("/api/v1/reports");
const verb = (site: Site, ...args: readonly string[]) => setpointd(["reports", ...args, "-c", site.config]);

/** Once every report of the event is in this state. */
const settled = (daemon: Daemon, state: ReportRow["state"]): Promise<readonly ReportRow[]> =>
  waitFor(
    async () => {
      const all = await rows(daemon);
      return all.length > 0 && all.every((row) => row.state === state) ? all : null;
    },
    { timeoutMs: 20_000 },
  );

/** From a second before an event to a second after it, each charger meters an even 18 kW: 2.5 Wh in each step. */
async function charging(
  site: Site,
  event: WireEvent,
  lastsMs: number,
  chargers: readonly string[],
): Promise<void> {
  const from = startOf(event) - SECOND;
  for (let at = from; at <= from + lastsMs + 2 * SECOND; at += STEP) {
    await sleep(Math.max(0, at - Date.now()));
    const energyWh = 10_000 + ((at - from) / STEP) * 2.5;
    const payload = JSON.stringify({
      at: new Date(at).toISOString(),
      state: "charging",
      powerW: 18_000,
      energyWh,
    });
    for (const charger of chargers)
      await site.floor.publish(`setpointd/depot/chargers/${charger}/telemetry`, payload);
  }
}

describe.skipIf(!mosquittoAvailable)("reports from a real daemon", () => {
  test("the energy that an event asks for reaches the partner as the meters showed it", async () => {
    await using site = await reporting();
    await using daemon = await site.run();
    const lasts = 4 * SECOND;
    const wish = { startIn: 2 * SECOND, lastsMs: lasts, vehicles: ["veh-1", "veh-2"], amperes: 26 };
    const event = site.partner.put(anEvent("EV/1", { ...wish, reportDescriptors: [USAGE, DEMAND] }));
    await daemon.deliver(event);
    expect(await rows(daemon)).toMatchObject([
      { name: "EV/1/0/0", state: "planned", payloadType: "USAGE", due: expect.stringMatching(/Z$/) },
      { name: "EV/1/1/0", state: "planned", payloadType: "DEMAND" },
    ]);
    await charging(site, event, lasts, ["bay-01", "bay-02"]);
    const sent = await settled(daemon, "sent");

    const [usage, demand] = site.partner.reports.accepted;
    expect([usage?.format, usage?.event]).toEqual(["openadr30", "EV/1"]);
    expect(usage?.body).toMatchObject({
      programID: "depot-flex",
      clientName: "depot",
      reportName: "EV/1/0/0",
      payloadDescriptors: [{ payloadType: "USAGE", readingType: "DIRECT_READ", units: "KWH" }],
      resources: ["veh-1", "veh-2"].map((resourceName) => ({
        resourceName,
        intervals: [
          {
            id: 0,
            intervalPeriod: { start: event.intervalPeriod.start, duration: "PT4S" },
            payloads: [
              { type: "USAGE", values: [0.02] },
              { type: "DATA_QUALITY", values: ["OK"] },
            ],
          },
        ],
      })),
    });
    expect(demand?.body).toMatchObject({
      resources: [
        { resourceName: "AGGREGATED_REPORT", intervals: [{ payloads: [{ values: [36] }, {}, {}] }] },
      ],
    });
    expect(
      sent.map(({ name, status, summary, receipt }) => [name, status, summary, receipt?.slice(0, 11)]),
    ).toEqual([
      ["EV/1/1/0", 201, "2 vehicles, 0.04 kWh", '{"id":"R-2"'],
      ["EV/1/0/0", 201, "2 vehicles, 0.04 kWh", '{"id":"R-1"'],
    ]);
    const line = await waitFor(() => daemon.line("report EV/1/0/0 sent: 2 vehicles, 0.04 kWh (HTTP 201)"));
    expect(line.level).toBe(30);
    const { text } = await daemon.get("/metrics");
    expect(text).toContain('setpointd_reports_total{outcome="sent"} 2');
    expect(text).toContain("setpointd_reports_waiting 0");

    const people = await verb(site);
    expect([people.code, people.stderr]).toEqual([0, ""]);
    expect(people.stdout).toMatch(
      /^sent {5}EV\/1\/1\/0 {2}DEMAND {2}2 vehicles, 0\.04 kWh, .* to .*, sent .*\nsent /,
    );
    await daemon.end("SIGTERM");
    const stored = await verb(site, "show", "EV/1/0/0", "--json");
    expect(JSON.parse(stored.stdout)).toEqual({ ...sent[1], body: usage?.body });
    expect(JSON.parse((await verb(site, "--json")).stdout)).toEqual(sent);
  });

  test.each(["openadr31", "vehicleChargeAction"])(
    "in the format %s they are what the partner reads, on the path that is set",
    async (format) => {
      await using site = await reporting({
        format,
        family: "vtn",
        location: { latitude: 60, longitude: 11 },
      });
      await using daemon = await site.run();
      const event = site.partner.put(anEvent("EV-1", { lastsMs: 2 * SECOND, reportDescriptors: [USAGE] }));
      await daemon.deliver(event);
      await charging(site, event, 2 * SECOND, ["bay-01"]);
      await settled(daemon, "sent");
      expect(site.partner.reports.accepted).toMatchObject([{ format, event: "EV-1" }]);
      expect(site.partner.faults.requests.report).toBe(1);
    },
  );

  test("killed between composing and sending, the same body goes out once after the start (F43)", async () => {
    await using site = await reporting();
    site.partner.faults.failNext(500, 1000, "report");
    await using killed = await site.run();
    await killed.deliver(site.partner.put(anEvent("EV-1", { lastsMs: SECOND, reportDescriptors: [USAGE] })));
    await waitFor(() => killed.line("report EV-1/0/0 was not delivered: HTTP 500"), { timeoutMs: 15_000 });
    await killed.end("SIGKILL");
    const composed = JSON.parse((await verb(site, "show", "EV-1/0/0", "--json")).stdout) as { body: object };

    site.partner.faults.forgive();
    await using daemon = await site.run();
    await settled(daemon, "sent");
    expect(site.partner.reports.accepted.map(({ body }) => body)).toEqual([composed.body]);
    await daemon.end("SIGKILL");
    await using again = await site.run();
    expect((await rows(again)).map(({ state }) => state)).toEqual(["sent"]);
    expect(site.partner.reports.accepted).toHaveLength(1);
  });

  test("a report that the partner refused is shown with the partner's reason, and an operator sends it again", async () => {
    await using site = await reporting();
    await using daemon = await site.run();
    site.partner.faults.failNext(422, 1, "report");
    await daemon.deliver(site.partner.put(anEvent("EV-1", { lastsMs: SECOND, reportDescriptors: [USAGE] })));
    const [refused] = await settled(daemon, "flagged");
    expect(refused).toMatchObject({
      status: 422,
      reason: 'HTTP 422: {"error":"planned failure"}',
      nextTry: null,
    });
    const shown = await verb(site, "show", "EV-1/0/0");
    expect(shown.stdout).toMatch(/^EV-1\/0\/0: USAGE flagged, 1 vehicle, .*HTTP 422.*\n/);
    expect(shown.stdout).toContain('"reportName": "EV-1/0/0"');
    const again = await verb(site, "resend", "EV-1/0/0");
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("report EV-1/0/0 is sent again")]);
    await settled(daemon, "sent");
    for (const args of [
      ["show", "EV-9"],
      ["resend", "EV-9"],
    ]) {
      const { code, stdout, stderr } = await verb(site, ...args);
      expect([code, stdout, stderr]).toEqual([
        1,
        "",
        "there is no report EV-9: setpointd reports lists them\n",
      ]);
    }
    await daemon.end("SIGTERM");
    const offline = await verb(site, "resend", "EV-1/0/0");
    expect([offline.code, offline.stderr]).toEqual([1, expect.stringContaining("no daemon runs")]);
  });

  test("without reports the verbs report that, and without a daemon the reports to come are computed from the state", async () => {
    await using site = await reporting();
    await using daemon = await site.run();
    expect((await verb(site)).stdout).toBe("no event has asked for a report yet\n");
    const event = anEvent("EV-1", { lastsMs: 60 * SECOND, reportDescriptors: [USAGE] });
    await daemon.deliver(site.partner.put(event));
    const [planned] = await settled(daemon, "planned");
    const early =
      /^report EV-1\/0\/0 is planned: it is composed at .*\d\d:\d\d:\d\d; there is no body yet\n$/;
    expect(await verb(site, "show", "EV-1/0/0")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(early),
    });
    expect(await verb(site, "resend", "EV-1/0/0")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(early),
    });
    await daemon.end("SIGKILL");
    expect(await verb(site, "show", "EV-1/0/0")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(early),
    });
    expect(JSON.parse((await verb(site, "show", "EV-1/0/0", "--json")).stdout)).toEqual({
      ...planned,
      body: null,
    });
    expect(JSON.parse((await verb(site, "--json")).stdout)).toEqual([planned]);
    expect((await verb(site)).stdout).toMatch(/^planned {2}EV-1\/0\/0 {2}USAGE {2}.* to .*, due .*\n$/);
  });
});
