import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { aSite, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const HOUR = 3_600_000;
/** Minutes of the day in UTC, the zone of the site: the next time is the same at any hour of the run. */
const inHours = (hours: number): string =>
  new Date(Math.floor(Date.now() / 60_000) * 60_000 + hours * HOUR).toISOString().slice(11, 16);

const verb = (site: Site, ...args: readonly string[]) =>
  setpointd(["departures", "-c", site.config, ...args]);

describe.skipIf(!mosquittoAvailable)("departures of a running site", () => {
  test("are set, imported, listed and cleared at the command line and by HTTP, and survive kill -9", async () => {
    await using site = await aSite();
    const [imported, weekly, later] = [inHours(2), inHours(3), inHours(4)];
    site.configure({
      vehicles: [1, 2].map((number) => ({
        id: `veh-${number}`,
        name: `Bus ${number}`,
        charger: `bay-0${number}`,
        ...(number === 1 ? { departures: [{ at: weekly, energy: 18 }] } : {}),
      })),
    });
    {
      await using daemon = await site.run();
      await waitFor(async () => (await daemon.view<readonly unknown[]>("/api/v1/departures")).length === 1);
      expect((await verb(site)).stdout).toMatch(
        new RegExp(
          `^Bus 1 \\(veh-1\\) leaves .*${weekly}:00 with 18 kWh, at bay-01: UNKNOWN; not known: telemetry of bay-01$`,
          "m",
        ),
      );
      const set = await verb(site, "set", "Bus 2", "--at", later, "--soc", "80%");
      expect(set).toMatchObject({ code: 0, stderr: "" });
      expect(set.stdout).toContain("Bus 2 (veh-2) leaves");
      expect(await verb(site, "set", "veh-2", "--at", later)).toMatchObject({ code: 2 });
      expect(await verb(site, "set", "veh-2", "--at", "26:10", "--energy", "18kWh")).toMatchObject({
        code: 2,
      });
      expect(await verb(site, "set", "veh-2", "--at", later, "--energy", "18")).toMatchObject({ code: 2 });
      expect(await verb(site, "set", "veh-2", "--at", later, "--soc", "full")).toMatchObject({ code: 2 });
      const file = join(site.directory, "blocks.csv");
      writeFileSync(file, `vehicle,at,energyKwh\nveh-1,${imported},21.5\n`);
      expect((await verb(site, "import", file)).stdout).toContain("departures set: 1, vehicles: 1");
      expect((await verb(site, "import", join(site.directory, "none.csv"))).code).toBe(2);
      const explained = await setpointd(["explain", "-c", site.config, "veh-1"]);
      expect(explained.stdout).toContain("Bus 1 (veh-1) leaves");
      expect(explained.stdout).toMatch(/^wins +default +\S+ +free /m);
      expect((await daemon.get("/metrics")).text).toContain('setpointd_departures{state="unknown"} 2');
      const vehicles = await daemon.view<readonly { departure: { at: string } | null }[]>("/api/v1/vehicles");
      expect(vehicles[0]?.departure?.at.slice(10)).toBe(`T${imported}:00.000Z`);
      const shift = await setpointd(["handover", "-c", site.config, "--since", "8h"]);
      expect(shift).toMatchObject({ code: 0, stderr: "" });
      expect(shift.stdout).toMatch(/^mode drive; 0 events, 0 active; 0 overrides, 0 open; /m);
      expect(shift.stdout).toMatch(/^overrides: none$/m);
      expect(shift.stdout).toMatch(
        new RegExp(`^ {2}.*${imported}:00 Bus 1 leaves, not known whether in time$`, "m"),
      );
      expect(JSON.parse((await setpointd(["handover", "-c", site.config, "--json"])).stdout)).toMatchObject({
        events: [],
        holds: [],
        mode: { mode: "drive" },
      });
      expect((await setpointd(["handover", "-c", site.config, "--since", "soon"])).code).toBe(2);
      await daemon.end("SIGKILL");
    }
    expect((await verb(site)).code).toBe(1);
    await using daemon = await site.run();
    const list = (): Promise<readonly Record<string, unknown>[]> => daemon.view("/api/v1/departures");
    await waitFor(async () => (await list()).length === 2);
    expect(await list()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ vehicle: "veh-1", source: "csv", need: { energyWh: 21_500 } }),
        expect.objectContaining({ vehicle: "veh-2", source: "api", need: { soc: 80 } }),
      ]),
    );
    expect((await verb(site, "clear", "veh-2", "--json")).stdout).toContain('"next":null');
    expect((await verb(site, "clear", "veh-1")).stdout).toMatch(/^cleared; next: Bus 1/);
    expect((await verb(site, "clear", "veh-2")).code).toBe(1);
    expect(JSON.parse((await verb(site, "--json")).stdout)).toMatchObject([{ source: "weekly" }]);
  });
});
