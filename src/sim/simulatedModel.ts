import { after, between, instant, type Instant, type Millis } from "../domain/units.ts";
import { plugged, type PluggedVehicle, rebooted, type SimulatedCharger, step } from "./charger.ts";
import { type ReceivedMessage, type Model, type Message, type LastOrder, viewOf } from "./models/model.ts";

/** How a charger of a make disobeys. Any of these together. */
export interface MakeFaults {
  /** Hears what it is told and goes on as before, without an answer. */
  readonly ignoresSetpoints?: boolean;
  /** Confirms what it is told and does what it did. */
  readonly lies?: boolean;
  /** Takes so long to hear. */
  readonly lagsBy?: Millis;
}

/** A charger of some make at one moment: what it was told, in the make's ways, and the physics behind. */
export interface SimulatedModel {
  readonly make: Model;
  readonly told: LastOrder;
  /** What it acts on; other than what it was told where it lies. */
  readonly acted: LastOrder;
  readonly charger: SimulatedCharger;
  /** What it has, whatever it is switched to. */
  readonly wiredPhases: number;
  readonly bootedAt: Instant;
  /** Messages that a slow one has not come to, oldest first. */
  readonly unheard: readonly (Pick<ReceivedMessage, "topic" | "payload"> & { readonly due: Instant })[];
  readonly faults: MakeFaults;
}

/** What a charger is after something, and what it says to that. */
export interface Reaction {
  readonly charger: SimulatedModel;
  readonly answers: readonly Message[];
}

const FOREVER = instant(Infinity);

/** As delivered, at the charger's own moment. */
export const simulatedModel = (
  make: Model,
  charger: SimulatedCharger,
  faults: MakeFaults = {},
): SimulatedModel =>
  acting({
    make,
    told: make.fresh,
    acted: make.fresh,
    charger,
    wiredPhases: charger.traits.phases,
    bootedAt: charger.at,
    unheard: [],
    faults,
  });

/** A message reaches it. Retained or not: no make looks. */
export function hear(before: SimulatedModel, topic: string, payload: string, now: Instant): Reaction {
  const due = after(now, before.faults.lagsBy ?? (0 as Millis));
  return advance({ ...before, unheard: [...before.unheard, { topic, payload, due }] }, now);
}

/** Lets time pass. */
export function advance(before: SimulatedModel, now: Instant): Reaction {
  const charger = step(before.charger, now);
  const aged = before.make.ages(before.told, now);
  const acted = before.faults.lies === true ? before.acted : before.make.ages(before.acted, now);
  const start: Reaction = { charger: { ...before, charger, told: aged, acted, unheard: [] }, answers: [] };
  const { charger: heard, answers } = before.unheard
    .filter(({ due }) => due <= now)
    .reduce(({ charger: at, answers }, { topic, payload }) => {
      const reaction = react(at, {
        topic,
        payload,
        at: now,
        traits: charger.traits,
        plugged: charger.vehicle !== null,
        upFor: between(before.bootedAt, now),
      });
      return { charger: reaction.charger, answers: [...answers, ...reaction.answers] };
    }, start);
  const unheard = before.unheard.filter(({ due }) => due > now);
  return { charger: acting({ ...heard, unheard }), answers };
}

function react(before: SimulatedModel, heard: ReceivedMessage): Reaction {
  const { faults, make } = before;
  const taken = make.hears(before.told, heard);
  if (taken === null) return { charger: before, answers: [] };
  // It still knows that its master lives.
  const { masterAt } = taken.told;
  if (faults.ignoresSetpoints === true) {
    const told = { ...before.told, masterAt };
    return { charger: { ...before, told, acted: { ...before.acted, masterAt } }, answers: [] };
  }
  const acted = faults.lies === true ? before.acted : taken.told;
  return { charger: { ...before, told: taken.told, acted }, answers: taken.answers };
}

/** The physics does what the make makes of what it was told. */
function acting(made: SimulatedModel): SimulatedModel {
  const { make, acted, charger, wiredPhases } = made;
  const phases = Math.min(acted.phases ?? wiredPhases, wiredPhases);
  const traits = { ...charger.traits, phases };
  const order = { epoch: 0, seq: 0, desired: make.does(acted, traits), expires: FOREVER };
  return { ...made, charger: { ...charger, traits, order } };
}

/** Everything it would tell now. */
export const tells = ({ make, told, charger, bootedAt }: SimulatedModel): readonly Message[] =>
  make.tells(viewOf(told, charger, bootedAt));

/** Another vehicle, or none. */
export function replugged(
  before: SimulatedModel,
  vehicle: PluggedVehicle | null,
  now: Instant,
): SimulatedModel {
  const { make } = before;
  const left = vehicle === null ? make.unplugged : (told: LastOrder) => told;
  const charger = plugged(before.charger, vehicle, now);
  return acting({ ...before, charger, told: left(before.told), acted: left(before.acted) });
}

/** Off and on again: what the make does not keep is gone. */
export function powerCycled(before: SimulatedModel, now: Instant): SimulatedModel {
  const { make } = before;
  const told = make.rebooted(before.told);
  const acted = make.rebooted(before.acted);
  return acting({
    ...before,
    told,
    acted,
    unheard: [],
    bootedAt: now,
    charger: rebooted(before.charger, now),
  });
}
