import { z } from "zod";
import type { Desired } from "../../domain/setpoint.ts";
import type { ChargerState } from "../../domain/telemetry.ts";
import {
  after,
  amperes,
  earlier,
  seconds,
  watts,
  type Instant,
  type Millis,
  fromIso,
} from "../../domain/units.ts";
import { LARGEST_PAYLOAD, percentIn, versionIn } from "../profile/payload.ts";

/** Native JSON payloads as schemas. Unknown members are ignored, wrong types are rejected. */

export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

/** Reads a payload by a schema. The reason names the member, never the content. */
export function readPayload<T>(schema: z.ZodType<T>, payload: Buffer): Read<T> {
  if (payload.length > LARGEST_PAYLOAD) return { ok: false, reason: `${payload.length} bytes long` };
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(payload));
  } catch {
    return { ok: false, reason: "not JSON" };
  }
  const read = schema.safeParse(json);
  if (read.success) return { ok: true, value: read.data };
  const issue = read.error.issues[0];
  const where = issue === undefined || issue.path.length === 0 ? "payload" : issue.path.map(String).join(".");
  return { ok: false, reason: `${where}: ${issue?.message ?? "not readable"}`.slice(0, 120) };
}

const STATES: readonly ChargerState[] = ["unplugged", "connected", "charging", "paused", "finished", "error"];
/** A state of a later charger version reads as unknown. The readings beside it are kept. */
const state = z.string().transform((text) => STATES.find((known) => known === text) ?? "unknown");

/** A time without a zone is ambiguous, and is not used. */
const time = z.iso.datetime({ offset: true }).transform((text) => fromIso(text));

/** Finite numbers only. Null: not known any more. Absent: as in the message before. */
const measured = z.number().nullish();
const perPhase = z.array(z.number()).max(8).nullish();
/** Ids and identities: well-formed Unicode, NFC. Empty means no vehicle. */
const name = z
  .string()
  .max(256)
  .refine((text) => text.isWellFormed(), "not well-formed Unicode")
  .transform((text) => text.normalize("NFC"));

const identity = z
  .object({ kind: name, value: name })
  .transform(({ kind, value }) => ({ kind: kind.toLowerCase(), value }));

/** Chargers may have had a member of this name before it had a meaning, so an unreadable one is left out. */
const firmware = z
  .string()
  .describe("Version of its firmware. The first 64 characters count.")
  .transform((text) => versionIn(text) ?? undefined)
  .optional()
  .catch(undefined);
const bootedAt = time
  .describe("Time of its last start: the same in each message until the next start.")
  .optional()
  .catch(undefined);

/** `at` is undefined if absent or unreadable. */
export const telemetryPayload = z.object({
  at: time.optional().catch(undefined),
  state: state.nullish(),
  vehicle: name.transform((text) => (text === "" ? null : text)).nullish(),
  identity: identity.transform((seen) => (seen.value === "" ? null : seen)).nullish(),
  powerW: measured,
  currentsA: perPhase,
  voltagesV: perPhase,
  energyWh: measured,
  sessionWh: measured,
  soc: z.number().transform(percentIn).nullish(),
  limitA: measured,
  firmware,
  bootedAt,
});

export const ackPayload = z.object({
  id: z.string().max(64),
  accepted: z.boolean(),
  value: z.number().nullable().default(null),
  reason: z
    .string()
    .transform((text) => text.slice(0, 256))
    .nullable()
    .default(null),
});

/** A request to restart. A charger that gets the same `id` again restarts once. */
export const rebootPayload = z.object({ v: z.literal(1), id: z.string().max(64), at: time });

/** A `set` as the charger reads it. */
export interface SetMessage {
  readonly id: string;
  readonly epoch: number;
  readonly seq: number;
  readonly desired: Desired;
  readonly until: Instant | null;
  readonly lease: Millis;
  readonly vehicle: string | null;
  readonly event: string | null;
}

/** True: a charger refuses the order, as it came after a newer one. */
export const isOlder = (
  order: Pick<SetMessage, "epoch" | "seq">,
  last: Pick<SetMessage, "epoch" | "seq">,
): boolean => order.epoch < last.epoch || (order.epoch === last.epoch && order.seq < last.seq);

/** The charger's own end of an order. The lease counts from the receipt. Null `until`: the lease alone. */
export const orderExpires = (
  { until, lease }: Pick<SetMessage, "until" | "lease">,
  received: Instant,
): Instant => (until === null ? after(received, lease) : earlier(until, after(received, lease)));

const desired = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("current"), value: z.number() }),
  z.object({ kind: z.literal("power"), value: z.number() }),
  z.object({ kind: z.literal("pause") }),
  z.object({ kind: z.literal("release") }),
]);

function desiredOf(message: z.infer<typeof desired>): Desired {
  switch (message.kind) {
    case "current":
      return { kind: message.kind, amperes: amperes(message.value) };
    case "power":
      return { kind: message.kind, watts: watts(message.value) };
    case "pause":
    case "release":
      return { kind: message.kind };
  }
}

export const setPayload = z
  .object({
    v: z.literal(1),
    id: z.string(),
    epoch: z.int(),
    seq: z.int(),
    until: time.nullable(),
    lease: z.number().positive(),
    vehicle: z.string().nullable(),
    event: z.string().nullable(),
  })
  .and(desired)
  .transform((message): SetMessage => ({
    id: message.id,
    epoch: message.epoch,
    seq: message.seq,
    desired: desiredOf(message),
    until: message.until,
    lease: seconds(message.lease),
    vehicle: message.vehicle,
    event: message.event,
  }));

const moment = z.string().describe("ISO 8601, UTC.");
/** Null value and unit: a pause or a release. */
const shownLevel = {
  kind: z.enum(["current", "power", "pause", "release"]),
  value: z.number().nullable(),
  unit: z.enum(["A", "W"]).nullable(),
};

/** The retained state of a charger, as setpointd writes it. Programs that read it ignore unknown members. */
export const statePayload = z.object({
  charger: z.string(),
  vehicle: z.string().nullable(),
  occupant: z.enum(["vehicle", "unknown", "nobody"]),
  asked: z
    .object({ ...shownLevel, event: z.string() })
    .nullable()
    .describe("Level that the winning event asks for."),
  allowed: z.object(shownLevel).nullable().describe("Level that was sent, within all limits."),
  measured: z
    .object({
      at: moment,
      state: z.string().nullable(),
      powerW: z.number().nullable(),
      currentsA: z.array(z.number()).nullable(),
      limitA: z.number().nullable(),
    })
    .nullable(),
  hold: z
    .looseObject({ id: z.string(), kind: z.enum(["exempt", "level"]), by: z.string(), reason: z.string() })
    .nullable(),
  online: z.boolean().nullable(),
  reachable: z.boolean().nullable(),
  heardAt: moment.nullable(),
  verdict: z.enum([
    "none",
    "planned",
    "acknowledged",
    "accepted",
    "refused",
    "followed",
    "notFollowed",
    "observed",
  ]),
  command: z.string().nullable().describe("Id of the command: epoch-seq."),
  reason: z.looseObject({ words: z.string(), cause: z.string() }).nullable(),
  until: moment.nullable(),
});

/** A retained price series. */
export const pricesPayload = z.array(
  z.looseObject({
    start: moment,
    end: moment,
    value: z.number(),
    currency: z.string(),
    perUnit: z.string(),
    region: z.string(),
  }),
);

/** The retained state of the site for Home Assistant, as setpointd writes it. */
export const siteStatePayload = z.strictObject({
  mode: z.enum(["drive", "observe"]),
  eventsActive: z.int(),
  activeEvents: z.array(z.strictObject({ id: z.string(), name: z.string() })).describe("At most 20."),
  nextEvent: z.strictObject({ id: z.string(), name: z.string(), start: moment }).nullable(),
  alarmsOpen: z.int().describe("Alarms that are open or acknowledged."),
  alarmKinds: z.array(z.string()),
});

const entity = {
  unique_id: z.string(),
  name: z.string(),
  value_template: z.string().exactOptional(),
  icon: z.string().exactOptional(),
  device_class: z.string().exactOptional(),
  json_attributes_topic: z.string().exactOptional(),
  json_attributes_template: z.string().exactOptional(),
};
const commanded = { command_topic: z.string(), qos: z.literal(1), retain: z.literal(false) };
const unit = { unit_of_measurement: z.string().exactOptional() };

/** A description for Home Assistant's device discovery, as far as setpointd uses its members. */
export const discoveryPayload = z.strictObject({
  device: z.strictObject({
    identifiers: z.array(z.string()),
    name: z.string(),
    manufacturer: z.literal("setpointd"),
    model: z.string().describe("Site, or the profile of the charger."),
    sw_version: z.string().exactOptional(),
    via_device: z.string().exactOptional(),
  }),
  origin: z.strictObject({ name: z.literal("setpointd"), sw_version: z.string() }),
  availability: z.array(
    z.strictObject({
      topic: z.string(),
      payload_available: z.literal("true"),
      payload_not_available: z.literal("false"),
    }),
  ),
  state_topic: z.string(),
  qos: z.literal(1),
  components: z.record(
    z.string(),
    z.discriminatedUnion("platform", [
      z.strictObject({
        platform: z.literal("sensor"),
        ...entity,
        ...unit,
        state_class: z.string().exactOptional(),
        options: z.array(z.string()).exactOptional(),
      }),
      z.strictObject({
        platform: z.literal("binary_sensor"),
        ...entity,
        payload_on: z.literal("ON"),
        payload_off: z.literal("OFF"),
      }),
      z.strictObject({ platform: z.literal("button"), ...entity, ...commanded, payload_press: z.string() }),
      z.strictObject({
        platform: z.literal("number"),
        ...entity,
        ...commanded,
        ...unit,
        command_template: z.string(),
        min: z.number(),
        max: z.number(),
        step: z.number(),
        mode: z.literal("box"),
      }),
    ]),
  ),
});
