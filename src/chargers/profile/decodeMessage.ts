import type { Json } from "../../domain/audit.ts";
import { parsed, numberIn, valueAt, isNothing, nameIn, textOf, truthIn, LARGEST_PAYLOAD } from "./payload.ts";
import { isNumeric, isList } from "./readings.ts";
import { isList as isJsonList } from "./render.ts";
import type { Reading, SignalName, Composed } from "./sections.ts";
import { STATES, type Answer, type DecodedMessage, type Signals, NOTHING_DECODED, whole } from "./signals.ts";
import { type TelemetryMap, decodeNative } from "./telemetryMap.ts";

/**
 * Whether a payload is what its topic should hold: JSON where JSON is read, a number where one is. What is not is
 * rubbish, and only counted; a member that is missing is not rubbish, and neither is a word that means nothing to us.
 */
export function isReadable({ byTopic }: TelemetryMap, topic: string, payload: string): boolean {
  // How a retained value is taken away.
  if (payload.trim() === "") return true;
  const readings = (byTopic.get(topic) ?? []).flatMap(({ signal, readings: all }) =>
    all.filter((reading) => reading.topic === topic).map((reading) => ({ signal, reading })),
  );
  const json = parsed(payload);
  return (
    readings.length === 0 || readings.some(({ signal, reading }) => says(signal, reading, payload, json))
  );
}

function says(signal: SignalName, { path, map }: Reading, payload: string, json: Json | undefined): boolean {
  if (path !== undefined && json === undefined) return false;
  if (map !== undefined || !isNumeric(signal)) return true;
  const value = path === undefined ? payload : json === undefined ? undefined : valueAt(json, path, null);
  return value === undefined || isJsonList(value) || numberIn(value) !== undefined;
}

/** The last payload of each topic. */
export type Memory = Map<string, string>;

/** The value of a signal; `kind` only for identities. */
interface SignalValue {
  readonly value: Json;
  readonly kind: string | null;
}

/** With neutral and to spare; a longer list is none of phases. */
const MOST_PHASES = 8;

/** What the payloads so far say of a signal; undefined: nothing. */
function composedValue(signal: SignalName, composed: Composed, memory: Memory): SignalValue | undefined {
  const read = (reading: Reading) => readingValue(signal, reading, memory);
  if ("each" in composed) return listOf(composed.each.map((reading) => read(reading)?.value));
  if (!("minus" in composed)) return isList(signal) ? listIn(signal, composed, memory) : read(composed);
  const [whole, less] = composed.minus.map((reading) => read(reading)?.value);
  if (whole === undefined || less === undefined) return undefined;
  const known = typeof whole === "number" && typeof less === "number";
  return { value: known ? tidy(whole - less) : null, kind: null };
}

/** One value for each phase; one number is a list of one. */
function listIn(signal: SignalName, reading: Reading, memory: Memory): SignalValue | undefined {
  const raw = rawIn(reading, memory);
  if (raw === undefined) return undefined;
  const entries = isJsonList(raw) ? raw : [raw];
  return entries.length > MOST_PHASES
    ? undefined
    : listOf(entries.map((entry) => wordFor(signal, reading, entry)));
}

/** Says something where at least one phase does; null: all are declared unknown. */
function listOf(phases: readonly (Json | undefined)[]): SignalValue | undefined {
  if (phases.every((phase) => phase === undefined)) return undefined;
  const list = phases.map((phase) => phase ?? null);
  return { value: list.every((phase) => phase === null) ? null : list, kind: null };
}

function readingValue(signal: SignalName, reading: Reading, memory: Memory): SignalValue | undefined {
  const raw = rawIn(reading, memory);
  const value = raw === undefined ? undefined : wordFor(signal, reading, raw);
  if (value === undefined) return undefined;
  return { value, kind: reading.kind === undefined || value === null ? null : kindOf(reading.kind, value) };
}

/** What stands at the place that a reading points to. */
function rawIn({ topic, path, index }: Reading, memory: Memory): Json | undefined {
  const payload = memory.get(topic);
  if (payload === undefined) return undefined;
  if (path === undefined) return payload.trim();
  // How a retained value is taken away.
  if (payload.trim() === "") return null;
  const json = parsed(payload);
  if (json === undefined) return undefined;
  if (index === undefined) return valueAt(json, path, null);
  const list = parsed(memory.get(index.topic) ?? "");
  const at = list === undefined ? undefined : valueAt(list, index.path, null);
  const place =
    at !== undefined && isJsonList(at) && index.find !== undefined
      ? at.indexOf(index.find)
      : typeof at === "number"
        ? at
        : -1;
  return place < 0 || place + index.add < 0 ? undefined : valueAt(json, path, place + index.add);
}

/** The map's word for it, or what it says by itself. */
function wordFor(signal: SignalName, reading: Reading, raw: Json): Json | undefined {
  const { map, otherwise } = reading;
  if (map === undefined) return plainWord(signal, reading, raw);
  const text = textOf(raw);
  if (text === null) return undefined;
  const listed = new Map(Object.entries(map));
  const prefix = [...listed.keys()].find((key) => key.endsWith("*") && text.startsWith(key.slice(0, -1)));
  const spelling = listed.has(text) ? text : prefix;
  if (spelling !== undefined) return listed.get(spelling);
  if (raw === null || text === "" || (otherwise !== undefined && isNothing(text))) return null;
  return otherwise ?? (isNumeric(signal) ? plainWord(signal, reading, raw) : undefined);
}

function plainWord(signal: SignalName, { scale, rescale }: Reading, raw: Json): Json | undefined {
  if (signal === "vehicleId") return nameIn(raw);
  if (signal === "state") return STATES.find((state) => state === raw) ?? (raw === null ? null : undefined);
  if (!isNumeric(signal)) return truthIn(raw);
  const number = numberIn(raw);
  if (number === null || number === undefined) return number;
  const other = rescale !== undefined && number >= rescale.from ? rescale.by : 1;
  const scaled = tidy(number * Number(scale) * other);
  return Number.isFinite(scaled) ? scaled : undefined;
}

/** To a millionth: 0.1 x 137 is 13.7, not 13.700000000000001. Adding 0 makes -0 a 0. */
const tidy = (value: number): number => Math.round(value * 1e6) / 1e6 + 0;

/** A MAC address shows by its looks. */
const kindOf = (kind: string, value: Json): string =>
  kind !== "rfid or mac"
    ? kind
    : /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i.test(textOf(value) ?? "")
      ? "mac"
      : "rfid";

/**
 * What a message means. `memory` holds the last payload of each topic of this charger, since some values are spread
 * over several; it is changed, and belongs to the caller. Never throws, whatever the payload.
 */
export function decodeMessage(
  ear: TelemetryMap,
  memory: Memory,
  topic: string,
  payload: string,
): DecodedMessage {
  if (payload.length > LARGEST_PAYLOAD) return NOTHING_DECODED;
  if (ear.native) return decodeNative(topic, payload);
  const sources = ear.byTopic.get(topic) ?? [];
  if (sources.length > 0) memory.set(topic, payload);
  const means: Record<string, Json> = {};
  for (const { signal, composed } of sources) {
    // Of several ways the first that has something to say.
    if (signal in means) continue;
    const told = composedValue(signal, composed, memory);
    if (told === undefined) continue;
    means[signal] = told.value;
    if (told.kind !== null) means["vehicleIdKind"] = told.kind;
  }
  if (topic === ear.alive && payload !== "") means["online"] ??= true;
  return { signals: means, answer: answerIn(ear, topic, payload) };
}

/**
 * Who is there by all that the charger said so far: of several ways the first that names somebody, so that an empty
 * card reader does not wipe what the vehicle itself told; null where a card is held to it that none has a name for.
 * A vehicle that leaves takes what was said of it along.
 */
export function identified(
  { identities }: TelemetryMap,
  memory: Memory,
  topic: string,
  means: Signals,
): Signals {
  const readings = identities.flatMap((way) => way.readings);
  if (whole(means).plugged === false) {
    // A list of cards is no word of who is there; which of them was held to the reader is.
    for (const reading of readings) memory.delete(reading.index?.topic ?? reading.topic);
    return means;
  }
  const isPointed = readings.some(({ index }) => index?.topic === topic);
  if (means.vehicleId === undefined && !isPointed) return means;
  for (const { signal, composed } of identities) {
    const told = composedValue(signal, composed, memory);
    // What the ways after it tell is of another session.
    if (told?.value === null && "nullIsNobody" in composed && composed.nullIsNobody) break;
    if (typeof told?.value !== "string") continue;
    const kind = told.kind === null ? {} : { vehicleIdKind: told.kind };
    return { ...means, vehicleId: told.value, ...kind };
  }
  return { ...means, vehicleId: null };
}

/** Whether what it repeats was taken away at the broker: nobody knows then, which is no word of a release. */
export const isTakenAway = ({ byTopic }: TelemetryMap, memory: Memory): boolean =>
  byTopic
    .entries()
    .some(
      ([topic, sources]) =>
        memory.get(topic)?.trim() === "" && sources.some(({ signal }) => signal === "requestedA"),
    );

/** What is measured at one moment, as all that the charger said so far has it. */
export function measuredIn({ instantaneous }: TelemetryMap, memory: Memory): Signals {
  const means: Record<string, Json> = {};
  for (const { signal, composed } of instantaneous) {
    const told = signal in means ? undefined : composedValue(signal, composed, memory);
    if (told !== undefined) means[signal] = told.value;
  }
  return means;
}

function answerIn({ results }: TelemetryMap, topic: string, payload: string): Answer | null {
  const result = results.find((one) => matches(one.topic, topic));
  if (result === undefined || payload === "") return null;
  const text = unquoted(payload.trim());
  return result.ok.includes(text)
    ? { accepted: true, reason: null }
    : { accepted: false, reason: text.slice(0, 256) };
}

/** JSON or not: firmware generations differ. */
const unquoted = (text: string): string => (/^".*"$/s.test(text) ? text.slice(1, -1) : text);

/** A filter with + for single levels. */
function matches(filter: string, topic: string): boolean {
  const [wanted, given] = [filter.split("/"), topic.split("/")];
  return wanted.length === given.length && wanted.every((level, at) => level === "+" || level === given[at]);
}
