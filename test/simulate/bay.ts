import type { Telemetry } from "../../src/domain/telemetry.ts";
import { amperes, type ChargerId, chargerId, type Instant } from "../../src/domain/units.ts";
import { type PluggedVehicle, type SimulatedCharger, switchedOn } from "../../src/sim/charger.ts";
import type { PlannedCharger } from "./plan.ts";
import { type Standing, standingUnder } from "./oracle.ts";

/** One outlet, and what is wrong with it. Moments are true time; what is past is over. */
export interface Bay {
  readonly plan: PlannedCharger;
  readonly id: ChargerId;
  model: SimulatedCharger;
  /** Null: nobody; what is not one of ours is a stranger. */
  guest: string | null;
  /** A vehicle that it names instead of the one that is there; null: none. */
  claim: { readonly vehicle: string; readonly until: number } | null;
  /** What the gateway heard last of who is there; undefined: nothing since it started. */
  heard: string | null | undefined;
  /** It has named a vehicle that is not its own: a start may recall that one, as long as it hears of nobody else. */
  hasNamedGuests: boolean;
  connected: boolean;
  /** What the broker keeps of its `online`. */
  online: boolean;
  /** When the gateway last heard that it is offline. */
  offlineAt: number;
  offUntil: number;
  deafUntil: number;
  lyingUntil: number;
  muteUntil: number;
  /** Its last telemetry that this run of the gateway received; null: none. */
  reported: Telemetry | null;
  /** When the gateway could last hear anything of it. */
  spokeAt: number;
}

const VOLTAGE = 230;

export function bay(plan: PlannedCharger, guest: string | null, now: Instant): Bay {
  const id = chargerId(plan.id);
  const most = amperes(plan.maxCurrent);
  const traits = {
    id,
    phases: plan.phases,
    voltage: VOLTAGE,
    minCurrent: amperes(6),
    maxCurrent: most,
    ownDefault: most,
    ramp: 4,
  };
  return {
    plan,
    id,
    model: switchedOn(traits, physical(guest, plan), now),
    guest,
    claim: null,
    heard: undefined,
    hasNamedGuests: false,
    connected: true,
    online: true,
    offlineAt: Number.NEGATIVE_INFINITY,
    offUntil: 0,
    deafUntil: 0,
    lyingUntil: 0,
    muteUntil: 0,
    reported: null,
    spokeAt: now,
  };
}

/** A vehicle with a battery that no day fills. */
export const physical = (guest: string | null, { maxCurrent }: PlannedCharger): PluggedVehicle | null =>
  guest === null
    ? null
    : { id: guest, identity: null, maxCurrent: amperes(maxCurrent), capacityWh: 1e7, soc: 10 };

/** What it says of who is there. An empty one names nobody. */
export function toldBy({ plan, guest, claim }: Bay, now: Instant): string | null {
  if (!plan.tells || guest === null) return null;
  return claim !== null && now < claim.until ? claim.vehicle : guest;
}

/** What it does now. */
export function standingOf({ model: { order } }: Bay, now: Instant): Standing {
  return order === null || order.expires <= now ? { kind: "free" } : standingUnder(order.desired);
}
