import { z } from "zod";

import { bindVehicle, unbindVehicle } from "../control/observe/bindings.ts";
import { nearVehicle } from "../control/schedule/targeting.ts";
import { NO_CHANGES, type RequestedChange } from "../control/stage.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import type { Committed } from "../domain/changes.ts";
import { formatLevel, viewOf } from "../domain/setpoint.ts";
import { chargerId, type ChargerId, type Instant, iso } from "../domain/units.ts";
import { type Binding, type Vehicle, vehicleNamed } from "../domain/vehicle.ts";
import { type Answer, conflict, FirstAnswers, invalid, mistakesIn, notStored, starting } from "./answer.ts";
import { noSuchCharger, resendSchema, WHY } from "./chargerActions.ts";
import { holdSchema } from "./holdRequest.ts";

/** The body of `POST chargers/ID/vehicle`. */
export const bindingSchema = z.strictObject({
  vehicle: z.string().trim().min(1).max(256).describe("Id or name of the vehicle that stands there."),
  reason: holdSchema.shape.reason,
});

/** A person names the vehicle on a charger that cannot identify it, and takes it back. `by`: name of the person. */
export interface BindingApi {
  /** `key`: a repeated one gets the first answer. */
  readonly bind: (charger: string, body: unknown, by: string, key: string | null) => Promise<Answer<Json>>;
  readonly unbind: (charger: string, body: unknown, by: string) => Promise<Answer<Json>>;
}

interface BindingParts {
  readonly state: ControlState;
  /** Hands a change to control. Resolves after its commit. */
  readonly request: (change: RequestedChange) => Promise<Committed>;
  readonly now: () => Instant;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
}

const EXPECTED = { vehicle: "id or name of a vehicle", ...WHY };

export class OperatorBindings implements BindingApi {
  readonly #parts: BindingParts;
  /** By idempotency key. */
  readonly #answers = new FirstAnswers();

  constructor(parts: BindingParts) {
    this.#parts = parts;
  }

  /** A request that is repeated with its key gets the first answer, from this run or from the store. */
  async bind(name: string, body: unknown, by: string, key: string | null): Promise<Answer<Json>> {
    const checked = bindingSchema.safeParse(body);
    if (!checked.success) return invalid(...mistakesIn(body, bindingSchema, EXPECTED));
    const request = JSON.stringify([name, checked.data, by]);
    const signed = key === null ? null : `${key} ${request}`;
    const bound = (): Promise<Answer<Json>> => this.#bind(name, checked.data, by, signed);
    return this.#answers.once(key, request, () => {
      const stored = this.#parts.state.occupancy.bindingAt(chargerId(name));
      const isRepeat = stored !== null && signed !== null && stored.key === signed;
      return isRepeat ? this.#again(stored, bound) : bound();
    });
  }

  /** The binding of an earlier request, which may not be stored yet. `bound`: it was not, and is no more. */
  async #again(stored: Binding, bound: () => Promise<Answer<Json>>): Promise<Answer<Json>> {
    const committed = await this.#parts.request(() => NO_CHANGES);
    if (!committed.ok) return notStored(committed);
    const binding = this.#parts.state.occupancy.bindingAt(stored.charger);
    return binding?.key === stored.key ? { ok: true, value: this.#view(binding, null) } : bound();
  }

  async unbind(name: string, body: unknown, by: string): Promise<Answer<Json>> {
    const { state, isReady } = this.#parts;
    const checked = resendSchema.safeParse(body);
    if (!checked.success) return invalid(...mistakesIn(body, resendSchema, WHY));
    if (!isReady()) return starting;
    const id = chargerId(name);
    if (!state.chargers.has(id)) return noSuchCharger(state, name);
    const done: { ended: Binding | null } = { ended: null };
    const committed = await this.#parts.request((current, at) => {
      done.ended = current.occupancy.bindingAt(id);
      return done.ended === null
        ? NO_CHANGES
        : unbindVehicle(current, done.ended, { by, reason: checked.data.reason }, at);
    });
    if (!committed.ok) return notStored(committed);
    if (done.ended === null) return conflict("nothing was changed", `nobody has named the vehicle at ${id}`);
    return { ok: true, value: this.#view(done.ended, null) };
  }

  async #bind(
    name: string,
    { vehicle: named, reason }: z.output<typeof bindingSchema>,
    by: string,
    key: string | null,
  ): Promise<Answer<Json>> {
    const { state, isReady } = this.#parts;
    if (!isReady()) return starting;
    const id = chargerId(name);
    if (!state.chargers.has(id)) return noSuchCharger(state, name);
    const vehicle = vehicleNamed(state.vehicles.values(), named);
    if (vehicle === null) return unknownVehicle(state, named);
    const refused = refusalOf(state, id, vehicle);
    if (refused !== null) return refused;
    const done: { refused: Answer<Json> | null; binding: Binding | null; from: ChargerId | null } = {
      refused: null,
      binding: null,
      from: null,
    };
    const committed = await this.#parts.request((current, since) => {
      // Another person, or the charger, was faster in the same moment.
      done.refused = refusalOf(current, id, vehicle);
      if (done.refused !== null) return NO_CHANGES;
      const { occupancy } = current;
      const there = occupancy.at(id);
      const identity =
        there.kind === "unknown" ? there.identity : (occupancy.bindingAt(id)?.identity ?? null);
      done.from = occupancy.where(vehicle.id);
      done.binding = { charger: id, vehicle: vehicle.id, identity, by, reason, since, key };
      return bindVehicle(current, done.binding, since);
    });
    if (done.refused !== null) return done.refused;
    if (!committed.ok || done.binding === null)
      return notStored(committed.ok ? { reason: "it was not applied" } : committed);
    return { ok: true, value: this.#view(done.binding, done.from) };
  }

  /** `from`: the charger at which the vehicle counted before. */
  #view(binding: Binding, from: ChargerId | null): { readonly [member: string]: Json } {
    const { state, now } = this.#parts;
    const { charger: id, vehicle } = binding;
    const charger = state.chargers.get(id);
    const level = charger === undefined ? null : state.verdictOn(charger, now()).desired;
    const who = state.vehicles.get(vehicle)?.name ?? vehicle;
    const isBound = state.occupancy.bindingAt(id)?.vehicle === vehicle;
    const left = from === null || from === id ? "" : `, no longer to ${from}`;
    const isFree = level?.kind === "release";
    const gets =
      level === null ? "" : `; ${id} ${isFree ? "decides by itself" : `gets ${formatLevel(level)}`}`;
    return {
      ...bindingView(binding),
      charger: id,
      from,
      level: level === null ? null : viewOf(level),
      sentence: isBound
        ? `${who} is assigned to ${id}${left}${gets}`
        : `${who} is no longer assigned to ${id}${gets}`,
    };
  }
}

/** Binding of a vehicle by a person, as the row of the charger shows it. Null: none that counts. */
export const bindingView = (binding: Binding | null): { readonly [member: string]: Json } | null =>
  binding && {
    vehicle: binding.vehicle,
    by: binding.by,
    reason: binding.reason,
    since: iso(binding.since),
  };

function unknownVehicle({ vehicles }: ControlState, wanted: string): Answer<Json> {
  const near = nearVehicle(wanted, vehicles);
  const expected = near === null ? "the id or the name of a vehicle of this site" : `did you mean ${near}?`;
  return invalid({ path: "vehicle", found: wanted, expected });
}

/** Why a person's word does not count at a charger now. Null: it does. */
function refusalOf(state: ControlState, id: ChargerId, { id: vehicle, name }: Vehicle): Answer<Json> | null {
  const { occupancy } = state;
  const { telemetry, online } = state.presence.of(id);
  const no = (why: string): Answer<Json> => conflict(`${name} was not bound to ${id}`, why);
  if (online === false || state.silence.has(id))
    return no(`${id} is ${online === false ? "offline" : "silent"}: what is plugged in there is not known`);
  if (telemetry === null) return no(`${id} has not reported yet that a vehicle is plugged in`);
  if (telemetry.state === "unplugged") return no(`nothing is plugged in at ${id}`);
  const there = occupancy.at(id);
  if (there.kind !== "vehicle" || there.source === "kept") return null;
  if (there.vehicle === vehicle) return no(`it is assigned there already${alreadyBy[there.source]}`);
  const isOwnWord = there.source === "telemetry" && !occupancy.recalled().includes(id);
  return isOwnWord
    ? no(`${id} itself reports ${state.vehicles.get(there.vehicle)?.name ?? there.vehicle}`)
    : null;
}

const alreadyBy = {
  telemetry: ": the charger reports it",
  fixed: ": it is its fixed place",
  person: ": a person has said so",
};
