import type { Json } from "../../domain/audit.ts";
import { ackPayload, readPayload, telemetryPayload } from "../native/payload.ts";
import type { ProfileInstance } from "./instance.ts";
import { readingsOf, type Source, topicsOf } from "./readings.ts";
import { placeholdersIn, renderJson, renderText, type Values } from "./render.ts";
import type { Profile } from "./schema.ts";
import type { SignalName } from "./sections.ts";
import { type DecodedMessage, type Signals, NOTHING_DECODED } from "./signals.ts";

/** What to listen to for one charger, with its parameters put in. */
export interface TelemetryMap {
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
export function compileTelemetry({ profile, values }: ProfileInstance): TelemetryMap {
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

/** Last levels of the topics that a native charger speaks on (DESIGN 6.2). */
export const NATIVE_LEAVES: readonly string[] = ["ack", "telemetry", "online"];

/** The native topics of any charger of any site (DESIGN 6.2); the daemon subscribes by its own prefix and site. */
const NATIVE_FILTERS: readonly string[] = NATIVE_LEAVES.map((leaf) => `+/+/chargers/+/${leaf}`);

/** What a native message means; read by the same schemas as the daemon reads it. */
export function decodeNative(topic: string, payload: string): DecodedMessage {
  const [, leaf] = /(?:^|\/)chargers\/[^/]+\/(telemetry|ack|online)$/.exec(topic) ?? [];
  if (leaf === "telemetry") return { signals: telemetrySignals(payload), answer: null };
  if (leaf === "ack") return decodedAck(payload);
  const online = payload.trim();
  if (leaf !== "online" || (online !== "true" && online !== "false")) return NOTHING_DECODED;
  return { signals: { online: online === "true" }, answer: null };
}

function telemetrySignals(payload: string): Signals {
  const read = readPayload(telemetryPayload, Buffer.from(payload));
  if (!read.ok) return {};
  const { state, vehicle, identity, powerW, currentsA, voltagesV, energyWh, sessionWh, soc, limitA } =
    read.value;
  const named =
    typeof vehicle === "string"
      ? { vehicleId: vehicle, vehicleIdKind: "vehicle" }
      : identity
        ? { vehicleId: identity.value, vehicleIdKind: identity.kind }
        : { vehicleId: vehicle === null || identity === null ? null : undefined };
  const told: Readonly<Record<keyof Signals, unknown>> | object = {
    state,
    ...named,
    powerW,
    currentsA,
    voltagesV,
    energyWh,
    sessionEnergyWh: sessionWh,
    socPct: soc,
    limitA,
  };
  return present(told);
}

const present = (told: object): Signals =>
  Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));

function decodedAck(payload: string): DecodedMessage {
  const read = readPayload(ackPayload, Buffer.from(payload));
  return read.ok
    ? { signals: {}, answer: { accepted: read.value.accepted, reason: read.value.reason } }
    : NOTHING_DECODED;
}
