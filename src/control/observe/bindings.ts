import { auditRow, type Json } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { type ChargerId, type Instant, iso } from "../../domain/units.ts";
import type { Binding } from "../../domain/vehicle.ts";
import { ITSELF } from "../holds/lifecycle.ts";
import { reevaluationsOf, type StageResult } from "../stage.ts";
import type { ControlState } from "../state.ts";
import { keepLimits } from "./keepLimits.ts";

/** A person names the vehicle on a charger. It counts as if the charger had reported it now. */
export function bindVehicle(state: ControlState, binding: Binding, now: Instant): StageResult {
  const { charger, vehicle, by, reason } = binding;
  const replaced = state.occupancy.bindingAt(charger);
  const from = state.occupancy.where(vehicle);
  state.occupancy.kept.drop(charger);
  const claimed = claim(state, binding, now);
  const instead = replaced === null ? "" : `, not ${nameOf(state, replaced)} as ${replaced.by} said`;
  const message = `${nameOf(state, binding)} is at ${charger}, says ${by}${instead}: ${reason}`;
  const facts = { by, reason, identity: binding.identity, from, replaced: replaced?.vehicle ?? null };
  return {
    changes: [{ kind: "binding", binding }, bindingRow(binding, now, message, facts), ...claimed.changes],
    reevaluations: claimed.reevaluations,
  };
}

/** A person takes back what one said: what the charger itself reports counts again. */
export function unbindVehicle(
  state: ControlState,
  binding: Binding,
  { by, reason }: { readonly by: string; readonly reason: string },
  now: Instant,
): StageResult {
  const { changes, reevaluations } = drop(state, binding, now);
  const message = `${by} takes back that ${nameOf(state, binding)} is at ${binding.charger}: ${reason}`;
  const row = bindingRow(binding, now, message, { by, reason, said: binding.by, ended: true });
  return { changes: [forgotten(binding), row, ...changes], reevaluations };
}

/** `bound`: what a person said before a message. Returns the rows of its end, if the message ended it. */
export function endBinding(
  state: ControlState,
  bound: Binding | null,
  telemetry: Omit<Telemetry, "at">,
  now: Instant,
): readonly Change[] {
  if (bound === null || state.occupancy.bindingAt(bound.charger) !== null) return [];
  const why = telemetry.state === "unplugged" ? "reports unplugged" : "names another vehicle itself";
  const message = `${bound.charger} ${why}: that ${nameOf(state, bound)} is there, as ${bound.by} said, is over`;
  return [forgotten(bound), bindingRow(bound, now, message, { by: ITSELF, said: bound.by, ended: true })];
}

/** Rows, at a start, for bindings whose charger or vehicle has left the configuration. */
export const forgetBindings = (
  { chargers, vehicles }: ControlState,
  bindings: readonly Binding[],
  now: Instant,
): readonly Change[] =>
  bindings
    .filter(({ charger, vehicle }) => !chargers.has(charger) || !vehicles.has(vehicle))
    .flatMap((binding) => {
      const { charger, vehicle, by } = binding;
      const message = `that ${vehicle} is at ${charger}, as ${by} said, is over: the configuration lacks one of them`;
      return [forgotten(binding), bindingRow(binding, now, message, { by: ITSELF, said: by, ended: true })];
    });

/**
 * After a failed commit: what a person said counts as it is stored. The charger may have ended it meanwhile: it stays
 * over, and the rows of that are returned to be written again.
 */
export function rollBackBindings(
  state: ControlState,
  chargers: Iterable<ChargerId>,
  stored: readonly Binding[],
  now: Instant,
): readonly Change[] {
  const storedAt = new Map(stored.map((binding) => [binding.charger, binding]));
  return [...chargers].flatMap((charger) => {
    const [live, kept] = [state.occupancy.bindingAt(charger), storedAt.get(charger) ?? null];
    if (JSON.stringify(live) === JSON.stringify(kept)) return [];
    if (live !== null) {
      drop(state, live, now);
      // The charger may have kept the limit of a vehicle that had left.
      keepLimits(state, [charger], now);
    }
    if (kept === null || !state.vehicles.has(kept.vehicle)) return [];
    claim(state, kept, now);
    const { telemetry } = state.presence.of(charger);
    if (telemetry === null) return [];
    state.occupancy.note(charger, { ...telemetry, at: now }, now);
    return endBinding(state, kept, telemetry, now);
  });
}

function claim(state: ControlState, binding: Binding, now: Instant): StageResult {
  const { charger, vehicle, since } = binding;
  return moved(
    state,
    charger,
    state.occupancy.claim(charger, { kind: "known", vehicle }, since, binding),
    now,
  );
}

function drop(state: ControlState, { charger, identity }: Binding, now: Instant): StageResult {
  const report = identity === null ? "nobody" : ({ kind: "unknown", identity } as const);
  return moved(state, charger, state.occupancy.claim(charger, report, now), now);
}

/** Chargers that lose their vehicle to this keep its limit, as after a claim by telemetry. */
function moved(
  state: ControlState,
  charger: ChargerId,
  { affectedChargers }: { readonly affectedChargers: readonly ChargerId[] },
  now: Instant,
): StageResult {
  state.feed.announce("charger", charger);
  const others = affectedChargers.filter((id) => id !== charger);
  return { changes: keepLimits(state, others, now), reevaluations: reevaluationsOf(affectedChargers) };
}

const nameOf = ({ vehicles }: ControlState, { vehicle }: Pick<Binding, "vehicle">): string =>
  vehicles.get(vehicle)?.name ?? vehicle;

const forgotten = ({ charger }: Binding): Change => ({ kind: "bindingForgotten", charger });

const bindingRow = (
  { charger, vehicle, since }: Binding,
  at: Instant,
  message: string,
  facts: Readonly<Record<string, Json>>,
): Change => auditRow("operator", at, message, { charger, vehicle, facts: { ...facts, since: iso(since) } });
