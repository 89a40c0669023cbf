import { after, between, instant, type Instant, type Millis } from "../domain/units.ts";
import { plugged, type PluggedVehicle, rebooted, type SimulatedCharger, step } from "./charger.ts";
import { type ReceivedMessage, type Model, type Message, type LastOrder, viewOf } from "./models/model.ts";

/** Faults of a charger with a model. They can be combined. */
export interface ModelFaults {
  /** Ignores orders and does not answer them. */
  readonly ignoresSetpoints?: boolean;
  /** Confirms an order without applying it. */
  readonly lies?: boolean;
  /** Delay before a message has an effect. */
  readonly lagsBy?: Millis;
}

/** A charger with a model at one moment: its last order and the physics behind it. */
export interface SimulatedModel {
  readonly model: Model;
  readonly order: LastOrder;
  /** Order that the physics follows. With the fault `lies` it differs from `order`. */
  readonly appliedOrder: LastOrder;
  readonly charger: SimulatedCharger;
  /** Phases of its supply, also while it charges on fewer. */
  readonly wiredPhases: number;
  readonly bootedAt: Instant;
  readonly boots: number;
  /** Messages whose delay (`lagsBy`) has not passed, oldest first. */
  readonly pending: readonly (Pick<ReceivedMessage, "topic" | "payload"> & { readonly due: Instant })[];
  readonly faults: ModelFaults;
}

/** State after a step, and the messages that it publishes at once. */
export interface Reaction {
  readonly charger: SimulatedModel;
  readonly answers: readonly Message[];
}

const NO_EXPIRY = instant(Infinity);

/** A charger as delivered by its manufacturer, by the charger's own clock. */
export const simulatedModel = (
  model: Model,
  charger: SimulatedCharger,
  faults: ModelFaults = {},
): SimulatedModel =>
  acting({
    model,
    order: model.fresh,
    appliedOrder: model.fresh,
    charger,
    wiredPhases: charger.traits.phases,
    bootedAt: charger.at,
    boots: 1,
    pending: [],
    faults,
  });

/** Delivers a message. No model distinguishes retained messages. */
export function deliver(before: SimulatedModel, topic: string, payload: string, now: Instant): Reaction {
  const due = after(now, before.faults.lagsBy ?? (0 as Millis));
  return advance({ ...before, pending: [...before.pending, { topic, payload, due }] }, now);
}

/** Advances to `now` and applies the messages that are due. */
export function advance(before: SimulatedModel, now: Instant): Reaction {
  const charger = step(before.charger, now);
  const aged = before.model.age(before.order, now);
  const appliedOrder =
    before.faults.lies === true ? before.appliedOrder : before.model.age(before.appliedOrder, now);
  const start: Reaction = {
    charger: { ...before, charger, order: aged, appliedOrder, pending: [] },
    answers: [],
  };
  const { charger: reacted, answers } = before.pending
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
  const pending = before.pending.filter(({ due }) => due > now);
  return { charger: acting({ ...reacted, pending }), answers };
}

function react(before: SimulatedModel, received: ReceivedMessage): Reaction {
  const { faults, model } = before;
  const effect = model.receive(before.order, received);
  if (effect === null) return { charger: before, answers: [] };
  // A faulty charger still registers heartbeats.
  const { masterAt } = effect.order;
  if (faults.ignoresSetpoints === true) {
    const order = { ...before.order, masterAt };
    return { charger: { ...before, order, appliedOrder: { ...before.appliedOrder, masterAt } }, answers: [] };
  }
  const appliedOrder = faults.lies === true ? before.appliedOrder : effect.order;
  return { charger: { ...before, order: effect.order, appliedOrder }, answers: effect.answers };
}

/** Applies the model's reading of the order to the physics. */
function acting(simulated: SimulatedModel): SimulatedModel {
  const { model, appliedOrder, charger, wiredPhases } = simulated;
  const phases = Math.min(appliedOrder.phases ?? wiredPhases, wiredPhases);
  const traits = { ...charger.traits, phases };
  const order = { epoch: 0, seq: 0, desired: model.desired(appliedOrder, traits), expires: NO_EXPIRY };
  return { ...simulated, charger: { ...charger, traits, order } };
}

/** Messages on all topics, by the charger's own clock. */
export const messagesOf = ({ model, order, charger, ...started }: SimulatedModel): readonly Message[] =>
  model.messages(viewOf(order, charger, started));

/** Another vehicle. Null: none. */
export function replugged(
  before: SimulatedModel,
  vehicle: PluggedVehicle | null,
  now: Instant,
): SimulatedModel {
  const { model } = before;
  const left = vehicle === null ? model.unplugged : (order: LastOrder) => order;
  const charger = plugged(before.charger, vehicle, now);
  return acting({ ...before, charger, order: left(before.order), appliedOrder: left(before.appliedOrder) });
}

/** Power cut: the model decides what survives it. */
export function powerCycled(before: SimulatedModel, now: Instant): SimulatedModel {
  const { model } = before;
  const order = model.rebooted(before.order);
  const appliedOrder = model.rebooted(before.appliedOrder);
  return acting({
    ...before,
    order,
    appliedOrder,
    pending: [],
    bootedAt: now,
    boots: before.boots + 1,
    charger: rebooted(before.charger, now),
  });
}
