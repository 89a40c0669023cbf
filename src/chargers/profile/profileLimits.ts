import { FINEST_STEP, type Charger } from "../../domain/charger.ts";
import { amperes, millis, type Watts, watts } from "../../domain/units.ts";
import { instantiateProfile, type InstanceSettings } from "./instance.ts";
import { chargesNever } from "./level.ts";
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
  const unsaid = takesWatts ? null : amperes(max);
  const most = Number.isFinite(own) ? amperes(Math.min(own, ceiling)) : unsaid;
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
