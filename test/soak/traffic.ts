import { setTimeout as sleep } from "node:timers/promises";

import { type ChargerId, instant } from "../../src/domain/units.ts";
import type { SimulatedChargers } from "../../src/sim/chargers.ts";
import { type EventPlan, wireEvent } from "../../src/sim/events.ts";
import type { SimulatedPartner } from "../../src/sim/partner.ts";
import { below, oneOf } from "../fuzz/chance.ts";
import type { Mosquitto } from "../support/mosquitto.ts";

/** Everyone around the daemon. */
export interface Surroundings {
  readonly partner: SimulatedPartner;
  readonly broker: Mosquitto;
  readonly chargers: SimulatedChargers;
  /** With their vehicles: `veh-1` is on the first. */
  readonly ids: readonly ChargerId[];
  readonly random: () => number;
  readonly progress: (words: string) => void;
}

/** Beats between two of a kind. At a beat a minute that is a broker outage every eleven minutes. */
const EVERY = { brokerOutage: 11, partnerOutage: 7, revocation: 5, unplugging: 3 } as const;
/** Report descriptors as the partner writes them. */
export const REPORTED = [
  { payloadType: "USAGE", readingType: "DIRECT_READ", aggregate: false },
  { payloadType: "DEMAND", readingType: "MEAN", aggregate: true },
].map((kind) => ({ ...kind, historical: true, frequency: 0, numIntervals: 0, repeat: 0, startInterval: 0 }));

/** With every beat an event: edited or withdrawn before it ends, reported on; and from time to time something fails. */
export class Traffic {
  readonly #around: Surroundings;
  readonly #beatMs: number;
  readonly #lives = new Set<Promise<unknown>>();
  #beats = 0;
  /** How often what happened. */
  readonly count = { events: 0, edits: 0, withdrawals: 0, brokerOutages: 0, partnerOutages: 0 };

  constructor(around: Surroundings, beatMs: number) {
    this.#around = around;
    this.#beatMs = beatMs;
  }

  /** Until it is aborted, and what is under way then has ended. */
  async flow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#beats += 1;
      const life = this.#eventLife(this.#beats, signal).finally(() => this.#lives.delete(life));
      this.#lives.add(life);
      await this.#trouble();
      await pause(this.#beatMs, signal);
    }
    this.#around.partner.faults.forgive();
    await Promise.all(this.#lives);
  }

  /** Put, mostly told by webhook, then edited or withdrawn, and forgotten by the partner when all is over. */
  async #eventLife(number: number, signal: AbortSignal): Promise<void> {
    const { partner, random } = this.#around;
    const first = this.#anEvent(number);
    this.count.events += 1;
    await this.#say(first, random() < 0.2);
    await pause(this.#beatMs / 2, signal);
    if (signal.aborted) return;
    const fate = random();
    if (fate < 0.15) {
      this.count.withdrawals += 1;
      partner.withdraw(first.id);
      if (random() < 0.7) await partner.deliver(first.id, { operation: "DELETE" });
    } else if (fate < 0.6) {
      this.count.edits += 1;
      await this.#say({ ...first, ask: { amperes: 6 + below(20, random) } }, random() < 0.3);
    }
    await pause(first.durationMs + 3 * this.#beatMs, signal);
    partner.forget(first.id);
  }

  async #say(plan: EventPlan, isOnlyListed: boolean): Promise<void> {
    const { partner } = this.#around;
    partner.put(wireEvent(plan, instant(Date.now())));
    if (!isOnlyListed) await partner.deliver(plan.id);
  }

  #anEvent(number: number): EventPlan {
    const { ids, random } = this.#around;
    const chosen = ids.flatMap((_, index) => (random() < 0.2 ? [`veh-${index + 1}`] : []));
    return {
      id: `EV-${number}`,
      name: `Event ${number}`,
      start: instant(Date.now() + oneOf([0, 0.2, 1], random) * this.#beatMs),
      durationMs: Math.round((1 + 3 * random()) * this.#beatMs),
      randomizeStartMs: Math.round(oneOf([0, 0.25, 0.5], random) * this.#beatMs),
      priority: below(4, random),
      ask: random() < 0.7 ? { amperes: 6 + below(26, random) } : { kilowatts: 4 + below(16, random) },
      vehicles: chosen.length === 0 ? ["veh-1"] : chosen,
      reportDescriptors: REPORTED,
    };
  }

  async #trouble(): Promise<void> {
    const { partner, broker, chargers, ids, random, progress } = this.#around;
    const isTime = (every: number): boolean => this.#beats % every === 0;
    if (isTime(EVERY.unplugging)) {
      const charger = chargers.at(oneOf(ids, random));
      const { vehicle } = charger.model;
      charger.plug(null);
      setTimeout(() => charger.plug(vehicle), this.#beatMs / 4).unref();
    }
    if (isTime(EVERY.revocation)) partner.revokeTokens();
    if (isTime(EVERY.partnerOutage)) {
      progress("the partner fails");
      this.count.partnerOutages += 1;
      partner.faults.failNext(503, Infinity);
      setTimeout(() => partner.faults.forgive(), this.#beatMs).unref();
    }
    if (isTime(EVERY.brokerOutage)) {
      progress("the broker is killed");
      this.count.brokerOutages += 1;
      await broker.kill();
      await sleep(this.#beatMs / 4);
      await broker.start();
    }
  }
}

/** Ends early where it is aborted. */
const pause = (ms: number, signal: AbortSignal): Promise<unknown> =>
  sleep(ms, undefined, { signal }).catch(() => undefined);
