import type { Json } from "../../core/audit.ts";
import type { Bound } from "./bind.ts";
import { NATIVE_FILTERS } from "./nativeHear.ts";
import { readingsOf, type Source, topicsOf } from "./readings.ts";
import type { SignalName } from "./readingSchema.ts";
import { placeholdersIn, renderJson, renderText, type Values } from "./render.ts";
import type { Profile } from "./schema.ts";

/** What to listen to for one charger, with its parameters put in. */
export interface Ear {
  /** The ways to learn something from a topic. */
  readonly byTopic: ReadonlyMap<string, readonly Source[]>;
  /** The ways to learn who is there, in order of preference. */
  readonly identities: readonly Source[];
  /** The ways to learn what is measured at one moment, in order of preference. */
  readonly instantaneous: readonly Source[];
  /** A message here says that it is there; null: it has a last will. */
  readonly alive: string | null;
  /** The first live message here after `online` shows that it obeys again; null: `online` does. */
  readonly ready: string | null;
  readonly results: Profile["results"];
  /** It speaks as DESIGN 6.2 has it, on whatever topics. */
  readonly native: boolean;
  /** Everything to subscribe to. */
  readonly filters: readonly string[];
}

/** A register is none: where it was not told meanwhile, it may have moved on. */
const INSTANTANEOUS: ReadonlySet<SignalName> = new Set(["powerW", "currentA", "currentsA", "voltagesV"]);

/** Put together once for each charger: its messages may be many. */
export function earOf({ profile, values }: Bound): Ear {
  const sources = readingsOf(profile.telemetry)
    .filter(({ readings }) => placeholdersIn(readings).every((name) => values.get(name) !== null))
    .map((source) => filled(source, values));
  const byTopic = new Map<string, Source[]>();
  for (const source of sources) {
    for (const topic of new Set(source.readings.flatMap(topicsOf)))
      byTopic.set(topic, [...(byTopic.get(topic) ?? []), source]);
  }
  const alive = profile.alive === undefined ? null : filled(profile.alive, values).topic;
  const results = filled(profile.results, values);
  const reports = Object.values(profile.reports).map(({ topic }) => renderText(topic, values));
  const ready = profile.ready === undefined ? null : filled(profile.ready, values).topic;
  const told = [
    ...byTopic.keys(),
    ...reports,
    ...(ready === null ? [] : [ready]),
    ...(alive === null ? [] : [alive]),
    ...results.map(({ topic }) => topic),
  ];
  const filters = profile.nativePayloads ? NATIVE_FILTERS : [...new Set(told)];
  const identities = sources.filter(({ signal }) => signal === "vehicleId");
  const instantaneous = sources.filter(({ signal }) => INSTANTANEOUS.has(signal));
  return {
    byTopic,
    identities,
    instantaneous,
    alive,
    ready,
    results,
    native: profile.nativePayloads,
    filters,
  };
}

/** Parts of a profile are JSON, and keep their shape. */
const filled = <Part>(part: Part, values: Values): Part =>
  renderJson(part as unknown as Json, values) as Part;
