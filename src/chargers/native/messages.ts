import { commandId, type Command } from "../../domain/command.ts";
import { valueOf } from "../../domain/setpoint.ts";
import type { ChargerMessage, Telemetry } from "../../domain/telemetry.ts";
import { chargerId, iso, type ChargerId, type Instant, type Millis } from "../../domain/units.ts";
import {
  ackPayload,
  readPayload,
  rebootPayload,
  setPayload,
  telemetryPayload,
  type SetMessage,
} from "./payload.ts";

/** Topics and payloads of native chargers. Used by the daemon and by the simulated chargers. */

/** A level of an MQTT topic. Configuration refuses other ids already. */
const LEVEL = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

/** MQTT 5, 1.5.4: the length of a string has two bytes. */
const LONGEST_TOPIC_BYTES = 65_535;

/** Brokers disconnect clients that publish wildcards or control characters. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const FORBIDDEN = /[+#\u0000-\u001f\u007f-\u009f]/;

/** The id as one topic level. Null: not possible. */
export const topicLevel = (id: string): string | null => (LEVEL.test(id) ? id : null);

/** Reason why this topic must not be published. The library does not check it. Null: valid. */
export function topicFault(topic: string): string | null {
  if (topic === "") return "the topic is empty";
  if (topic.startsWith("$")) return "the topic starts with $";
  if (FORBIDDEN.test(topic)) return "the topic holds a wildcard or a control character";
  if (!topic.isWellFormed()) return "the topic is not well-formed Unicode";
  if (Buffer.byteLength(topic) > LONGEST_TOPIC_BYTES) return "the topic is longer than 65535 bytes";
  return null;
}

/**
 * True: the topic matches a filter of these levels, of which + stands for any. Each publish and each message asks several
 * filters, so nothing is split here.
 */
export function isUnder(topic: string, levels: readonly string[]): boolean {
  const last = levels.at(-1) ?? "";
  if (last !== "+" && !topic.endsWith(last)) return false;
  let start = 0;
  for (const level of levels) {
    if (start > topic.length) return false;
    const slash = topic.indexOf("/", start);
    const end = slash < 0 ? topic.length : slash;
    if (level !== "+" && !(end - start === level.length && topic.startsWith(level, start))) return false;
    start = end + 1;
  }
  return start > topic.length;
}

/** Topics of one charger. */
export interface NativeTopics {
  readonly set: string;
  readonly reboot: string;
  readonly ack: string;
  readonly telemetry: string;
  readonly online: string;
  readonly state: string;
}

/** Null: the id of the charger or the site cannot be a topic level. */
export function nativeTopics(prefix: string, site: string, charger: string): NativeTopics | null {
  if (topicLevel(charger) === null || topicLevel(site) === null) return null;
  return topicsBelow(chargerRoot(prefix, site, charger));
}

/** The topics of a charger are below it. */
export const chargerRoot = (prefix: string, site: string, charger: string): string =>
  `${chargersRoot(prefix, site)}${charger}`;

/** Last levels of the topics that a native charger publishes on. */
export const NATIVE_LEAVES: readonly string[] = ["ack", "telemetry", "online"];

export const rebootTopicBelow = (root: string): string => `${root}/reboot`;

export const stateTopicBelow = (root: string): string => `${root}/state`;

function topicsBelow(root: string): NativeTopics {
  return {
    set: `${root}/set`,
    reboot: rebootTopicBelow(root),
    ack: `${root}/ack`,
    telemetry: `${root}/telemetry`,
    online: `${root}/online`,
    state: stateTopicBelow(root),
  };
}

/** All topics of a site are below it. */
export const siteRoot = (prefix: string, site: string): string => `${prefix}/${site}`;

/** Topics of the site as a whole. */
export const siteTopic = (prefix: string, site: string, path: string): string =>
  `${siteRoot(prefix, site)}/${path}`;

/** Presence of setpointd, `true` or `false`, retained, also as the last will. */
export const gatewayOnlineTopic = (prefix: string, site: string): string =>
  siteTopic(prefix, site, "gateway/online");

/** Requests for holds, in the shape of `POST holds`. */
export const holdRequestTopic = (prefix: string, site: string): string =>
  siteTopic(prefix, site, "holds/set");

/** The answer to each request for a hold, below the root of the site. */
export const HOLD_RESULT = "holds/result";

/** Every topic that the chargers of a site publish on. */
export const nativeFilters = (prefix: string, site: string): readonly string[] =>
  NATIVE_LEAVES.map((leaf) => `${chargersRoot(prefix, site)}+/${leaf}`);

const chargersRoot = (prefix: string, site: string): string => `${prefix}/${site}/chargers/`;

/**
 * Payload of `set`. The lease is rounded up to whole seconds: it must outlast the interval between
 * refreshes.
 */
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

/** Reads `set` on the charger's side. Undefined: not a `set` of this version. */
export function readSet(payload: Buffer): SetMessage | undefined {
  const read = readPayload(setPayload, payload);
  return read.ok ? read.value : undefined;
}

/** Payload of `reboot`. */
export const writeReboot = (id: string, at: Instant): string => JSON.stringify({ v: 1, id, at: iso(at) });

/** Reads `reboot` on the charger's side. Undefined: not a `reboot` of this version. */
export function readReboot(payload: Buffer): { readonly id: string; readonly at: Instant } | undefined {
  const read = readPayload(rebootPayload, payload);
  return read.ok ? read.value : undefined;
}

type Ack = Extract<ChargerMessage, { readonly kind: "ack" }>;

/** Payload of `ack`. */
export const writeAck = (ack: Omit<Ack, "kind" | "charger">): string =>
  JSON.stringify({ id: ack.id, accepted: ack.accepted, value: ack.value, reason: ack.reason });

/** Payload of `telemetry`. Absent members stay absent. */
export const writeTelemetry = (telemetry: Telemetry): string => JSON.stringify(onTheWire(telemetry));

function onTheWire({ at, started, ...members }: Telemetry) {
  return { ...members, at: iso(at), ...(started?.kind === "time" ? { bootedAt: iso(started.at) } : {}) };
}

const UNKNOWN = {
  powerW: null,
  currentsA: null,
  voltagesV: null,
  sessionWh: null,
  soc: null,
  limitA: null,
} as const;

/** `writeTelemetry` of a charger whose message has all that is known: a measurement that is absent is not known. */
export const writeWholeTelemetry = (telemetry: Telemetry): string =>
  JSON.stringify({ ...UNKNOWN, ...onTheWire(telemetry) });

/** A message as the broker delivered it. */
interface NativeMessage {
  readonly topic: string;
  readonly payload: Buffer;
  /** Stored at the broker for an unknown time. */
  readonly retained: boolean;
}

/** Decodes a message from a charger of a site. Undefined: not from a charger, or without content. */
export function readNative(
  [prefix, site]: readonly [prefix: string, site: string],
  { topic, payload, retained }: NativeMessage,
  receivedAt: Instant,
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
  const { at, vehicle, identity, bootedAt, ...readings } = read.value;
  // A retained message without a timestamp may be weeks old, and must not pass as current.
  if (at === undefined && retained) return undefined;
  const telemetry: Telemetry = {
    at: at ?? receivedAt,
    ...(vehicle === undefined ? {} : { vehicle }),
    ...(identity === undefined ? {} : { identity: identity && inLowerCase(identity) }),
    ...statedMembers(readings),
    ...(bootedAt === undefined ? {} : { started: { kind: "time", at: bootedAt } }),
  };
  return { kind: "telemetry", charger, telemetry, ...(retained ? { snapshot: true } : {}) };
}

/** Identities are compared in lower case, for all makes. */
const inLowerCase = <I extends { readonly value: string }>(identity: I): I => ({
  ...identity,
  value: identity.value.toLowerCase(),
});

type Stated<T> = { [K in keyof T]?: NonNullable<T[K]> };

/**
 * Without members that are absent. A null member is there as undefined: the charger does not know the value any more, and
 * merged over an earlier message it removes that value.
 */
const statedMembers = <T extends object>(readings: T): Stated<T> =>
  Object.fromEntries(
    Object.entries(readings).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value ?? undefined]],
    ),
  ) as Stated<T>;

function readAck(charger: ChargerId, payload: Buffer): ChargerMessage {
  const read = readPayload(ackPayload, payload);
  return read.ok
    ? { kind: "ack", charger, ...read.value }
    : { kind: "malformed", charger, reason: `ack: ${read.reason}` };
}

function readOnline(charger: ChargerId, payload: Buffer, retained: boolean): ChargerMessage | undefined {
  // An empty payload deletes a retained message.
  if (payload.length === 0) return undefined;
  const text = payload.length > 16 ? "" : payload.toString("utf8").trim();
  if (text !== "true" && text !== "false") {
    return { kind: "malformed", charger, reason: "online: neither true nor false" };
  }
  return { kind: "online", charger, online: text === "true", snapshot: retained };
}
