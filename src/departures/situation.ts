import { mostWatts } from "../control/decide/ahead.ts";
import type { ControlState } from "../control/state.ts";
import type { Charger } from "../domain/charger.ts";
import type { Departure, Need } from "../domain/departure.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { periodEnd } from "../domain/hold.ts";
import { after, type Instant, type Millis, minutes } from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import { formatPower, NOT_PLUGGED_IN, type Situation, AT_THE_END, KNEE, taper } from "./forecast.ts";
import { isUnplugged, type PlugIns, sessionEnergy, sessionSoc } from "./plugIns.ts";

/** Measured facts of a vehicle and its charger, for people. Null: not known. */
export interface Measured extends Situation {
  /** Null: the vehicle is at no charger. */
  readonly charger: Charger | null;
  /** True: a vehicle is plugged in there. */
  readonly isPluggedIn: boolean;
  readonly deliveredWh: number | null;
  readonly soc: number | null;
  /** Capacity of the battery in Wh. */
  readonly capacityWh: number | null;
  readonly powerW: number | null;
}

const NO_CAPACITY = "the capacity of the battery";
/** Part of the allowed power below which the vehicle itself is taken to limit it. */
const FULL = 0.95;

/** The situation of a vehicle before its departure, from what its charger has reported. */
export function situationOf(
  state: ControlState,
  plugIns: PlugIns,
  vehicle: Vehicle,
  { need }: Pick<Departure, "need">,
  batteryWh: number | null,
): Measured {
  const where = state.occupancy.where(vehicle.id);
  const charger = where === null ? null : (state.chargers.get(where) ?? null);
  const capacity = need.kind === "soc" && batteryWh === null ? [NO_CAPACITY] : [];
  const nothing = {
    charger,
    isPluggedIn: false,
    deliveredWh: null,
    soc: null,
    powerW: null,
    remainingWh: null,
    isFinished: false,
    obstacle: null,
    drawsW: null,
    bands: [],
    capacityWh: batteryWh,
    mostW: charger === null ? (vehicle.maxPower ?? Infinity) : mostWatts(charger, vehicle),
  } as const;
  if (charger === null) return { ...nothing, missing: [NOT_PLUGGED_IN, ...capacity] };
  const { telemetry, online } = state.presence.of(charger.id);
  if (telemetry === null || online === false || state.silence.has(charger.id))
    return { ...nothing, missing: [`telemetry of ${charger.id}`, ...capacity] };
  if (isUnplugged(telemetry) === true) return { ...nothing, missing: [NOT_PLUGGED_IN, ...capacity] };
  const pluggedIn = plugIns.at(charger.id);
  const [delivered, soc] =
    pluggedIn === null
      ? [null, null]
      : [sessionEnergy(telemetry, pluggedIn), sessionSoc(telemetry, pluggedIn)];
  const remaining = remainingOf(need, delivered, soc, batteryWh);
  return {
    charger,
    isPluggedIn: true,
    deliveredWh: delivered,
    soc,
    powerW: measuredWatts(telemetry),
    remainingWh: typeof remaining === "number" ? remaining : null,
    missing: typeof remaining === "number" ? [] : [remaining],
    isFinished: telemetry.state === "finished",
    obstacle: telemetry.state === "error" ? `${charger.id} reports an error` : null,
    drawsW: pluggedIn?.drawsW ?? null,
    mostW: nothing.mostW,
    bands: taper({ soc, capacityWh: batteryWh, powerW: measuredWatts(telemetry), mostW: nothing.mostW }),
    capacityWh: batteryWh,
  };
}

/** Assumptions of a forecast, for people. `rampWait`: wait of an increase for others. */
export function assumptions(
  { mode, wallClock }: ControlState,
  { remainingWh, bands, soc, capacityWh, drawsW, mostW }: Measured,
  rampWait: Millis,
): readonly string[] {
  const found: string[] = [];
  const { period } = mode;
  if (period !== null)
    found.push(
      `the site observes until ${wallClock(periodEnd(period))}, and follows events and holds from then on`,
    );
  if (drawsW !== null) found.push(`the vehicle goes on drawing at most ${formatPower(drawsW)}`);
  const wanted = remainingWh ?? 0;
  const isSlower = bands.some(
    (band, index) => band.mostW < mostW && (bands[index - 1]?.untilWh ?? 0) < wanted,
  );
  if (isSlower)
    found.push(
      `charging slows down above ${KNEE} %, to ${AT_THE_END * 100} % of ${formatPower(mostW)} at 100 %`,
    );
  const unknown = [
    ...(soc === null ? ["the state of charge"] : []),
    ...(capacityWh === null ? ["the capacity of the battery"] : []),
  ];
  if (unknown.length > 0)
    found.push(`full power to the end of the charge: ${unknown.join(" and ")} is not known`);
  if (rampWait > 0)
    found.push(
      `an increase waits ${Math.ceil(rampWait / minutes(1))} min for the chargers that are limited now (control.releaseRamp)`,
    );
  return found;
}

/** Energy that is missing, in Wh. A text: the fact that is not known. */
function remainingOf(
  need: Need,
  deliveredWh: number | null,
  soc: number | null,
  batteryWh: number | null,
): number | string {
  if (need.kind === "energy")
    return deliveredWh === null ? "the energy since the plug-in" : Math.max(0, need.wh - deliveredWh);
  if (soc === null) return "the state of charge";
  if (soc >= need.percent) return 0;
  return batteryWh === null ? NO_CAPACITY : ((need.percent - soc) / 100) * batteryWh;
}

/** Measured power in W. Null: neither power nor currents with voltages are reported. */
function measuredWatts({ powerW, currentsA, voltagesV }: Telemetry): number | null {
  if (powerW !== undefined) return Math.max(0, powerW);
  if (currentsA === undefined || voltagesV === undefined) return null;
  return currentsA.reduce((sum, current, phase) => sum + current * (voltagesV[phase] ?? 0), 0);
}

/**
 * Power that the vehicle draws although more is allowed. Undefined: the measurement shows nothing new, as the level has
 * just changed or the vehicle draws all of it. Null: it draws as much as it was thought unable to.
 */
export function drawNow(
  state: ControlState,
  plugIns: PlugIns,
  charger: Charger,
  {
    allowedW,
    ramp,
    now,
  }: {
    readonly allowedW: number | undefined;
    /** Time within which a vehicle follows a new level. */
    readonly ramp: Millis;
    readonly now: Instant;
  },
): number | null | undefined {
  const pluggedIn = plugIns.at(charger.id);
  const { telemetry, measuredAt } = state.presence.of(charger.id);
  const watts = telemetry === null ? null : measuredWatts(telemetry);
  if (pluggedIn === null || watts === null || measuredAt === null || state.deferrals.has(charger.id))
    return undefined;
  const since = [state.commands.get(charger.id)?.sentAt ?? null, pluggedIn.since];
  if (since.some((moment) => moment !== null && measuredAt < after(moment, ramp))) return undefined;
  if (measuredAt > now || allowedW === undefined || allowedW <= 0) return undefined;
  if (watts < allowedW * FULL) return watts;
  return pluggedIn.drawsW !== null && watts > pluggedIn.drawsW ? null : undefined;
}
