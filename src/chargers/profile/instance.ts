import type { Parameter } from "./sections.ts";
import type { Values } from "./render.ts";
import type { Profile } from "./schema.ts";

/** Parameters of one charger, from the configuration. */
export type Params = Readonly<Record<string, string | number | boolean>>;

/** Electrical limits of the charger, from the configuration. */
interface Electrics {
  /** A per phase. Null: the limit of the profile. */
  readonly maxCurrentA: number | null;
  readonly phases: number;
  /** Phase to neutral. */
  readonly nominalV: number;
}

/** A profile with the parameters of one charger. */
export interface ProfileInstance {
  readonly profile: Profile;
  /** Parameters and derived names, for the templates. */
  readonly values: Values;
  /** Values that the charger reported, by the names of `reports`. Absent: not known. */
  readonly reported: ReadonlyMap<string, string>;
  readonly electrics: Electrics;
}

export type InstanceSettings =
  | { readonly ok: true; readonly instance: ProfileInstance }
  /** `parameter`: the wrong one. */
  | { readonly ok: false; readonly reason: string; readonly parameter: string };

/** Defaults of the configuration. */
const DEFAULT_PHASES = 3;
const DEFAULT_VOLTS = 230;

const OWN = ["maxCurrentA", "phases", "nominalV"];
const LONGEST = 256;

/** Wildcards and control characters would change the topic, or end the connection. */
const FORBIDDEN = /[+#\p{Cc}]|^\$/u;

/** Checks the parameters of one charger against its profile. The reason names the first mistake. */
export function instantiateProfile(profile: Profile, params: Params): InstanceSettings {
  const values = new Map<string, string | number | null>();
  const fail = (parameter: string, reason: string): InstanceSettings => ({
    ok: false,
    reason: `${profile.profile}: ${reason}`,
    parameter,
  });
  const declared = new Map(Object.entries(profile.params));
  for (const name of Object.keys(params)) {
    if (declared.has(name) || OWN.includes(name)) continue;
    return fail(name, `unknown parameter ${shown(name)}; it has ${[...declared.keys(), ...OWN].join(", ")}`);
  }
  for (const [name, parameter] of declared) {
    const given = Object.hasOwn(params, name) ? params[name] : presetOf(parameter, values);
    if (given === null) values.set(name, null);
    if (given === null) continue;
    if (given === undefined) return fail(name, `the parameter ${name} is missing: ${parameter.about}`);
    const read = readParameter(parameter, given);
    if (read === null)
      return fail(name, `the parameter ${name} is ${shown(given)}; it has to be ${expected(parameter)}`);
    values.set(name, read);
  }
  for (const [name, { of, is }] of Object.entries(profile.names)) {
    const chosen = new Map(Object.entries(is)).get(String(values.get(of)));
    if (chosen === undefined)
      return fail(of, `the parameter ${of} has to be one of: ${Object.keys(is).join(", ")}`);
    values.set(name, chosen);
  }
  const electrics = readElectrics(params);
  return typeof electrics === "string"
    ? fail(electrics.slice(0, electrics.indexOf(" ")), electrics)
    : { ok: true, instance: { profile: stepped(profile, values), values, reported: new Map(), electrics } };
}

/** Null: optional and left out. Undefined: missing. */
function presetOf(
  { default: preset, found, optional }: Parameter,
  values: ReadonlyMap<string, string | number | null>,
): string | number | null | undefined {
  const [, part] =
    found === undefined ? [] : (new RegExp(found.match, "u").exec(String(values.get(found.in) ?? "")) ?? []);
  return part ?? preset ?? (optional ? null : undefined);
}

/** The profile with the step that a parameter selects. */
function stepped(profile: Profile, values: Values): Profile {
  const { current } = profile.limits;
  const step = current.stepBy === undefined ? null : values.get(current.stepBy);
  return typeof step === "number"
    ? { ...profile, limits: { ...profile.limits, current: { ...current, step } } }
    : profile;
}

/** The value for templates. Null: not valid for this parameter. */
export function readParameter(
  parameter: Parameter,
  given: string | number | boolean,
): string | number | null {
  const text = String(given);
  const { values, pattern, type, levels } = parameter;
  if (text === "" || text.length > LONGEST || !text.isWellFormed() || FORBIDDEN.test(text)) return null;
  if (text.trim() !== text) return null;
  // An extra slash leads to a topic without subscribers. Some prefixes begin with one.
  if (levels === "one" ? text.includes("/") : /\/\/|.\/$|^\/$/.test(text)) return null;
  if (values !== undefined && !values.includes(text)) return null;
  if (pattern !== undefined && !new RegExp(`^(?:${pattern})$`, "u").test(text)) return null;
  if (type === "text") return text;
  return /^\d{1,9}$/.test(text) ? Number(text) : null;
}

/** The expected value, for people. */
export function expected({ values, pattern, form, type, levels }: Parameter): string {
  if (form !== undefined) return form;
  if (values !== undefined) return `one of: ${values.join(", ")}`;
  if (type === "integer") return "a whole number";
  const what = levels === "many" ? "topic levels" : "one topic level";
  const rest = pattern === undefined ? "" : `, matching ${pattern}`;
  const without = `without +, # ${levels === "many" ? "" : "or / "}and control characters, spaces or slashes around it`;
  return `${what} of 1 to ${LONGEST} characters, ${without}, that does not begin with $${rest}`;
}

function readElectrics(params: Params): Electrics | string {
  const { maxCurrentA = null, phases = DEFAULT_PHASES, nominalV = DEFAULT_VOLTS } = params;
  if (
    maxCurrentA !== null &&
    !(typeof maxCurrentA === "number" && maxCurrentA > 0 && Number.isFinite(maxCurrentA))
  )
    return `maxCurrentA is ${shown(maxCurrentA)}; it has to be a number of amperes above 0`;
  if (phases !== 1 && phases !== 2 && phases !== 3)
    return `phases is ${shown(phases)}; it has to be 1, 2 or 3`;
  if (!(typeof nominalV === "number" && nominalV >= 100 && nominalV <= 500))
    return `nominalV is ${shown(nominalV)}; it has to be a number of volts from 100 to 500`;
  return { maxCurrentA, phases, nominalV };
}

const shown = (value: unknown): string => JSON.stringify(value).slice(0, 80);
