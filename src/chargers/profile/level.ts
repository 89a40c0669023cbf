import type { ProfileInstance } from "./instance.ts";

/**
 * From what is asked to what this charger may be told, always in the same order: capped, paused below the minimum,
 * rounded down to the step, and only then in the units of the wire. Null means pause: no raw 0 and nothing below a
 * minimum ever leaves, because to chargers a 0 means four different things.
 */

/** Forgives binary fractions: 8.03 x 1000 is 8029.999..., and 8030 was meant. */
const EPSILON = 1e-6;

/** To a millionth: 53 x 0.3 is 15.9, not 15.899999999999999. */
const tidy = (value: number): number => Math.round(value * 1e6) / 1e6;

const floorTo = (value: number, step: number): number => tidy(Math.floor(value / step + EPSILON) * step);

/** Largest current that this charger is ever told, A per phase. */
export function maxCurrent({ profile, electrics }: ProfileInstance): number {
  const { max, ceiling, step } = profile.limits.current;
  const most = electrics.maxCurrentA === null ? max : Math.min(electrics.maxCurrentA, ceiling ?? max);
  return floorTo(most, step);
}

/** W per A: phases times volts. */
const wattsPerAmpere = ({ electrics }: ProfileInstance): number => electrics.phases * electrics.nominalV;

/** Least current; a relay cannot do less than it draws. */
const minCurrent = (instance: ProfileInstance): number =>
  instance.profile.limits.current.allOrNothing ? maxCurrent(instance) : instance.profile.limits.current.min;

/** A per phase. */
export function allowedCurrent(asked: number, instance: ProfileInstance): number | null {
  const [capped, least] = [Math.min(asked, maxCurrent(instance)), minCurrent(instance)];
  if (capped + EPSILON < least) return null;
  // What is the minimum but for a binary fraction is not rounded down to below it.
  const { step, scale } = instance.profile.limits.current;
  const allowed = floorTo(Math.max(capped, least), step);
  const told = onTheWire(allowed, instance);
  // Rounding may have gone below the minimum, where that is no multiple of the step or no whole number on the wire.
  return told > 0 && Math.min(allowed, told / scale) + EPSILON >= least ? allowed : null;
}

/** Why every level is a pause, so that there is none to go back to; null: not so. */
export function chargesNever(instance: ProfileInstance): string | null {
  if (allowedCurrent(Infinity, instance) !== null) return null;
  const { maxCurrentA } = instance.electrics;
  const { min, step } = instance.profile.limits.current;
  return `maxCurrentA is ${maxCurrentA}; it has to be at least ${Math.max(min, step)}, the least that it charges with`;
}

/** In the units that this charger takes. */
export function onTheWire(current: number, { profile }: ProfileInstance): number {
  const { scale } = profile.limits.current;
  return scale === 1 ? current : Math.floor(current * scale + EPSILON);
}

/** A level in W: as watts where the charger takes them, else as amperes. */
export type PowerLevel =
  | { readonly kind: "power"; readonly watts: number }
  | { readonly kind: "current"; readonly amperes: number };

/**
 * Watts keep their sign; they are negative only where the charger can feed back. `isDecided`: they are known to be
 * enough to charge with, by the phases of the vehicle and the volts that are measured, which are not known here.
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
  // Chargers refuse few watts as they refuse few amperes.
  const least = asked < 0 ? 0 : Math.max(power.min, isDecided ? 0 : minCurrent(instance) * ratio);
  if (capped + EPSILON < least) return null;
  const size = floorTo(Math.max(capped, least), power.step);
  if (size <= 0 || size + EPSILON < least) return null;
  return { kind: "power", watts: asked < 0 ? -size : size };
}
