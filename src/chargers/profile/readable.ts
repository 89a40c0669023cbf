import type { Json } from "../../core/audit.ts";
import type { Ear } from "./ear.ts";
import { parsed } from "./payload.ts";
import { isNumeric } from "./readings.ts";
import type { Reading, SignalName } from "./readingSchema.ts";
import { isList } from "./render.ts";
import { numberIn, valueAt } from "./scalar.ts";

/**
 * Whether a payload is what its topic should hold: JSON where JSON is read, a number where one is. What is not is
 * rubbish, and only counted; a member that is missing is not rubbish, and neither is a word that means nothing to us.
 */
export function isReadable({ byTopic }: Ear, topic: string, payload: string): boolean {
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
  return value === undefined || isList(value) || numberIn(value) !== undefined;
}
