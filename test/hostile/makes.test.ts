import { connectAsync, type MqttClient } from "mqtt";
import pino from "pino";
import { describe, expect, test } from "vitest";

import { chargerId, instant } from "../../src/domain/units.ts";
import { MixedFloor } from "../../src/sim/mixedFloor.ts";
import { boundTo } from "../chargers/profile/aTrial.ts";
import { BUS, PARAMETERS, TRAITS } from "../sim/pairing.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
const MIB = 1024 * 1024;
const PATIENCE = { timeoutMs: 30_000 };
const MAKES = Object.entries(PARAMETERS).map(([profile, params], index) => ({
  id: `bay-${index + 1}`,
  vehicle: `veh-${index + 1}`,
  profile,
  params,
}));

/** What each of these makes never says, on topics of its own. */
const RUBBISH: Readonly<Record<string, readonly string[]>> = {
  "go-e-v2": ["go-eCharger/000001/nrg", "go-eCharger/000001/car", "go-eCharger/000001/amp/result"],
  warp: ["warp3/AbCd/evse/state", "warp3/AbCd/meters/0/values", "warp3/AbCd/meters/0/value_ids"],
  "openwb-secondary": ["openWB/internal_chargepoint/0/get/currents"],
  smartevse: ["SmartEVSE/1/EVCurrentL1", "SmartEVSE/1/ChargeCurrent"],
};
const PAYLOADS = [
  Buffer.from([0xff, 0xfe, 0x00, 0x80]),
  ...[
    "NaN",
    "1e999",
    "-1e308",
    "16",
    "[[[[16]]]]",
    '{"charger_state":[],"allowed_charging_current":"lots"}',
    "[".repeat(20_000),
    "x".repeat(70_000),
    "\0",
    "null",
  ].map((text) => Buffer.from(text)),
];
const RUBBISH_A_SECOND = 1000;

/** Each of these makes says this much, until it is stopped; answers how much it was. */
function flooding(client: MqttClient): () => number {
  const topics = Object.values(RUBBISH);
  let said = 0;
  const timer = setInterval(() => {
    for (const of of topics) {
      for (let each = 0; each < RUBBISH_A_SECOND / 20; each += 1) {
        said += 1;
        // The few that are long are a twentieth, or the broker is what would be tried.
        const payload = said % 20 === 0 ? PAYLOADS[(said / 20) % PAYLOADS.length] : PAYLOADS[said % 6];
        client.publish(of[said % of.length] ?? "", payload ?? "", { qos: 0 });
      }
    }
  }, 50);
  return () => {
    clearInterval(timer);
    return said;
  };
}

describe.skipIf(!mosquittoAvailable || process.platform !== "linux")(
  "chargers that send malformed messages",
  () => {
    test(
      "F95: four makes that each send a thousand malformed messages a second get a count and a warning each; the six others start and end on time",
      async () => {
        await using site = await aSite({
          over: {
            control: { verdict: { ramp: "5s" } },
            chargers: MAKES.map(({ id, profile, params }) => ({
              id,
              profile,
              params,
              current: { min: 6, max: 32 },
            })),
            vehicles: MAKES.map(({ id, vehicle }) => ({ id: vehicle, charger: id })),
          },
        });
        await using floor = MixedFloor.start({
          url: site.broker.url,
          now: () => instant(Date.now()),
          log: pino({ level: "silent" }),
          chargers: MAKES.map(({ id, profile, params }) => ({
            profile,
            params: boundTo(profile, params).values,
            traits: { ...TRAITS, id: chargerId(id) },
            vehicle: BUS,
          })),
        });
        await floor.whenOnline();
        await using daemon = await site.run();
        const before = daemon.memory;
        const rubbish = await connectAsync(site.broker.url);
        const stop = flooding(rubbish);
        const drawnBy = (id: string): number =>
          floor.chargers[MAKES.findIndex((make) => make.id === id)]?.model.drawn ?? Number.NaN;
        const others = MAKES.filter(({ profile }) => RUBBISH[profile] === undefined).map(({ id }) => id);
        expect(others).toHaveLength(6);

        const due = anEvent("EV-1", {
          startIn: 3000,
          lastsMs: 8000,
          amperes: 10,
          vehicles: MAKES.map(({ vehicle }) => vehicle),
        });
        await daemon.deliver(due);
        await waitFor(() => MAKES.every(({ id }) => drawnBy(id) <= 10), PATIENCE);
        // An acknowledgement is committed within 100 ms, perhaps after its charger has obeyed.
        const acknowledged = await waitFor(async () => {
          const rows = await daemon.view<{ words: string; at: string }[]>("/api/v1/audit?limit=10000");
          const found = rows.filter(({ words }) => words.includes("acknowledged by the broker after"));
          return MAKES.every(({ id }) => found.some(({ words }) => words.startsWith(`${id} `)))
            ? found
            : null;
        }, PATIENCE);
        for (const { id } of MAKES) {
          const row = acknowledged.find(({ words }) => words.startsWith(`${id} `));
          expect(Date.parse(row?.at ?? "") - Date.parse(due.intervalPeriod.start), id).toBeLessThan(1000);
        }
        await waitFor(() => others.every((id) => drawnBy(id) > 10), PATIENCE);

        expect(stop()).toBeGreaterThan(10 * RUBBISH_A_SECOND);
        await rubbish.endAsync();
        const warned = daemon.lines.filter(({ msg }) => msg.startsWith("charger message discarded"));
        const flooded = MAKES.filter(({ profile }) => RUBBISH[profile] !== undefined).map(({ id }) => id);
        expect(warned.map(({ charger }) => String(charger)).toSorted()).toEqual(flooded);
        const metrics = (await daemon.get("/metrics")).text;
        for (const id of flooded)
          expect(metrics).toMatch(new RegExp(`discarded[^\\n]*charger="${id}"[^\\n]* [1-9]\\d{2,}`));
        expect((daemon.memory - before) / MIB).toBeLessThan(100);
      },
      MINUTE,
    );
  },
);
