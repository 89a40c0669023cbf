import type { Json } from "../../domain/audit.ts";
import { ackPayload, readPayload, telemetryPayload } from "../native/payload.ts";
import type { ProfileInstance } from "./instance.ts";
import {
  readingsOf,
  type Source,
  topicsOf,
  type DecodedMessage,
  type Signals,
  NOTHING_DECODED,
} from "./signals.ts";
import { placeholdersIn, renderJson, renderText, type Values } from "./render.ts";
import type { Profile } from "./schema.ts";
import type { SignalName } from "./sections.ts";
import { NATIVE_LEAVES } from "../native/messages.ts";

/** Sources of all signals of one charger, with its parameters. */
export interface TelemetryMap {
  /** Sources by topic. */
  readonly byTopic: ReadonlyMap<string, readonly Source[]>;
  /** Sources of the vehicle's identity, in order of preference. */
  readonly identities: readonly Source[];
  /** Sources of instantaneous measurements, in order of preference. */
  readonly instantaneous: readonly Source[];
  /** A message on this topic shows that the charger is online. Null: it has a last will. */
  readonly alive: string | null;
  /**
   * The first live message on this topic after `online` shows that the charger obeys. Null: `online` shows
   * it.
   */
  readonly ready: string | null;
  readonly results: Profile["results"];
  /** Native payloads, on any topics. */
  readonly native: boolean;
  /** All subscriptions. */
  readonly filters: readonly string[];
}

/** Meter registers are not among them: one without a report may have moved on. */
const INSTANTANEOUS: ReadonlySet<SignalName> = new Set(["powerW", "currentA", "currentsA", "voltagesV"]);

/** Compiled once per charger, because messages may be frequent. */
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
  const topics = [
    ...byTopic.keys(),
    ...reports,
    ...(ready === null ? [] : [ready]),
    ...(alive === null ? [] : [alive]),
    ...results.map(({ topic }) => topic),
  ];
  const filters = profile.nativePayloads ? NATIVE_FILTERS : [...new Set(topics)];
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

/** Parts of a profile are JSON. Rendering keeps their shape. */
const filled = <Part>(part: Part, values: Values): Part =>
  renderJson(part as unknown as Json, values) as Part;

/** Native topics of every charger of every site. The daemon subscribes with its own prefix and site. */
const NATIVE_FILTERS: readonly string[] = NATIVE_LEAVES.map((leaf) => `+/+/chargers/+/${leaf}`);

/** Decodes a native message with the daemon's schemas. */
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
  const {
    state,
    vehicle,
    identity,
    powerW,
    currentsA,
    voltagesV,
    energyWh,
    sessionWh,
    soc,
    limitA,
    firmware,
  } = read.value;
  const named =
    typeof vehicle === "string"
      ? { vehicleId: vehicle, vehicleIdKind: "vehicle" }
      : identity
        ? { vehicleId: identity.value, vehicleIdKind: identity.kind }
        : { vehicleId: vehicle === null || identity === null ? null : undefined };
  const signals: Readonly<Record<keyof Signals, unknown>> | object = {
    state,
    ...named,
    powerW,
    currentsA,
    voltagesV,
    energyWh,
    sessionEnergyWh: sessionWh,
    socPct: soc,
    limitA,
    firmware,
  };
  return present(signals);
}

const present = (signals: object): Signals =>
  Object.fromEntries(Object.entries(signals).filter(([, value]) => value !== undefined));

function decodedAck(payload: string): DecodedMessage {
  const read = readPayload(ackPayload, Buffer.from(payload));
  return read.ok
    ? { signals: {}, answer: { accepted: read.value.accepted, reason: read.value.reason } }
    : NOTHING_DECODED;
}
