import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

import { chargerId } from "../../src/domain/units.ts";
import { MixedFloor } from "../../src/sim/mixedFloor.ts";
import { boundTo } from "../chargers/profile/aTrial.ts";
import { now, silent } from "../sim/clock.ts";
import { BUS, TRAITS } from "../sim/pairing.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SOON = { timeoutMs: 25_000 };
const PARAMS = { prefix: "SmartEVSE/1" };

/** As smartevse, with pauses that a test can wait for. */
const brisk = readFileSync(new URL("../../config/profiles/smartevse.yaml", import.meta.url), "utf8")
  .replace("profile: smartevse", "profile: smartevse-brisk")
  .concat("phaseSwitch: { every: 1s, settle: 1s, deadTime: 2s }\n");

test.skipIf(!mosquittoAvailable)(
  "2.3 kW is charged on one phase where three cannot do it, and an operator's release gives all three back",
  async () => {
    await using site = await aSite({
      over: {
        control: { verdict: { ramp: "1s" } },
        chargers: [
          {
            id: "bay-01",
            profile: "smartevse-brisk",
            params: PARAMS,
            current: { max: 32 },
            phaseSwitching: { every: "1m" },
          },
        ],
        vehicles: [{ id: "veh-1", charger: "bay-01" }],
      },
    });
    mkdirSync(join(site.directory, "profiles"));
    writeFileSync(join(site.directory, "profiles", "smartevse-brisk.yaml"), brisk);
    const setup = {
      profile: "smartevse",
      params: boundTo("smartevse", PARAMS).values,
      traits: { ...TRAITS, id: chargerId("bay-01") },
      vehicle: BUS,
    };
    await using floor = MixedFloor.start({ url: site.broker.url, chargers: [setup], now, log: silent });
    await floor.whenOnline();
    await using daemon = await site.run();
    const watts = (): number => {
      const { drawn, traits } = floor.chargers[0]?.model ?? { drawn: 0, traits: TRAITS };
      return Math.round(drawn * traits.phases * traits.voltage);
    };
    await waitFor(() => watts() === 22_080, SOON);

    await daemon.deliver(anEvent("EV-1", { lastsMs: 120_000, kilowatts: 2.3 }));
    await waitFor(() => watts() === 0, SOON);
    const seen = new Set<number>();
    await waitFor(() => seen.add(watts()).has(2_300), SOON);
    // On three phases its 10 A would have been more than was asked.
    expect(Math.max(...seen)).toBe(2_300);
    const record = async (): Promise<readonly string[]> => {
      const rows = await daemon.view<readonly { readonly words: string }[]>("/api/v1/audit?limit=1000");
      return rows.map(({ words }) => words);
    };
    await waitFor(async () => (await record()).some((line) => /followed: .*draws 10 A/.test(line)), SOON);
    expect((await record()).filter((line) => /not followed|refused/.test(line))).toEqual([]);

    expect(await setpointd(["release", "bay-01", "-c", site.config])).toMatchObject({ code: 0 });
    await waitFor(() => watts() === 22_080, SOON);
  },
);
