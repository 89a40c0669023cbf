import type { Json } from "../../domain/audit.ts";
import { topicFault } from "../native/messages.ts";
import { isList, isNumeric, STATES } from "./signals.ts";
import { placeholdersIn } from "./render.ts";
import type { Profile } from "./schema.ts";
import type { Composed, Reading, SignalName } from "./sections.ts";

/** A mistake in a profile that its schema cannot express. */
export interface Inconsistency {
  readonly path: readonly PropertyKey[];
  /** The expected value. */
  readonly message: string;
}

export const unknownNames = (
  path: readonly PropertyKey[],
  used: unknown,
  known: readonly string[],
): readonly Inconsistency[] =>
  placeholdersIn(used)
    .filter((name) => !known.includes(name))
    .map((name) => ({ path, message: `{${name}} to be one of: ${known.join(", ")}` }));

/** All values of a name. Null: any. */
function valuesOf(name: string, { params, names }: Profile): readonly (string | number)[] | null {
  const derived = new Map(Object.entries(names)).get(name);
  if (derived !== undefined) return Object.values(derived.is);
  return new Map(Object.entries(params)).get(name)?.values ?? null;
}

/**
 * Published to; subscribed, where brokers have own topics under $; or subscribed with + for single levels.
 */
type Use = "published" | "subscribed" | "answered";

/**
 * Topics that a broker would refuse, for every value of the profile. Parameters of a charger are checked
 * with the configuration.
 */
export function topicFaults(
  path: readonly PropertyKey[],
  topic: string,
  profile: Profile,
  use: Use,
): readonly Inconsistency[] {
  const variants = placeholdersIn(topic).flatMap((name) =>
    (valuesOf(name, profile) ?? []).map((value) => topic.replaceAll(`{${name}}`, String(value))),
  );
  const isWrong = [topic, ...variants].some((text) => {
    const plain = text.replaceAll(/\{[A-Za-z][A-Za-z0-9.]*\}/g, "x");
    const levels =
      use === "answered" ? plain.split("/").map((level) => (level === "+" ? "x" : level)) : [plain];
    return topicFault((use === "published" ? "" : "/") + levels.join("/")) !== null;
  });
  return isWrong ? [{ path, message: EXPECTED[use] }] : [];
}

const EXPECTED: Readonly<Record<Use, string>> = {
  published: "a topic without +, # and control characters, that does not begin with $",
  subscribed: "a topic without +, # and control characters",
  answered: "a topic without # and control characters; + stands for a whole level",
};

/** Mistakes in the telemetry of a profile. */
export function telemetryMistakes(profile: Profile): readonly Inconsistency[] {
  const known = [...Object.keys(profile.params), ...Object.keys(profile.names)];
  return Object.entries(profile.telemetry).flatMap(([name, ways]) => {
    if (ways === undefined) return [];
    // The schema allows these keys only.
    const signal = name as SignalName;
    return [
      ...unknownNames(["telemetry", signal], ways, known),
      ...placesOf(["telemetry", signal], ways).flatMap(({ path, composed }) =>
        "each" in composed && !isList(signal)
          ? [{ path, message: "one reading: only currentsA and voltagesV are lists" }]
          : partsOf(path, composed).flatMap((part) => readingMistakes(profile, signal, part)),
      ),
    ];
  });
}

interface Place<What> {
  readonly path: readonly PropertyKey[];
  readonly composed: What;
}

const placesOf = (
  path: readonly PropertyKey[],
  ways: Composed | readonly Composed[],
): readonly Place<Composed>[] =>
  isMany(ways)
    ? ways.map((composed, index) => ({ path: [...path, index], composed }))
    : [{ path, composed: ways }];

/** Array.isArray for readonly lists, which it does not narrow itself. */
const isMany = (ways: Composed | readonly Composed[]): ways is readonly Composed[] => Array.isArray(ways);

function partsOf(path: readonly PropertyKey[], composed: Composed): readonly Place<Reading>[] {
  const listed = (key: string, readings: readonly Reading[]) =>
    readings.map((reading, index) => ({ path: [...path, key, index], composed: reading }));
  if ("each" in composed) return listed("each", composed.each);
  return "minus" in composed ? listed("minus", composed.minus) : [{ path, composed }];
}

function readingMistakes(
  profile: Profile,
  signal: SignalName,
  { path, composed: reading }: Place<Reading>,
): readonly Inconsistency[] {
  const { kind, index, map = {}, otherwise } = reading;
  const all: Inconsistency[] = [...topicFaults([...path, "topic"], reading.topic, profile, "subscribed")];
  if (index !== undefined)
    all.push(...topicFaults([...path, "index", "topic"], index.topic, profile, "subscribed"));
  if ((signal === "vehicleId") !== (kind !== undefined))
    all.push({ path, message: "a kind for vehicleId, and for it only" });
  if (signal !== "vehicleId" && reading.nullIsNobody)
    all.push({ path, message: "nullIsNobody for vehicleId only" });
  if ((reading.path ?? "").includes("#") !== (index !== undefined))
    all.push({ path, message: "[#] in path together with index" });
  const meanings = [...Object.entries(map), ...(otherwise === undefined ? [] : [[null, otherwise] as const])];
  for (const [spelling, meaning] of meanings) {
    if (meaning === null || isMeaningFor(signal, meaning)) continue;
    const at = spelling === null ? ["otherwise"] : ["map", spelling];
    all.push({ path: [...path, ...at], message: expectedFor(signal) });
  }
  if (!isScale(reading.scale, profile)) all.push({ path: [...path, "scale"], message: SCALE });
  return all;
}

const isText = (signal: SignalName): boolean => signal === "vehicleId" || signal === "firmware";

function isMeaningFor(signal: SignalName, meaning: Json): boolean {
  if (signal === "state") return STATES.some((state) => state === meaning);
  if (isText(signal)) return typeof meaning === "string";
  return typeof meaning === (isNumeric(signal) ? "number" : "boolean");
}

function expectedFor(signal: SignalName): string {
  if (signal === "state") return `states of: ${STATES.join(", ")}; or null`;
  if (isText(signal)) return "a text, or null";
  return isNumeric(signal) ? "a number, or null" : "true, false or null";
}

const SCALE = "a number other than 0, or {name} that stands for one";

/** True: the factor is a number for every allowed parameter. Otherwise values would be lost silently. */
const isScale = (scale: number | string, profile: Profile): boolean => {
  if (typeof scale === "number") return scale !== 0;
  const names = placeholdersIn(scale);
  const [name] = names;
  if (name === undefined) return isFactor(scale);
  if (names.length > 1 || scale !== `{${name}}`) return false;
  const parameter = new Map(Object.entries(profile.params)).get(name);
  if (parameter?.type === "integer" || parameter?.pattern !== undefined) return true;
  return valuesOf(name, profile)?.every(isFactor) ?? false;
};

const isFactor = (value: string | number): boolean =>
  String(value).trim() !== "" && Number.isFinite(Number(value)) && Number(value) !== 0;
