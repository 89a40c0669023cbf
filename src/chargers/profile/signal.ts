import type { Json } from "../../core/audit.ts";
import { STATES } from "./means.ts";
import { parsed } from "./payload.ts";
import { isList, isNumeric } from "./readings.ts";
import type { Composed, Reading, SignalName } from "./readingSchema.ts";
import { isList as isJsonList } from "./render.ts";
import { isNothing, nameIn, numberIn, textOf, truthIn, valueAt } from "./scalar.ts";

/** The last payload of each topic. */
export type Memory = Map<string, string>;

/** The value of a signal; `kind` only for identities. */
export interface SignalValue {
  readonly value: Json;
  readonly kind: string | null;
}

/** With neutral and to spare; a longer list is none of phases. */
const MOST_PHASES = 8;

/** What the payloads so far say of a signal; undefined: nothing. */
export function composedValue(
  signal: SignalName,
  composed: Composed,
  memory: Memory,
): SignalValue | undefined {
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
