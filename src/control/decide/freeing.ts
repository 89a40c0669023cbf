import { auditRow } from "../../domain/audit.ts";
import type { Change, Committed, FailedCommit } from "../../domain/changes.ts";
import { endOf, type Hold, releaseHold, setAsideBy } from "../../domain/hold.ts";
import { formatLevel } from "../../domain/setpoint.ts";
import { type ChargerId, type Instant, later } from "../../domain/units.ts";
import { closeHold, openHold } from "../holds/lifecycle.ts";
import type { Freeing } from "../ports.ts";
import type { ControlState } from "../state.ts";
import { decide } from "./evaluate.ts";

/** An operator's release: from the events in force, until those end. Later events still apply. */
export function free(
  state: ControlState,
  chargers: Iterable<ChargerId>,
  by: string,
  now: Instant,
): readonly Change[] {
  const changes: Change[] = [];
  for (const id of chargers) {
    const charger = state.chargers.get(id);
    if (charger === undefined) continue;
    state.locks.get(id)?.cancel();
    changes.push(...freeFromLevels(state, id, by, now));
    const verdict = state.verdictOn(charger, now);
    const before = state.holds.releaseOf(id);
    const set = setAsideBy(before);
    const claims =
      verdict.vehicle === null
        ? []
        : state.agenda.allInForce(verdict.vehicle.id, now).filter(({ event }) => !set.has(event.id));
    const last = state.commands.get(id);
    if (claims.length > 0) {
      // A second release includes the events of the first.
      const events = [...new Set([...set, ...claims.map(({ event }) => event.id)])];
      const latest = claims.map(({ until }) => until).reduce(later, latestOf(before) ?? now);
      const hold = releaseHold({ id: state.nextHoldId(), charger: id, events, since: now, latest, by });
      if (before !== null)
        changes.push(...closeHold(state, before, by, `replaced by ${hold.id}`, now).changes);
      state.holds.put(hold);
      changes.push(
        { kind: "hold", hold },
        operatorRow(id, now, `${id} freed by an operator until ${state.wallClock(latest)}`),
      );
    } else if (last !== undefined && last.command.desired.kind !== "release") {
      const { vehicle, event, desired } = last.command;
      const decision = {
        desired: { kind: "release" },
        until: null,
        vehicle,
        event,
        cause: "operator",
      } as const;
      changes.push(operatorRow(id, now, `${id} freed by an operator from ${formatLevel(desired)}`));
      changes.push(...decide(state, verdict, decision, now));
    }
  }
  return changes;
}

/** A release ends the levels of narrower holds, and exempts the charger from that of the site's hold. */
function freeFromLevels(state: ControlState, id: ChargerId, by: string, now: Instant): readonly Change[] {
  const occupant = state.occupancy.at(id);
  const vehicle = occupant.kind === "vehicle" ? occupant.vehicle : null;
  return state.holds.over(id, vehicle, now).flatMap((hold): readonly Change[] => {
    if (hold.level === null) return [];
    if (hold.scope.kind !== "site") return closeHold(state, hold, by, "released", now).changes;
    const exempt: Hold = {
      ...hold,
      id: state.nextHoldId(),
      scope: { kind: "charger", charger: id },
      level: null,
      end: { kind: "at", at: endOf(hold) },
      since: now,
      by,
      reason: "release",
      key: null,
    };
    return openHold(state, exempt, now).changes;
  });
}

const latestOf = (hold: Hold | null): Instant | null =>
  hold?.end.kind === "events" ? hold.end.latest : null;

const operatorRow = (charger: ChargerId, at: Instant, message: string): Change =>
  auditRow("operator", at, message, { charger });

/** A freeing of which some chargers still wait for their evaluation or its commit. */
interface OpenFreeing {
  readonly freeing: Freeing;
  readonly waiting: Set<ChargerId>;
  uncommitted: number;
  failed: FailedCommit | null;
}

/** The part of a freeing that belongs to one slice of evaluations. */
export interface FreeingPart {
  readonly chargers: readonly ChargerId[];
  readonly by: string;
  /** Called after its commit. */
  readonly settle: (committed: Committed) => void;
}

/** Freeings of many chargers run in slices. Each freeing is settled after the commit of its last slice. */
export class Freeings {
  #open: readonly OpenFreeing[] = [];

  add(freeing: Freeing): void {
    const waiting = new Set(freeing.chargers);
    this.#open = [...this.#open, { freeing, waiting, uncommitted: waiting.size, failed: null }];
  }

  /** The parts of all freeings that belong to these chargers. */
  take(chargers: readonly ChargerId[]): readonly FreeingPart[] {
    if (this.#open.length === 0) return NONE;
    const parts = this.#open.map((open) => partOf(open, chargers));
    this.#open = this.#open.filter(({ waiting }) => waiting.size > 0);
    return parts;
  }
}

const NONE: readonly FreeingPart[] = [];

function partOf(open: OpenFreeing, chargers: readonly ChargerId[]): FreeingPart {
  const part = chargers.filter((charger) => open.waiting.delete(charger));
  return {
    chargers: part,
    by: open.freeing.by,
    settle: (committed) => {
      open.uncommitted -= part.length;
      if (!committed.ok) open.failed ??= committed;
      const isDone = open.uncommitted === 0 && (part.length > 0 || open.freeing.chargers.length === 0);
      if (isDone) open.freeing.settle(open.failed ?? committed);
    },
  };
}
