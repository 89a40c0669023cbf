import { commandId, type Command } from "../../domain/command.ts";
import { valueOf } from "../../domain/setpoint.ts";
import type { ChargerMessage, Telemetry } from "../../domain/telemetry.ts";
import { chargerId, iso, type ChargerId, type Instant, type Millis, amperes } from "../../domain/units.ts";
import { type ChargerDriver, type DriverPorts, PAST, secondsLeft } from "../driver.ts";
import { topicLevel } from "../profile/render.ts";
import { ackPayload, readPayload, setPayload, telemetryPayload, type SetMessage } from "./payload.ts";

/** How a native charger speaks MQTT (DESIGN 6.2). Used by the daemon and by the simulated chargers alike. */

/** The topics of one charger. */
export interface NativeTopics {
  readonly set: string;
  readonly ack: string;
  readonly telemetry: string;
  readonly online: string;
  readonly state: string;
}

/** The topics of one charger; null: its id or the site's cannot be a topic level (F67). */
export function nativeTopics(prefix: string, site: string, charger: string): NativeTopics | null {
  const level = topicLevel(charger);
  if (level === null || topicLevel(site) === null) return null;
  const root = `${chargersRoot(prefix, site)}${level}`;
  return {
    set: `${root}/set`,
    ack: `${root}/ack`,
    telemetry: `${root}/telemetry`,
    online: `${root}/online`,
    state: `${root}/state`,
  };
}

/** All topics of a site are below it. */
export const siteRoot = (prefix: string, site: string): string => `${prefix}/${site}`;

/** What is about the site as a whole. */
export const siteTopic = (prefix: string, site: string, path: string): string =>
  `${siteRoot(prefix, site)}/${path}`;

/** Where setpointd says `true` or `false` about itself, retained, last will included. */
export const gatewayOnlineTopic = (prefix: string, site: string): string =>
  siteTopic(prefix, site, "gateway/online");

/** Everything that the chargers of a site say. */
export const nativeFilters = (prefix: string, site: string): readonly string[] =>
  ["ack", "telemetry", "online"].map((leaf) => `${chargersRoot(prefix, site)}+/${leaf}`);

const chargersRoot = (prefix: string, site: string): string => `${prefix}/${site}/chargers/`;

/** The payload of `set`. The lease is rounded up to whole seconds: it must outlast the refreshes it is made for. */
export function writeSet(command: Command, lease: Millis): string {
  const { value, unit } = valueOf(command.desired);
  return JSON.stringify({
    v: 1,
    id: commandId(command),
    epoch: command.epoch,
    seq: command.seq,
    kind: command.desired.kind,
    value,
    unit,
    until: command.until === null ? null : iso(command.until),
    lease: Math.ceil(lease / 1000),
    vehicle: command.vehicle,
    event: command.event,
  });
}

/** The charger's side of `set`; undefined: not a `set` of this version. */
export function readSet(payload: Buffer): SetMessage | undefined {
  const read = readPayload(setPayload, payload);
  return read.ok ? read.value : undefined;
}

type Ack = Extract<ChargerMessage, { readonly kind: "ack" }>;

/** The payload of `ack`. */
export const writeAck = (ack: Omit<Ack, "kind" | "charger">): string =>
  JSON.stringify({ id: ack.id, accepted: ack.accepted, value: ack.value, reason: ack.reason });

/** The payload of `telemetry`: what is absent stays absent. */
export const writeTelemetry = (telemetry: Telemetry): string =>
  JSON.stringify({ ...telemetry, at: iso(telemetry.at) });

/**
 * What a message from the floor says; undefined: it is not from a charger, or it says nothing.
 * `retained`: it waited at the broker, for nobody knows how long.
 */
export function readNative(
  prefix: string,
  site: string,
  topic: string,
  payload: Buffer,
  receivedAt: Instant,
  retained: boolean,
): ChargerMessage | undefined {
  const root = chargersRoot(prefix, site);
  if (!topic.startsWith(root)) return undefined;
  const [level = "", leaf = "", ...rest] = topic.slice(root.length).split("/");
  if (topicLevel(level) === null || rest.length > 0) return undefined;
  const charger = chargerId(level);
  switch (leaf) {
    case "telemetry":
      return readTelemetry(charger, payload, receivedAt, retained);
    case "ack":
      return readAck(charger, payload);
    case "online":
      return readOnline(charger, payload, retained);
    default:
      return undefined;
  }
}

function readTelemetry(
  charger: ChargerId,
  payload: Buffer,
  receivedAt: Instant,
  retained: boolean,
): ChargerMessage | undefined {
  const read = readPayload(telemetryPayload, payload);
  if (!read.ok) return { kind: "malformed", charger, reason: `telemetry: ${read.reason}` };
  const { at, vehicle, identity, ...readings } = read.value;
  // Retained without a time of its own: it may be weeks old, and would look fresh.
  if (at === undefined && retained) return undefined;
  const telemetry: Telemetry = {
    at: at ?? receivedAt,
    ...(vehicle === undefined ? {} : { vehicle }),
    ...(identity === undefined ? {} : { identity: identity && inLowerCase(identity) }),
    ...presentMembers(readings),
  };
  return { kind: "telemetry", charger, telemetry, ...(retained ? { snapshot: true } : {}) };
}

/** As all makes are told of: one spelling for one identity. */
const inLowerCase = <I extends { readonly value: string }>(identity: I): I => ({
  ...identity,
  value: identity.value.toLowerCase(),
});

type Present<T> = { [K in keyof T]?: NonNullable<T[K]> };

/** Only the members that say something. */
const presentMembers = <T extends object>(readings: T): Present<T> =>
  Object.fromEntries(Object.entries(readings).filter(([, value]) => value != null)) as Present<T>;

function readAck(charger: ChargerId, payload: Buffer): ChargerMessage {
  const read = readPayload(ackPayload, payload);
  return read.ok
    ? { kind: "ack", charger, ...read.value }
    : { kind: "malformed", charger, reason: `ack: ${read.reason}` };
}

function readOnline(charger: ChargerId, payload: Buffer, retained: boolean): ChargerMessage | undefined {
  // An empty payload is how a retained value is taken away: nothing is said.
  if (payload.length === 0) return undefined;
  const text = payload.length > 16 ? "" : payload.toString("utf8").trim();
  if (text !== "true" && text !== "false") {
    return { kind: "malformed", charger, reason: "online: neither true nor false" };
  }
  return { kind: "online", charger, online: text === "true", snapshot: retained };
}

/** A charger that speaks the native topics (DESIGN 6.2). */
export function nativeDriver(
  { set, ack, telemetry, online }: NativeTopics,
  [prefix, site]: readonly [prefix: string, site: string],
  { now, publish, emit }: DriverPorts,
): ChargerDriver {
  let limit = amperes(0);
  return {
    topics: [ack, telemetry, online],
    async send(command, lease) {
      const expirySeconds = () => secondsLeft(command, lease, now());
      if (expirySeconds() <= 0) return PAST;
      // Not retained: a charger that reboots next week must not find this setpoint waiting.
      return publish(set, writeSet(command, lease), { retain: false, expirySeconds });
    },
    handleMessage(topic, payload, retained) {
      const message = readNative(prefix, site, topic, payload, now(), retained);
      if (message === undefined) return;
      if (message.kind === "telemetry") limit = amperes(message.telemetry.limitA ?? limit);
      emit(message);
    },
    // 0 may be a pause, or that nobody charges.
    shows: () => (limit <= 0 ? null : { kind: "current", amperes: limit }),
    brokerUp() {},
    brokerDown() {},
    [Symbol.dispose]() {},
  };
}
