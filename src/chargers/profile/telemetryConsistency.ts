import type { Json } from "../../domain/audit.ts";
import { isList, isNumeric } from "./readings.ts";
import { placeholdersIn, topicFault } from "./render.ts";
import type { Profile } from "./schema.ts";
import type { Composed, Reading, SignalName } from "./sections.ts";
import { STATES } from "./signals.ts";

export interface Inconsistency {
  readonly path: readonly PropertyKey[];
  /** What would be right. */
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

/** All that a name can stand for; null: anything. */
function valuesOf(name: string, { params, names }: Profile): readonly (string | number)[] | null {
  const derived = new Map(Object.entries(names)).get(name);
  if (derived !== undefined) return Object.values(derived.is);
  return new Map(Object.entries(params)).get(name)?.values ?? null;
}

/** "told": published to; "heard": listened on, where brokers tell things of their own under $; "answered": + may stand. */
type Use = "told" | "heard" | "answered";

/** What no broker would take, with whatever a profile puts into it; what a charger's parameters are is checked with them. */
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
    return topicFault((use === "told" ? "" : "/") + levels.join("/")) !== null;
  });
  return isWrong ? [{ path, message: EXPECTED[use] }] : [];
}

const EXPECTED: Readonly<Record<Use, string>> = {
  told: "a topic without +, # and control characters, that does not begin with $",
  heard: "a topic without +, # and control characters",
  answered: "a topic without # and control characters; + stands for a whole level",
};

/** What is wrong with how a profile says to listen. */
export function telemetryMistakes(profile: Profile): readonly Inconsistency[] {
  const known = [...Object.keys(profile.params), ...Object.keys(profile.names)];
  return Object.entries(profile.telemetry).flatMap(([name, ways]) => {
    if (ways === undefined) return [];
    // Its keys are those of the schema.
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

/** As Array.isArray, which does not narrow readonly lists. */
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
  const all: Inconsistency[] = [...topicFaults([...path, "topic"], reading.topic, profile, "heard")];
  if (index !== undefined)
    all.push(...topicFaults([...path, "index", "topic"], index.topic, profile, "heard"));
  if ((signal === "vehicleId") !== (kind !== undefined))
    all.push({ path, message: "a kind for vehicleId, and for it only" });
  if (signal !== "vehicleId" && reading.nullIsNobody)
    all.push({ path, message: "nullIsNobody for vehicleId only" });
  if ((reading.path ?? "").includes("#") !== (index !== undefined))
    all.push({ path, message: "[#] in path together with index" });
  const words = [...Object.entries(map), ...(otherwise === undefined ? [] : [[null, otherwise] as const])];
  for (const [spelling, word] of words) {
    if (word === null || isWordFor(signal, word)) continue;
    const at = spelling === null ? ["otherwise"] : ["map", spelling];
    all.push({ path: [...path, ...at], message: wordsFor(signal) });
  }
  if (!isScale(reading.scale, profile)) all.push({ path: [...path, "scale"], message: SCALE });
  return all;
}

function isWordFor(signal: SignalName, word: Json): boolean {
  if (signal === "state") return STATES.some((state) => state === word);
  if (signal === "vehicleId") return typeof word === "string";
  return typeof word === (isNumeric(signal) ? "number" : "boolean");
}

function wordsFor(signal: SignalName): string {
  if (signal === "state") return `states of: ${STATES.join(", ")}; or null`;
  if (signal === "vehicleId") return "a text, or null";
  return isNumeric(signal) ? "a number, or null" : "true, false or null";
}

const SCALE = "a number other than 0, or {name} that stands for one";

/** A parameter that may be anything is none: what it scales would be lost without a word. */
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
