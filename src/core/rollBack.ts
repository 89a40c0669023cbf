import { carryMarks } from "./control/carryOver.ts";
import type { Depot } from "./depot.ts";
import type { Change, Scope, StoredScope } from "./ledger.ts";
import type { ChargerId, EventId, Instant, VehicleId } from "./units.ts";

/** The events and chargers whose stored state may differ from memory, now that these changes were dropped. */
export function scopeOf(dropped: readonly Change[]): Scope {
  const events = new Set<EventId>();
  const chargers = new Set<ChargerId>();
  for (const change of dropped) {
    if (change.kind === "event") events.add(change.known.id);
    else if (change.kind === "command") chargers.add(change.record.command.charger);
    else if (change.kind === "hold") chargers.add(change.hold.charger);
    else if (change.kind === "holdEnded" || change.kind === "commandForgotten") chargers.add(change.charger);
    else if (change.kind === "audit" && change.entry.charger !== null) chargers.add(change.entry.charger);
  }
  return { events, chargers };
}

/**
 * Puts back what is stored of the events and chargers that a failed commit was about; everything else stays as it is.
 * Returns the vehicles for which something holds, or held, now.
 */
export function rollBack(
  depot: Depot,
  scope: Scope,
  stored: StoredScope,
  now: Instant,
): ReadonlySet<VehicleId> {
  depot.rejections.clear();
  for (const vehicle of depot.unsaid) {
    for (const dispatch of depot.agenda.of(vehicle)) depot.nowhere.delete(dispatch);
    depot.agenda.unmark("placed", vehicle);
  }
  const affected = rollBackEvents(depot, scope, stored, now);
  for (const charger of scope.chargers) {
    depot.commands.delete(charger);
    depot.why.delete(charger);
    depot.holds.delete(charger);
    depot.undurable.delete(charger);
  }
  depot.putCommands(stored);
  for (const hold of stored.holds) depot.holds.set(hold.charger, hold);
  depot.assertAgain(scope.chargers);
  depot.ramp?.recall(depot.commands.values(), depot.chargers);
  return affected;
}

function rollBackEvents(
  depot: Depot,
  scope: Scope,
  stored: StoredScope,
  now: Instant,
): ReadonlySet<VehicleId> {
  const lookedAt = depot.lookedAt ?? now;
  const affected = new Set<VehicleId>();
  const events = new Map(stored.events.map((known) => [known.id, known]));
  for (const id of scope.events) {
    const before = depot.agenda.ofEvent(id);
    const known = events.get(id);
    const changed = known === undefined ? depot.forget(id, lookedAt) : depot.remember(known, lookedAt);
    for (const vehicle of changed) affected.add(vehicle);
    carryMarks(before, depot.agenda.ofEvent(id), lookedAt, depot);
  }
  return affected;
}
