import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

import type { PriceSeriesView } from "../../src/operator/listViews.ts";
import type { Daemon } from "../support/aDaemon.ts";
import { Floor } from "../support/aFloor.ts";
import { aSite, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

/** The site's configuration with these prices. */
function fetching(site: Site, prices: object): void {
  const { vtn } = parse(readFileSync(site.config, "utf8")) as { vtn: object };
  site.configure({ vtn: { ...vtn, prices } });
}

const view = (daemon: Daemon) => daemon.view<readonly PriceSeriesView[]>("/api/v1/prices");

/** Once every series was asked for. */
const asked = (daemon: Daemon): Promise<readonly PriceSeriesView[]> =>
  waitFor(async () => {
    const all = await view(daemon);
    return all.every(({ outcome }) => outcome !== null) ? all : null;
  });

const FORECAST = "/smart/v1/prices/forecast/{region}?segmentSize=6";

describe.skipIf(!mosquittoAvailable)("prices in a real daemon", () => {
  test("are fetched at the start, retained, and shown everywhere; an unknown region stops nothing", async () => {
    await using site = await aSite();
    fetching(site, { regions: ["NO1", "XX9"], forecastPath: FORECAST });
    await using daemon = await site.run();
    const series = await asked(daemon);
    expect(series).toMatchObject([
      { region: "NO1", kind: "actual", outcome: "good", doubts: [] },
      { region: "NO1", kind: "forecast", outcome: "good", prices: { length: 28 } },
      { region: "XX9", kind: "actual", outcome: "failed", reason: "the partner answered 404", prices: [] },
      { region: "XX9", kind: "forecast", outcome: "failed" },
    ]);
    const [spot] = series;
    expect(spot?.prices[0]).toEqual({
      start: expect.stringMatching(/T2[23]:00:00\.000Z$/),
      end: expect.stringMatching(/:00:00\.000Z$/),
      value: expect.any(Number),
      currency: "NOK",
      perUnit: "kWh",
      region: "NO1",
      vat: { rate: 0.25, hasVAT: false },
    });

    await using late = await Floor.at(site.broker.url);
    await waitFor(() => late.on("prices/NO1/forecast").length > 0);
    const [retained, ...more] = late.on("setpointd/depot/prices/NO1");
    expect(JSON.parse(retained?.text ?? "")).toEqual(spot?.prices);
    expect([retained?.retain, more, late.on("XX9")]).toEqual([true, [], []]);

    const { text } = await daemon.get("/metrics");
    expect(text).toContain('setpointd_price_fetches_total{region="NO1",series="actual",outcome="good"} 1');
    expect(text).toMatch(/^setpointd_price_horizon_seconds\{region="NO1"\} \d+/m);
    await waitFor(async () => {
      const rows = await daemon.view<{ kind: string }[]>("/api/v1/audit");
      return rows.filter(({ kind }) => kind === "prices").length === 4;
    });
    const line = await waitFor(() =>
      daemon.line("spot prices of XX9 cannot be fetched: the partner answered 404"),
    );
    expect(line.level).toBeGreaterThan(30);
    expect(site.floor.commands).toEqual([]);

    const cli = await setpointd(["prices", "-c", site.config, "--json"]);
    expect([cli.code, cli.stderr]).toEqual([0, ""]);
    expect(JSON.parse(cli.stdout)).toEqual(series);
  });

  test("are published again to a broker that forgot them (F85)", async () => {
    await using site = await aSite();
    fetching(site, { regions: ["NO1"] });
    await using daemon = await site.run();
    await asked(daemon);
    await waitFor(() => site.floor.on("prices/NO1").length > 0);
    await site.broker.kill();
    await site.broker.start();
    await using late = await Floor.at(site.broker.url);
    await waitFor(() => late.on("prices/NO1").length > 0, { timeoutMs: 20_000 });
    expect(late.on("prices/NO1")[0]?.text).toBe(site.floor.on("prices/NO1")[0]?.text);
  });

  test("survive a kill -9: with the partner gone they are shown and published as before", async () => {
    await using site = await aSite();
    fetching(site, { regions: ["NO1"] });
    await using killed = await site.run();
    const [before] = await asked(killed);
    // The record is committed after the prices that it is about.
    await waitFor(() => killed.line("spot prices of NO1: "));
    await killed.end("SIGKILL");
    await site.partner[Symbol.asyncDispose]();
    await site.broker.kill();

    const people = await setpointd(["prices", "-c", site.config]);
    expect([people.code, people.stderr]).toEqual([0, ""]);
    expect(people.stdout).toMatch(/^spot prices of NO1, as of .*\n( {2}.* to .* {2}[\d.]+ NOK\/kWh\n)+$/);

    await site.broker.start();
    await using daemon = await site.run();
    const [after] = await asked(daemon);
    expect(after).toEqual({ ...before, outcome: "failed", reason: expect.stringContaining("ECONNREFUSED") });
    await using late = await Floor.at(site.broker.url);
    await waitFor(() => late.on("prices/NO1").length > 0);
    expect(JSON.parse(late.on("prices/NO1")[0]?.text ?? "")).toEqual(before?.prices);
    expect(daemon.line("spot prices of NO1 cannot be fetched")?.msg).toContain("the last ones are kept");
  });

  test("are not requested without a configured region, and the verb reports that", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    expect(await view(daemon)).toEqual([]);
    const { code, stdout } = await setpointd(["prices", "-c", site.config]);
    expect([code, stdout]).toEqual([0, "no prices are fetched: vtn.prices.regions names no region\n"]);
    expect(site.partner.faults.requests.prices).toBe(0);
  });
});
