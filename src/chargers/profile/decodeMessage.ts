import type { Json } from "../../domain/audit.ts";
import { isUnder } from "../native/messages.ts";
import {
  parsed,
  numberIn,
  valueAt,
  isNothing,
  nameIn,
  percentIn,
  textOf,
  truthIn,
  versionIn,
  LARGEST_PAYLOAD,
} from "./payload.ts";
import {
  isNumeric,
  isList,
  STATES,
  type Answer,
  type DecodedMessage,
  type Signals,
  NOTHING_DECODED,
  whole,
} from "./signals.ts";
import { isList as isJsonList } from "./render.ts";
import type { Reading, SignalName, Composed } from "./sections.ts";
import { type TelemetryMap, decodeNative } from "./telemetryMap.ts";

/**
 * True: the payload fits its topic: JSON where JSON is read, a number where a number is read. Anything else
 * is malformed, and is only counted. A missing member or an unknown text is not malformed.
 */
export function isReadable({ byTopic }: TelemetryMap, topic: string, payload: string): boolean {
  // An empty payload deletes a retained value.
  if (payload.trim() === "") return true;
  const readings = (byTopic.get(topic) ?? []).flatMap(({ signal, readings: all }) =>
    all.filter((reading) => reading.topic === topic).map((reading) => ({ signal, reading })),
  );
  const json = parsed(payload);
  return (
    readings.length === 0 || readings.some(({ signal, reading }) => fits(signal, reading, payload, json))
  );
}

function fits(signal: SignalName, { path, map }: Reading, payload: string, json: Json | undefined): boolean {
  if (path !== undefined && json === undefined) return false;
  if (map !== undefined || !isNumeric(signal)) return true;
  const value = path === undefined ? payload : json === undefined ? undefined : valueAt(json, path, null);
  return value === undefined || isJsonList(value) || numberIn(value) !== undefined;
}

/** The last payload of each topic. */
export type Memory = Map<string, string>;

/** Value of a signal. `kind`: for identities only. */
interface SignalValue {
  readonly value: Json;
  readonly kind: string | null;
}

/** Includes neutral and a margin. A longer list is not a list of phases. */
const MOST_PHASES = 8;

/** Value of a signal from the payloads so far. Undefined: none. */
function composedValue(signal: SignalName, composed: Composed, memory: Memory): SignalValue | undefined {
  const read = (reading: Reading) => readingValue(signal, reading, memory);
  if ("each" in composed) return listOf(composed.each.map((reading) => read(reading)?.value));
  if (!("minus" in composed)) return isList(signal) ? listIn(signal, composed, memory) : read(composed);
  const [whole, less] = composed.minus.map((reading) => read(reading)?.value);
  if (whole === undefined || less === undefined) return undefined;
  const known = typeof whole === "number" && typeof less === "number";
  return { value: known ? tidy(whole - less) : null, kind: null };
}

/** Values by phase. A single number is a list with one value. */
function listIn(signal: SignalName, reading: Reading, memory: Memory): SignalValue | undefined {
  const raw = rawIn(reading, memory);
  if (raw === undefined) return undefined;
  const entries = isJsonList(raw) ? raw : [raw];
  return entries.length > MOST_PHASES
    ? undefined
    : listOf(entries.map((entry) => mappedValue(signal, reading, entry)));
}

/** Undefined unless at least one phase has a value. Null: all are declared unknown. */
function listOf(phases: readonly (Json | undefined)[]): SignalValue | undefined {
  if (phases.every((phase) => phase === undefined)) return undefined;
  const list = phases.map((phase) => phase ?? null);
  return { value: list.every((phase) => phase === null) ? null : list, kind: null };
}

function readingValue(signal: SignalName, reading: Reading, memory: Memory): SignalValue | undefined {
  const raw = rawIn(reading, memory);
  const value = raw === undefined ? undefined : mappedValue(signal, reading, raw);
  if (value === undefined) return undefined;
  return { value, kind: reading.kind === undefined || value === null ? null : kindOf(reading.kind, value) };
}

/** The raw value that a reading points to. */
function rawIn({ topic, path, index }: Reading, memory: Memory): Json | undefined {
  const payload = memory.get(topic);
  if (payload === undefined) return undefined;
  if (path === undefined) return payload.trim();
  // An empty payload deletes a retained value.
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

/** The value from the map, or the raw value itself. */
function mappedValue(signal: SignalName, reading: Reading, raw: Json): Json | undefined {
  const { map, otherwise } = reading;
  if (map === undefined) return plainValue(signal, reading, raw);
  const text = textOf(raw);
  if (text === null) return undefined;
  const listed = new Map(Object.entries(map));
  const prefix = [...listed.keys()].find((key) => key.endsWith("*") && text.startsWith(key.slice(0, -1)));
  const spelling = listed.has(text) ? text : prefix;
  if (spelling !== undefined) return listed.get(spelling);
  if (raw === null || text === "" || (otherwise !== undefined && isNothing(text))) return null;
  return otherwise ?? (isNumeric(signal) ? plainValue(signal, reading, raw) : undefined);
}

function plainValue(signal: SignalName, { scale, rescale }: Reading, raw: Json): Json | undefined {
  if (signal === "vehicleId") return nameIn(raw);
  if (signal === "firmware") return versionIn(raw);
  if (signal === "state") return STATES.find((state) => state === raw) ?? (raw === null ? null : undefined);
  if (!isNumeric(signal)) return truthIn(raw);
  const number = numberIn(raw);
  if (number === null || number === undefined) return number;
  const other = rescale !== undefined && number >= rescale.from ? rescale.by : 1;
  const scaled = tidy(number * Number(scale) * other);
  if (!Number.isFinite(scaled)) return undefined;
  return signal === "socPct" ? percentIn(scaled) : scaled;
}

/** Rounds to a millionth: 0.1 x 137 is 13.7, not 13.700000000000001. Adding 0 turns -0 into 0. */
const tidy = (value: number): number => Math.round(value * 1e6) / 1e6 + 0;

/** A MAC address is recognized by its form. */
const kindOf = (kind: string, value: Json): string =>
  kind !== "rfid or mac"
    ? kind
    : /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i.test(textOf(value) ?? "")
      ? "mac"
      : "rfid";

/**
 * Decodes a message. `memory` holds the last payload of each topic of this charger, because some values are
 * spread over several topics. It is changed; the caller owns it. Never throws, whatever the payload.
 */
export function decodeMessage(
  telemetryMap: TelemetryMap,
  memory: Memory,
  topic: string,
  payload: string,
): DecodedMessage {
  if (payload.length > LARGEST_PAYLOAD) return NOTHING_DECODED;
  if (telemetryMap.native) return decodeNative(topic, payload);
  const sources = telemetryMap.byTopic.get(topic) ?? [];
  if (sources.length > 0) memory.set(topic, payload);
  const signals: Record<string, Json> = {};
  for (const { signal, composed } of sources) {
    // The first source that has a value wins.
    if (signal in signals) continue;
    const found = composedValue(signal, composed, memory);
    if (found === undefined) continue;
    signals[signal] = found.value;
    if (found.kind !== null) signals["vehicleIdKind"] = found.kind;
  }
  if (topic === telemetryMap.alive && payload !== "") signals["online"] ??= true;
  return { signals, answer: answerIn(telemetryMap, topic, payload) };
}

/**
 * The identity of the vehicle from all payloads so far: the first source that names one wins, so an empty
 * card reader does not erase what the vehicle itself reported. Null: a card was held to the charger that
 * has no name. The identity ends when the vehicle leaves.
 */
export function identified(
  { identities }: TelemetryMap,
  memory: Memory,
  topic: string,
  signals: Signals,
): Signals {
  const readings = identities.flatMap((way) => way.readings);
  if (whole(signals).plugged === false) {
    // A list of cards does not identify anyone. The card that was held to the reader does.
    for (const reading of readings) memory.delete(reading.index?.topic ?? reading.topic);
    return signals;
  }
  const isPointed = readings.some(({ index }) => index?.topic === topic);
  if (signals.vehicleId === undefined && !isPointed) return signals;
  for (const { signal, composed } of identities) {
    const found = composedValue(signal, composed, memory);
    // Later sources belong to another session.
    if (found?.value === null && "nullIsNobody" in composed && composed.nullIsNobody) break;
    if (typeof found?.value !== "string") continue;
    const kind = found.kind === null ? {} : { vehicleIdKind: found.kind };
    return { ...signals, vehicleId: found.value, ...kind };
  }
  return { ...signals, vehicleId: null };
}

/** True: the repeated limit was deleted at the broker. It is then unknown, which is not a release. */
export const isTakenAway = ({ byTopic }: TelemetryMap, memory: Memory): boolean =>
  byTopic
    .entries()
    .some(
      ([topic, sources]) =>
        memory.get(topic)?.trim() === "" && sources.some(({ signal }) => signal === "requestedA"),
    );

/** Instantaneous measurements, from all payloads so far. */
export function measuredIn({ instantaneous }: TelemetryMap, memory: Memory): Signals {
  const signals: Record<string, Json> = {};
  for (const { signal, composed } of instantaneous) {
    const found = signal in signals ? undefined : composedValue(signal, composed, memory);
    if (found !== undefined) signals[signal] = found.value;
  }
  return signals;
}

function answerIn({ results }: TelemetryMap, topic: string, payload: string): Answer | null {
  const result = results.find((one) => isUnder(topic, one.topic.split("/")));
  if (result === undefined || payload === "") return null;
  const text = unquoted(payload.trim());
  return result.ok.includes(text)
    ? { accepted: true, reason: null }
    : { accepted: false, reason: text.slice(0, 256) };
}

/** Texts come with or without JSON quotes: firmware generations differ. */
const unquoted = (text: string): string => (/^".*"$/s.test(text) ? text.slice(1, -1) : text);
