import pino from "pino";
import { expect } from "vitest";

import { amperes, chargerId, instant, millis } from "../../src/domain/units.ts";
import { SimulatedChargers } from "../../src/sim/chargers.ts";
import type { WireEvent } from "../../src/sim/events.ts";
import type { Daemon } from "../support/aDaemon.ts";
import { anEvent, type Site, startOf } from "../support/aSite.ts";
import type { Fault } from "../support/faultProxy.ts";
import { waitFor } from "../support/waitFor.ts";

export const SECOND = 1000;
export const PATIENCE = { timeoutMs: 60_000 };
export const BAYS = ["bay-01", "bay-02", "bay-03", "bay-04"] as const;

/** How someone falls silent whom the network still knows, or does not. */
export const silences: readonly (readonly [string, Fault])[] = [
  ["half open", { kind: "halfOpen" }],
  ["refusing", { kind: "refuse" }],
];

/** What a short silence is laid over. */
export interface Plan {
  readonly ends: WireEvent;
  readonly starts: WireEvent;
  readonly passes: WireEvent;
  readonly holds: WireEvent;
}

/** One event ends during the silence, one starts, one comes and goes, and one holds; the gateway knows all of them before. */
export async function aPlan(site: Site, daemon: Daemon): Promise<Plan> {
  const put = (...event: Parameters<typeof anEvent>): WireEvent => site.partner.put(anEvent(...event));
  const plan = {
    ends: put("ends", { lastsMs: 6 * SECOND, amperes: 10 }),
    starts: put("starts", { startIn: 5 * SECOND, lastsMs: 600 * SECOND, amperes: 12, vehicles: ["veh-2"] }),
    passes: put("passes", { startIn: 4 * SECOND, lastsMs: 3 * SECOND, amperes: 14, vehicles: ["veh-3"] }),
    holds: put("holds", { lastsMs: 600 * SECOND, amperes: 16, vehicles: ["veh-4"] }),
  };
  expect((await daemon.deliver(Object.values(plan))).status).toBe(202);
  await site.floor.nth("bay-01", 1);
  await site.floor.nth("bay-04", 1);
  return plan;
}

/** The last edge of the plan has passed. */
export const isOver = ({ passes }: Plan): Promise<boolean> =>
  waitFor(() => Date.now() > startOf(passes) + 4 * SECOND, PATIENCE);

/** What a charger was told after so many messages: "16 EV-1", "release EV-1". */
export const since = (site: Site, from: number, bay: string): readonly string[] =>
  site.floor.heard
    .slice(from)
    .filter(({ topic }) => topic.endsWith(`/chargers/${bay}/set`))
    .map(({ text }) => {
      const { kind, value, event } = JSON.parse(text);
      return `${value ?? kind} ${event}`;
    });

/** Four simulated native chargers on the broker of a site, without vehicles. */
export const chargersOf = async (site: Site): Promise<SimulatedChargers> => {
  const chargers = SimulatedChargers.start({
    url: site.broker.url,
    prefix: "setpointd",
    site: "depot",
    chargers: BAYS.map((bay) => ({
      traits: {
        id: chargerId(bay),
        phases: 3,
        voltage: 230,
        minCurrent: amperes(6),
        maxCurrent: amperes(32),
        ownDefault: amperes(32),
        ramp: 100,
      },
      vehicle: null,
    })),
    now: () => instant(Date.now()),
    log: pino({ level: "silent" }),
    reconnectAfter: millis(100),
  });
  await chargers.whenOnline();
  return chargers;
};
