import { z } from "zod";
import type { Desired } from "../../domain/setpoint.ts";
import type { ChargerState } from "../../domain/telemetry.ts";
import { amperes, instant, seconds, watts, type Instant, type Millis } from "../../domain/units.ts";
import { LARGEST_PAYLOAD } from "../profile/payload.ts";

/** The JSON of DESIGN 6.2 as schemas: unknown members are ignored, wrong types are not. */

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
/** A state from a later version of the charger is still a string: no reason to drop the readings beside it. */
const state = z.string().transform((text) => STATES.find((known) => known === text) ?? "unknown");

/** A time without a zone is anybody's guess, so it is not read. */
const time = z.iso.datetime({ offset: true }).transform((text) => instant(Date.parse(text)));

/** Zod's numbers are finite: NaN cannot be written in JSON, and 1e999 is refused. Null says what absence says. */
const measured = z.number().nullish();
const perPhase = z.array(z.number()).max(8).nullish();
/** Ids and identities as DESIGN 5.1 wants them; empty says nobody. */
const name = z
  .string()
  .max(256)
  .refine((text) => text.isWellFormed(), "not well-formed Unicode")
  .transform((text) => text.normalize("NFC"));

const identity = z
  .object({ kind: name, value: name })
  .transform(({ kind, value }) => ({ kind: kind.toLowerCase(), value }));

/** `at` stays undefined where it is absent or unreadable. */
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
  soc: measured,
  limitA: measured,
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

/** What a charger understands of a `set`. */
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

const desired = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("current"), value: z.number() }),
  z.object({ kind: z.literal("power"), value: z.number() }),
  z.object({ kind: z.literal("pause") }),
  z.object({ kind: z.literal("release") }),
]);

function desiredOf(told: z.infer<typeof desired>): Desired {
  switch (told.kind) {
    case "current":
      return { kind: told.kind, amperes: amperes(told.value) };
    case "power":
      return { kind: told.kind, watts: watts(told.value) };
    case "pause":
    case "release":
      return { kind: told.kind };
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
  .transform((told): SetMessage => ({
    id: told.id,
    epoch: told.epoch,
    seq: told.seq,
    desired: desiredOf(told),
    until: told.until,
    lease: seconds(told.lease),
    vehicle: told.vehicle,
    event: told.event,
  }));
