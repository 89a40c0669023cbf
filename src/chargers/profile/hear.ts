import type { Json } from "../../core/audit.ts";
import type { Ear } from "./ear.ts";
import { type Answer, type Heard, type Means, NOTHING_HEARD, whole } from "./means.ts";
import { hearNative } from "./nativeHear.ts";
import { LARGEST_PAYLOAD } from "./payload.ts";
import { composedValue, type Memory } from "./signal.ts";

/**
 * What a message means. `memory` holds the last payload of each topic of this charger, since some values are spread
 * over several; it is changed, and belongs to the caller. Never throws, whatever the payload.
 */
export function hear(ear: Ear, memory: Memory, topic: string, payload: string): Heard {
  if (payload.length > LARGEST_PAYLOAD) return NOTHING_HEARD;
  if (ear.native) return hearNative(topic, payload);
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
  return { means, answer: answerIn(ear, topic, payload) };
}

/**
 * Who is there by all that the charger said so far: of several ways the first that names somebody, so that an empty
 * card reader does not wipe what the vehicle itself told; null where a card is held to it that none has a name for.
 * A vehicle that leaves takes what was said of it along.
 */
export function identified({ identities }: Ear, memory: Memory, topic: string, means: Means): Means {
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
export const isTakenAway = ({ byTopic }: Ear, memory: Memory): boolean =>
  byTopic
    .entries()
    .some(
      ([topic, sources]) =>
        memory.get(topic)?.trim() === "" && sources.some(({ signal }) => signal === "requestedA"),
    );

/** What is measured at one moment, as all that the charger said so far has it. */
export function measuredIn({ instantaneous }: Ear, memory: Memory): Means {
  const means: Record<string, Json> = {};
  for (const { signal, composed } of instantaneous) {
    const told = signal in means ? undefined : composedValue(signal, composed, memory);
    if (told !== undefined) means[signal] = told.value;
  }
  return means;
}

function answerIn({ results }: Ear, topic: string, payload: string): Answer | null {
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
