import { FINEST_STEP, type Charger } from "../../domain/charger.ts";
import { amperes, millis, type Watts, watts } from "../../domain/units.ts";
import { type ProfileInstance, instantiateProfile, type InstanceSettings } from "./instance.ts";
import type { Profile } from "./schema.ts";

/** Default for chargers whose memory wears with each write: 12 an hour are about 300 a day. */
const WEARING_WRITES_PER_HOUR = 12;

/**
 * The profile with the parameters of a configured charger. A current in its params is capped by the
 * configured maximum.
 */
export function instanceSettings(charger: Charger, profile: Profile): InstanceSettings {
  if (profile.nativePayloads) return instantiateProfile(profile, {});
  const { params, phases, voltage } = charger;
  const most = ownMaximum(charger);
  const binding = instantiateProfile(profile, {
    phases,
    nominalV: voltage,
    ...params,
    ...(Number.isFinite(most) ? { maxCurrentA: most } : {}),
  });
  const tooLittle = binding.ok ? chargesNever(binding.instance) : null;
  return tooLittle === null
    ? binding
    : { ok: false, reason: `${profile.profile}: ${tooLittle}`, parameter: "maxCurrentA" };
}

/** The lowest maximum in the configuration. Infinity: none. */
function ownMaximum({ params, maxCurrent }: Charger): number {
  const own = typeof params["maxCurrentA"] === "number" ? params["maxCurrentA"] : Infinity;
  return Math.min(own, maxCurrent ?? Infinity);
}

/** A configured charger with the limits, the pace and the abilities of its profile. */
export function applyProfileLimits(charger: Charger, profile: Profile): Charger {
  if (profile.nativePayloads) return charger;
  const binding = instanceSettings(charger, profile);
  // Only valid parameters can select the step.
  const { limits } = binding.ok ? binding.instance.profile : profile;
  const { rate, refresh, actions, phaseSwitch, deviceTimeout } = profile;
  const { min, max, ceiling = max, step, allOrNothing } = limits.current;
  const takesWatts = actions.setPower !== undefined;
  const own = ownMaximum(charger);
  const undeclared = takesWatts ? null : amperes(max);
  const most = Number.isFinite(own) ? amperes(Math.min(own, ceiling)) : undeclared;
  const wears = rate.wear !== "none";
  return {
    ...charger,
    takesWatts,
    currentStep: amperes(Math.max(step, FINEST_STEP)),
    // A relay is fully on or off.
    minCurrent: allOrNothing && most !== null ? most : amperes(Math.max(charger.minCurrent ?? 0, min)),
    maxCurrent: most,
    belowMinimum: allOrNothing ? "pause" : charger.belowMinimum,
    maxPower: lesser(charger.maxPower, limits.power?.max),
    maxDischarge:
      charger.maxDischarge === null || limits.power?.discharge === undefined
        ? null
        : lesser(charger.maxDischarge, limits.power.discharge),
    minInterval: millis(Math.max(charger.minInterval, rate.minInterval)),
    phaseSwitching:
      charger.phaseSwitching === null || actions.setPhases === undefined
        ? null
        : { ...phaseSwitch, every: millis(Math.max(charger.phaseSwitching.every, phaseSwitch.every)) },
    refresh: wears || charger.refresh === null ? null : millis(Math.min(charger.refresh, refresh.every)),
    refreshesRelease: refresh.released,
    whenSilent: deviceTimeout === undefined ? { kind: "holds" } : { kind: "timeout", ...deviceTimeout },
    writesPerHour: charger.writesPerHour ?? rate.writesPerHour ?? (wears ? WEARING_WRITES_PER_HOUR : null),
  };
}

const lesser = (configured: Watts | null, most: number | undefined): Watts | null =>
  configured === null || most === undefined ? configured : watts(Math.min(configured, most));

/**
 * The level asked for becomes the level that is sent, always in the same order: capped, paused below the
 * minimum, rounded down to the step, converted to the units of the wire. Null means pause. Neither 0 nor a
 * value below the minimum is ever sent: a 0 means four different things to chargers.
 */

/** Tolerance for binary fractions: 8.03 x 1000 is 8029.999..., meant as 8030. */
const EPSILON = 1e-6;

/** Rounds to a millionth: 53 x 0.3 is 15.9, not 15.899999999999999. */
const tidy = (value: number): number => Math.round(value * 1e6) / 1e6;

const floorTo = (value: number, step: number): number => tidy(Math.floor(value / step + EPSILON) * step);

/** Largest current that is ever sent to this charger, A per phase. */
export function maxCurrent({ profile, electrics }: ProfileInstance): number {
  const { max, ceiling, step } = profile.limits.current;
  const most = electrics.maxCurrentA === null ? max : Math.min(electrics.maxCurrentA, ceiling ?? max);
  return floorTo(most, step);
}

/** W per A: phases times volts. */
const wattsPerAmpere = ({ electrics }: ProfileInstance): number => electrics.phases * electrics.nominalV;

/** Least current. A relay has one level only. */
const minCurrent = (instance: ProfileInstance): number =>
  instance.profile.limits.current.allOrNothing ? maxCurrent(instance) : instance.profile.limits.current.min;

/** A per phase. */
export function allowedCurrent(asked: number, instance: ProfileInstance): number | null {
  const [capped, least] = [Math.min(asked, maxCurrent(instance)), minCurrent(instance)];
  if (capped + EPSILON < least) return null;
  // A binary fraction below the minimum must not be rounded down to a lower step.
  const { step, scale } = instance.profile.limits.current;
  const allowed = floorTo(Math.max(capped, least), step);
  const sent = onTheWire(allowed, instance);
  // Rounding can end below the minimum, if that is not a multiple of the step or not whole on the wire.
  return sent > 0 && Math.min(allowed, sent / scale) + EPSILON >= least ? allowed : null;
}

/** Reason why every level would be a pause, so that a pause could never end. Null: not so. */
export function chargesNever(instance: ProfileInstance): string | null {
  if (allowedCurrent(Infinity, instance) !== null) return null;
  const { maxCurrentA } = instance.electrics;
  const { min, step } = instance.profile.limits.current;
  return `maxCurrentA is ${maxCurrentA}; it has to be at least ${Math.max(min, step)}, the least that it charges with`;
}

/** Level in the units of the wire. */
export function onTheWire(current: number, { profile }: ProfileInstance): number {
  const { scale } = profile.limits.current;
  return scale === 1 ? current : Math.floor(current * scale + EPSILON);
}

/** A level in W, sent as watts where the charger accepts them, otherwise as amperes. */
export type PowerLevel =
  | { readonly kind: "power"; readonly watts: number }
  | { readonly kind: "current"; readonly amperes: number };

/**
 * Watts keep their sign. They are negative only for chargers that can feed back. `isDecided`: control has
 * checked that the power is enough to charge with. It knows the phases of the vehicle and the measured
 * volts; this function does not.
 */
export function allowedPower(asked: number, instance: ProfileInstance, isDecided = false): PowerLevel | null {
  const { power } = instance.profile.limits;
  const ratio = wattsPerAmpere(instance);
  if (power === undefined) {
    const amperes = allowedCurrent(asked / ratio, instance);
    return amperes === null ? null : { kind: "current", amperes };
  }
  const own = instance.electrics.maxCurrentA === null ? Infinity : maxCurrent(instance) * ratio;
  const most = Math.min(asked < 0 ? (power.discharge ?? 0) : power.max, own);
  const capped = Math.min(Math.abs(asked), most);
  // Chargers refuse too few watts as they refuse too few amperes.
  const least = asked < 0 ? 0 : Math.max(power.min, isDecided ? 0 : minCurrent(instance) * ratio);
  if (capped + EPSILON < least) return null;
  const size = floorTo(Math.max(capped, least), power.step);
  if (size <= 0 || size + EPSILON < least) return null;
  return { kind: "power", watts: asked < 0 ? -size : size };
}
