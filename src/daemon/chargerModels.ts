import { dirname, join, resolve } from "node:path";

import type { ProfileInstance } from "../chargers/profile/instance.ts";
import { instanceSettings, applyProfileLimits } from "../chargers/profile/level.ts";
import { publishesFor } from "../chargers/profile/publishes.ts";
import type { Profile } from "../chargers/profile/schema.ts";
import { type ProfileChecks, unknownProfiles } from "../config/checks.ts";
import { type Finding, type Path, pathText } from "../config/explain.ts";
import type { Environment } from "../config/fields/secret.ts";
import type { BridgedChargers } from "../config/ocpp.ts";
import { configFrom, loadConfig, type Loaded, type SecretsNeed } from "../config/load.ts";
import type { ConfigFile } from "../config/schema.ts";
import { chargerOf } from "../config/sections/site.ts";
import { namelessVehicles } from "../config/warnings.ts";
import type { Charger } from "../domain/charger.ts";
import { instant } from "../domain/units.ts";
import { type LoadedProfiles, loadProfiles } from "./loadProfiles.ts";

/** A configured charger with its model. */
interface ModelledCharger {
  readonly index: number;
  readonly entry: ConfigFile["chargers"][number];
  readonly charger: Charger;
  readonly profile: Profile;
}

/**
 * Mistakes of the chargers by their profiles: each with its path and the correction. `bridged`: chargers that are known
 * to speak OCPP.
 */
export function profileChecks(
  { profiles, broken }: LoadedProfiles,
  bridged: BridgedChargers | null = null,
): ProfileChecks {
  const causes = new Map(
    broken.map(({ file, mistakes: [first] }) => [
      nameIn(file),
      `${file}${first?.line == null ? "" : `:${first.line}`}: ${first?.path} ${first?.expected ?? "a profile"}`,
    ]),
  );
  return {
    mistakes: (file) => [
      ...unknownProfiles(file, [...profiles.keys()], causes),
      ...modelledChargers(file, profiles).flatMap((modelled) => [
        ...parameterMistakes(modelled),
        ...limitMistakes(modelled),
      ]),
      ...phaseMistakes(file, profiles),
      ...collisions(modelledChargers(file, profiles)),
    ],
    warnings: (file) => [
      ...uncertainties(modelledChargers(file, profiles)),
      ...cappedMaxima(modelledChargers(file, profiles)),
      ...assumedMaxima(modelledChargers(file, profiles)),
      ...idleParameters(file, profiles),
      ...namelessVehicles(file, identifying(file, profiles, bridged?.site === file.site.id ? bridged : null)),
      ...[...causes].map(([name, why]) => ({
        path: [],
        found: `the profile ${name} cannot be used`,
        expected: why,
      })),
    ],
    applyProfileLimits: (charger) => {
      const profile = profiles.get(charger.profile);
      return profile === undefined ? charger : applyProfileLimits(charger, profile);
    },
  };
}

const nameIn = (file: string): string => file.replace(/^.*[/\\]/, "").replace(/\.ya?ml$/i, "");

const modelledChargers = (
  file: ConfigFile,
  profiles: ReadonlyMap<string, Profile>,
): readonly ModelledCharger[] =>
  file.chargers.flatMap((entry, index) => {
    const profile = profiles.get(entry.profile);
    return profile === undefined || profile.nativePayloads
      ? []
      : [{ index, entry, profile, charger: chargerOf(entry, file.control) }];
  });

function parameterMistakes({ index, entry, profile, charger }: ModelledCharger): readonly Finding[] {
  const binding = instanceSettings(charger, profile);
  if (binding.ok) return [];
  const { parameter, reason } = binding;
  const isMissing = !Object.hasOwn(entry.params, parameter);
  // The highest setpoint is the charger's own maximum, unless its params differ.
  if (isMissing && parameter === "maxCurrentA" && entry.current !== undefined)
    return [
      { path: ["chargers", index, "current", "max"], found: `${entry.current.max} A`, expected: reason },
    ];
  return [
    {
      path: ["chargers", index, "params", ...(isMissing ? [] : [parameter])],
      found: isMissing ? `no ${parameter}` : JSON.stringify(entry.params[parameter]).slice(0, 80),
      expected: reason,
    },
  ];
}

/**
 * Params of a native charger have no use: it is addressed by its id. They were perhaps meant for a profile.
 */
const idleParameters = (file: ConfigFile, profiles: ReadonlyMap<string, Profile>): readonly Finding[] =>
  file.chargers.flatMap(({ profile, params }, index): readonly Finding[] => {
    const names = Object.keys(params);
    if (profiles.get(profile)?.nativePayloads !== true || names.length === 0) return [];
    const found = `${names.slice(0, 3).join(", ")} with ${profile}, which has no parameters`;
    return [
      { path: ["chargers", index, "params"], found, expected: "no params, or the profile that they are for" },
    ];
  });

/**
 * Chargers that report an identity of the vehicle. A native charger reports none as far as is known, unless it is bridged
 * or vehicles of the site have identities.
 */
function identifying(
  { chargers, vehicles }: ConfigFile,
  profiles: ReadonlyMap<string, Profile>,
  bridged: BridgedChargers | null,
) {
  const isUsed = vehicles.some(({ identities }) => identities.length > 0);
  const reports = ({ id, profile: name }: ConfigFile["chargers"][number]): boolean => {
    const profile = profiles.get(name);
    return profile?.nativePayloads === true
      ? isUsed || bridged?.chargers.has(id) === true
      : profile?.telemetry.vehicleId !== undefined;
  };
  return new Set(chargers.filter(reports).map(({ id }) => id));
}

/** Settings that a model cannot follow, and would silently refuse or cut. */
function limitMistakes({ index, entry, profile }: ModelledCharger): readonly Finding[] {
  const { current, power } = profile.limits;
  const at = (...path: Path): Path => ["chargers", index, ...path];
  const all: Finding[] = [];
  const ceiling = ceilingOf(profile);
  // A relay draws its maximum at any level.
  if (entry.current !== undefined && current.allOrNothing && entry.current.max > ceiling)
    all.push(tooMuch(at("current", "max"), entry.current.max, profile));
  else if (entry.current !== undefined && entry.current.min > ceiling)
    all.push(tooMuch(at("current", "min"), entry.current.min, profile));
  if (entry.current !== undefined && entry.current.min < current.min)
    all.push({
      path: at("current", "min"),
      found: `${entry.current.min} A`,
      expected: `at least ${current.min} A: ${profile.profile} charges with no less`,
    });
  if (entry.discharge !== undefined && power?.discharge === undefined)
    all.push({
      path: at("discharge"),
      found: `discharge with ${profile.profile}, which cannot feed back`,
      expected: "no discharge, or a profile that can, such as everest-api-v1",
    });
  return [...all, ...timeoutMistakes(profile, at("profile"))];
}

const ceilingOf = ({ limits: { current } }: Profile): number => current.ceiling ?? current.max;

const tooMuch = (path: Path, found: number, profile: Profile): Finding => ({
  path,
  found: `${found} A`,
  expected: `at most ${ceilingOf(profile)} A: ${profile.profile} never gets more`,
});

/** A maximum above the model's highest setpoint: the lower value applies, for control too. */
const cappedMaxima = (all: readonly ModelledCharger[]): readonly Finding[] =>
  all.flatMap(({ index, entry: { current }, profile }): readonly Finding[] =>
    current === undefined || profile.limits.current.allOrNothing || current.max <= ceilingOf(profile)
      ? []
      : [tooMuch(["chargers", index, "current", "max"], current.max, profile)],
  );

/** A charger with power alone, of a model that takes amperes: the model's highest setpoint may exceed its fuse. */
const assumedMaxima = (all: readonly ModelledCharger[]): readonly Finding[] =>
  all.flatMap(({ index, entry: { current, params }, profile }): readonly Finding[] => {
    const isGiven = current !== undefined || Object.hasOwn(params, "maxCurrentA");
    if (isGiven || profile.actions.setPower !== undefined) return [];
    const { max } = profile.limits.current;
    const found = `power without current, for ${profile.profile}, which takes amperes only: ${max} A count as its maximum`;
    const expected = "current: { max: A }, of the charger, its cable and its fuse; power may stay beside it";
    return [{ path: ["chargers", index], found, expected }];
  });

/** Phase switching on a model without it, or with fewer than three phases. */
const phaseMistakes = (file: ConfigFile, profiles: ReadonlyMap<string, Profile>): readonly Finding[] =>
  file.chargers.flatMap(({ profile: name, phases, phaseSwitching }, index): readonly Finding[] => {
    const profile = profiles.get(name);
    if (phaseSwitching === undefined || profile === undefined) return [];
    const path = ["chargers", index, "phaseSwitching"];
    if (profile.actions.setPhases === undefined) {
      const why = profile.cannot.setPhases;
      const found = `phaseSwitching with ${name}, which cannot${why === undefined ? "" : `: ${why}`}`;
      return [{ path, found, expected: "no phaseSwitching, or a profile that can, such as warp" }];
    }
    if (phases === 3) return [];
    const found = `phaseSwitching with phases: ${phases}`;
    return [{ path, found, expected: "phases: 3, or no phaseSwitching" }];
  });

/** A model with a fallback timeout needs three messages within that time. */
function timeoutMistakes(profile: Profile, path: Path): readonly Finding[] {
  const { deviceTimeout, keepalive, refresh, rate } = profile;
  if (deviceTimeout === undefined) return [];
  const intervals = [
    ...(rate.wear === "none" ? [refresh.every] : []),
    ...keepalive.map(({ every }) => every),
  ];
  if (intervals.some((every) => every * 3 <= deviceTimeout.after)) return [];
  return [
    {
      path,
      found: `${profile.profile}, which falls back after ${deviceTimeout.after / 1000} s without us`,
      expected: "a profile with a keepalive, or a refresh, of at most a third of that",
    },
  ];
}

/** Two chargers that would receive the same message on the same topic. */
function collisions(all: readonly ModelledCharger[]): readonly Finding[] {
  const first = new Map<string, number>();
  return all.flatMap(({ index, profile, charger }): readonly Finding[] => {
    const binding = instanceSettings(charger, profile);
    const target = binding.ok ? targetOf(binding.instance, charger) : null;
    if (target === null) return [];
    const earlier = first.get(target);
    if (earlier === undefined) {
      first.set(target, index);
      return [];
    }
    const found = `the same topics as ${pathText(["chargers", earlier])}`;
    const expected = "params of its own: both would get the same messages";
    return [{ path: ["chargers", index, "params"], found, expected }];
  });
}

/** The topics of one level. Equal only for the same charger. */
function targetOf(instance: ProfileInstance, { broker }: Charger): string | null {
  const electrics = { maxCurrentA: null, phases: 3, nominalV: 230 };
  const level = { kind: "setCurrent", currentA: instance.profile.limits.current.max } as const;
  const rendered = publishesFor(level, { ...instance, electrics }, instant(0));
  return rendered.ok ? JSON.stringify([broker, rendered.publishes]) : null;
}

/** A warning for each profile in use with unconfirmed points. */
function uncertainties(all: readonly ModelledCharger[]): readonly Finding[] {
  const warned = new Set<string>();
  return all.flatMap(({ index, profile }): readonly Finding[] => {
    const { profile: name, experimental, uncertain } = profile;
    if (warned.has(name) || (!experimental && uncertain.length === 0)) return [];
    warned.add(name);
    const doubts = uncertain.length === 0 ? "" : `; not confirmed: ${uncertain.join(" ")}`;
    return [
      {
        path: ["chargers", index, "profile"],
        found: `${name}${experimental ? ", which is experimental" : ""}${doubts}`,
        expected: "one such charger tried and watched before the others",
      },
    ];
  });
}

/**
 * A configuration with the charger profiles that it is held against: the built-in ones that it names, and those in
 * `profiles` beside it. `text`: instead of the content of the file.
 */
export function loadSite(
  file: string,
  env: Environment,
  secrets: SecretsNeed = "needed",
  bridged: BridgedChargers | null = null,
  text: string | null = null,
): { readonly loaded: Loaded; readonly profiles: ReadonlyMap<string, Profile> } {
  const own = join(dirname(file), "profiles");
  let known: LoadedProfiles = { profiles: new Map(), broken: [] };
  const checks: ProfileChecks = {
    // Called first.
    mistakes: (site) => {
      known = profilesOf(site, own);
      return profileChecks(known).mistakes(site);
    },
    warnings: (site) => profileChecks(known, bridged).warnings(site),
    applyProfileLimits: (charger) => profileChecks(known).applyProfileLimits(charger),
  };
  const loaded =
    text === null
      ? loadConfig(file, env, checks, secrets)
      : configFrom(text, { env, directory: dirname(resolve(file)) }, checks, secrets);
  return { loaded, profiles: known.profiles };
}

/** The profiles of a site. Each one takes about 10 ms to read and check. All of them, if one is missing: a mistake lists them. */
function profilesOf({ chargers }: ConfigFile, own: string): LoadedProfiles {
  const wanted = new Set(chargers.map(({ profile }) => profile));
  const known = loadProfiles(own, wanted);
  return [...wanted].every((name) => known.profiles.has(name)) ? known : loadProfiles(own);
}
