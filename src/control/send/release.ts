import type { Committed } from "../../domain/changes.ts";
import { type CommandRecord, reallySent, isToBeFreed, type Decision, leaseOf } from "../../domain/command.ts";
import { type Desired, formatLevel } from "../../domain/setpoint.ts";
import { type ChargerId, type Instant, after, earlier, type VehicleId } from "../../domain/units.ts";
import { type Vehicle, vehiclesNamed } from "../../domain/vehicle.ts";
import { formatDeferral } from "../decide/pace.ts";
import { formatPeriod } from "../decide/gate.ts";
import type { ControlState } from "../state.ts";

/** Result of an operator's release. */
export interface Released {
  readonly ok: boolean;
  readonly words: string;
}

/** Finds the charger that an operator named: by its id, or by VTN id or name of the vehicle on it. */
export const chargerIn = ({ chargers, vehicles, occupancy }: ControlState, target: string): FoundCharger =>
  findCharger(target, chargers.keys(), vehicles.values(), (vehicle) => occupancy.where(vehicle));

/** Result in observe mode. `standing`: the commands that a release would have ended. */
export function releaseWhileObserving(standing: readonly CommandRecord[]): Released {
  const words = "observing: no command is published, a release neither";
  if (standing.length === 0) return { ok: true, words };
  const named = standing.map(({ command }) => command.charger).join(", ");
  return {
    ok: false,
    words: `${words}; still at their last setpoint: ${named}. A start with control.onObserve: release frees them, once`,
  };
}

/**
 * After the evaluation and its commit: the chargers that are freed now, and those that wait, with the reason.
 */
export function releaseResult(
  state: ControlState,
  standing: readonly CommandRecord[],
  isLinked: (charger: ChargerId) => boolean,
  committed: Committed,
): Released {
  const unstored = committed.ok ? "" : notRecorded(committed.reason);
  if (standing.length === 0) return { ok: true, words: `nothing was limited${unstored}` };
  const freed = standing.map((record) => {
    const wait = waitingReason(state, record.command.charger, isLinked);
    return wait === null ? formatFreed(state, record) : `${formatFreed(state, record)} (${wait})`;
  });
  return { ok: true, words: `freed ${freed.join("; ")}; ${formatLimitedAgain(freed.length)}${unstored}` };
}

/** Example: `bay-01 (Bus 214) from 16 A until 14:00:00, event EV-1`. Takes the command before the release. */
export function formatFreed(state: ControlState, { command }: CommandRecord): string {
  const { charger, vehicle, desired, until, event } = command;
  const name = vehicle === null ? null : (state.vehicles.get(vehicle)?.name ?? vehicle);
  return [
    name === null ? charger : `${charger} (${name})`,
    desired.kind === "release" ? " from the level before its release" : ` from ${formatLevel(desired)}`,
    until === null ? "" : ` until ${state.wallClock(until)}`,
    event === null ? "" : `, event ${event}`,
  ].join("");
}

export const formatLimitedAgain = (count: number): string =>
  `a new event limits ${count === 1 ? "it" : "them"} again`;

/** An operator's release is published even if it cannot be stored. */
const notRecorded = (reason: string): string =>
  `; not on record yet, and undone by a restart before it is: ${reason}`;

/** Adds the limited chargers that left the configuration: a release cannot reach them. */
export function withUnconfigured(state: ControlState, released: Released): Released {
  const left = limited(state).filter(({ command }) => !state.chargers.has(command.charger));
  if (!released.ok || left.length === 0) return released;
  const named = left.map(({ command }) => command.charger).join(", ");
  return {
    ok: false,
    words: `${released.words}, except what is not in this configuration: ${named} (put it back, release it, then take it out)`,
  };
}

function waitingReason(
  state: ControlState,
  id: ChargerId,
  isLinked: (charger: ChargerId) => boolean,
): string | null {
  if (!isLinked(id)) return "not sent yet, its broker is away: when that is back";
  if (state.barTo("queue", id) === "offline") return "not sent yet, it is offline: when it is back";
  const deferral = state.deferrals.get(id);
  if (deferral === undefined) return null;
  const why = formatDeferral(deferral, state.chargers.get(id)?.writesPerHour ?? null);
  return `not sent yet, but by ${state.wallClock(deferral.until)}: ${why}`;
}

/** The charger that an operator named, or why there is none. */
export type FoundCharger =
  | { readonly ok: true; readonly charger: ChargerId }
  | { readonly ok: false; readonly reason: string };

/**
 * Finds a charger by its own id, or by the vehicle on it: VTN id first, then the name in any case.
 * A name that several vehicles share is refused with their ids.
 */
export function findCharger(
  target: string,
  chargers: Iterable<ChargerId>,
  vehicles: Iterable<Vehicle>,
  chargerOf: (vehicle: VehicleId) => ChargerId | null,
): FoundCharger {
  for (const charger of chargers) if (charger === target) return { ok: true, charger };
  const found = vehiclesNamed(vehicles, target);
  const [vehicle, second] = found;
  if (vehicle === undefined) return { ok: false, reason: `there is no charger and no vehicle ${target}` };
  if (second !== undefined)
    return {
      ok: false,
      reason: `several vehicles are called ${target}: name one of ${found.map(({ id }) => id).join(", ")}`,
    };
  const charger = chargerOf(vehicle.id);
  return charger === null
    ? { ok: false, reason: `${vehicle.name} (${vehicle.id}) is at no charger` }
    : { ok: true, charger };
}

/** Chargers with a sent command of ours other than a release, or whose release was never sent. */
export const limited = (state: ControlState): readonly CommandRecord[] =>
  [...state.commands.values()].flatMap((record) => {
    const sent = reallySent(record);
    return sent !== null && isToBeFreed(sent) ? [sent] : [];
  });

/**
 * The command that an earlier run left on a charger, and its release, in observe mode.
 * `release` null: it is decided already and still to be sent. Null: the charger is not stranded.
 * A release of an earlier run whose number the charger refuses is decided again.
 */
export function strandedRelease(
  state: ControlState,
  charger: ChargerId,
): { readonly standing: CommandRecord; readonly release: Decision | null } | null {
  const last = state.commands.get(charger);
  if (state.barTo("plan", charger) !== "observing" || state.settings.onObserve === "keep") return null;
  if (last === undefined) return null;
  const standing = reallySent(last);
  if (standing === null) return null;
  const { desired, until, vehicle: onIt, event: before, cause } = standing.command;
  if (cause === "observe" && state.commands.isNumberRefused(standing.command))
    return { standing, release: { desired, until, vehicle: onIt, event: before, cause } };
  if (!isToBeFreed(standing)) return null;
  const { command, progress } = last;
  if (progress !== "observed" && command.cause === "observe") return { standing, release: null };
  const { vehicle, event } = standing.command;
  return {
    standing,
    release: { desired: { kind: "release" }, until: null, vehicle, event, cause: "observe" },
  };
}

/**
 * Message for a charger that we stop commanding: its level, until when, and what frees it.
 * Null: the charger has ended its limit by itself.
 */
export function formatStays(
  { chargers, settings, wallClock }: ControlState,
  { command, sentAt, replaces }: CommandRecord,
  now: Instant,
): string | null {
  const id = command.charger;
  const stays = `${id} ${formatStanding(command.desired, sentAt !== null, replaces)}`;
  const leased = after(sentAt ?? command.decidedAt, leaseOf(settings.refresh));
  const end = command.until === null ? leased : earlier(leased, command.until);
  const whenSilent = chargers.get(id)?.whenSilent;
  // The make of a charger that left the configuration is not known.
  if (whenSilent === undefined)
    return `${stays} until it is freed, as it left the configuration: put it back and release it, or free it at the charger. A native charger ${end <= now ? "went" : "goes"} back to its own limits by itself at ${wallClock(end)}`;
  switch (whenSilent.kind) {
    case "lease":
      return end <= now
        ? null
        : `${stays} until ${wallClock(end)}, then it goes back to its own limits by itself`;
    case "timeout": {
      const silent = wallClock(after(now, whenSilent.after));
      return whenSilent.effect === "pause"
        ? `${stays} until ${silent}, then it pauses by itself until it is freed`
        : `${stays} until ${silent}, then it goes back to its own limits by itself`;
    }
    case "holds":
      return `${stays} until it is freed: it holds its last level without end`;
  }
}

function formatStanding(desired: Desired, isSent: boolean, replaces: Desired | null): string {
  if (desired.kind !== "release") {
    const level = formatLevel(desired);
    return isSent ? `stays at ${level}` : `may stay at ${level}, which the broker did not acknowledge,`;
  }
  if (replaces === null) return "stays at the level before its release";
  return `stays at ${formatLevel(replaces)}, as its release did not go out,`;
}

/** Limited chargers at a start in observe mode, and what frees each. */
export function formatStranded(state: ControlState, now: Instant): readonly string[] {
  if (state.barTo("plan", null) !== "observing") return [];
  const { onObserve } = state.settings;
  const { wallClock } = state;
  const { period } = state.mode;
  return limited(state).flatMap((record) => {
    const stays = formatStays(state, record, now);
    if (stays === null) return [];
    if (!state.chargers.has(record.command.charger)) return [stays];
    const isReleased = onObserve === "release";
    return [
      isReleased
        ? `${record.command.charger} was left at ${formatLevel(record.command.desired)} by an earlier run: it is released now, once, as ${period === null ? "control.mode is observe" : formatPeriod(period, wallClock)}`
        : `${stays}. To free it, ${period === null ? "start once with control.onObserve: release or control.mode: drive" : "end the period with setpointd mode drive --reason TEXT"}`,
    ];
  });
}
