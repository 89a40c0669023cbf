import { hash } from "node:crypto";
import { z } from "zod";

import { chargersUnder } from "../control/holds/lifecycle.ts";
import { dispatchesUnder } from "../control/holds/untilEvents.ts";
import type { ControlState } from "../control/state.ts";
import type { Json } from "../domain/audit.ts";
import { type Hold, type HoldEnd, type HoldScope, LONGEST_HOLD, formatScope } from "../domain/hold.ts";
import { levelOf } from "../domain/setpoint.ts";
import { after, type ChargerId, type Instant, iso, later } from "../domain/units.ts";
import { vehicleNamed } from "../domain/vehicle.ts";
import { type Answer, asJson, invalid, momentIn, mistakesIn, oneOf } from "./answer.ts";

const name = z.string().trim().min(1).max(256);
const only = z.literal(true);

/** Sentences that explain a mistake, by member. */
const EXPECTED = {
  scope: '{"vehicle": ID}, {"charger": ID} or {"site": true}',
  kind: '"exempt" or "level"',
  level: '{"currentA": 16}, {"powerW": 7000} or {"pause": true}',
  until: '{"at": ISO moment}, {"unplugged": true}, {"energyWh": 18000} or {"events": true}',
  reason: "why, in 1 to 200 characters",
} as const;

/** The body of `POST holds`. */
export const holdSchema = z.strictObject({
  scope: z.union(
    [z.strictObject({ vehicle: name }), z.strictObject({ charger: name }), z.strictObject({ site: only })],
    { error: EXPECTED.scope },
  ),
  kind: z.enum(["exempt", "level"], { error: EXPECTED.kind }),
  level: z
    .union(
      [
        z.strictObject({ currentA: z.number().positive().max(10_000) }),
        z.strictObject({ powerW: z.number().positive().max(10_000_000) }),
        z.strictObject({ pause: only }),
      ],
      { error: EXPECTED.level },
    )
    .nullish(),
  until: z.union(
    [
      z.strictObject({
        at: z.iso.datetime({ offset: true, local: true, error: "a moment, e.g. 2026-11-21T06:00:00Z" }),
      }),
      z.strictObject({ unplugged: only }),
      z.strictObject({ energyWh: z.number().positive().max(10_000_000) }),
      z.strictObject({ events: only }),
    ],
    { error: EXPECTED.until },
  ),
  reason: z.string({ error: EXPECTED.reason }).trim().min(1, EXPECTED.reason).max(200, EXPECTED.reason),
});

/** The body of `DELETE holds/ID`. */
export const holdEndSchema = z.strictObject({ reason: holdSchema.shape.reason });

/** A request over MQTT to end the hold of a charger or of the vehicle there: a button knows no id. */
export const holdEndRequest = z.strictObject({
  end: only,
  scope: z.union([z.strictObject({ charger: name }), z.strictObject({ vehicle: name })], {
    error: '{"charger": ID} or {"vehicle": ID}',
  }),
  reason: holdSchema.shape.reason,
});

export type HoldBody = z.infer<typeof holdSchema>;

/** Checks the shape of a body. Every mistake is answered with its path. */
export function holdBody(body: unknown): Answer<Json> | { readonly body: HoldBody } {
  const mistakes = [...mistakesIn(body, holdSchema, EXPECTED)];
  const { kind, level = null }: { readonly kind?: unknown; readonly level?: unknown } = Object(body);
  if (kind === "level" && level === null)
    mistakes.push({ path: "level", found: null, expected: EXPECTED.level });
  if (kind === "exempt" && level !== null)
    mistakes.push({ path: "level", found: asJson(level), expected: 'no level with kind "exempt"' });
  return mistakes.length > 0 ? invalid(...mistakes) : { body: holdSchema.parse(body) };
}

/** A request is the same as another if this is. */
export const requestHash = (body: HoldBody, by: string): string => hash("sha256", JSON.stringify([body, by]));

/** Settles a request against what is known now. Null `key`: the request has none. */
export function holdFrom(
  state: ControlState,
  body: HoldBody,
  { by, key }: { readonly by: string; readonly key: string | null },
  now: Instant,
): Answer<Json> | { readonly hold: Hold } {
  const scope = scopeIn(state, body.scope);
  if ("ok" in scope) return scope;
  const { level: asked = null } = body;
  const level = asked === null ? null : levelOf(asked);
  const end = endIn(state, body.until, scope, now);
  if ("ok" in end) return end;
  if (level?.kind === "release") return invalid({ path: "level", found: null, expected: EXPECTED.level });
  // An exemption from events ends with them, however long they last. A level never outlasts a day.
  const cap = end.kind === "events" && level === null ? null : after(now, LONGEST_HOLD);
  return {
    hold: {
      id: state.nextHoldId(),
      scope,
      level,
      end,
      since: now,
      cap,
      by,
      reason: body.reason,
      key: key === null ? null : `${key} ${requestHash(body, by)}`,
      ended: null,
    },
  };
}

/** A vehicle is named by its id, or by its name in any case. */
export function scopeIn(state: ControlState, scope: HoldBody["scope"]): Answer<Json> | HoldScope {
  if ("site" in scope) return { kind: "site" };
  if ("charger" in scope) {
    const charger = [...state.chargers.keys()].find((id) => id === scope.charger);
    if (charger !== undefined) return { kind: "charger", charger };
    return invalid({
      path: "scope.charger",
      found: scope.charger,
      expected: oneOf([...state.chargers.keys()]),
    });
  }
  const vehicle = vehicleNamed(state.vehicles.values(), scope.vehicle);
  if (vehicle !== null) return { kind: "vehicle", vehicle: vehicle.id };
  return invalid({
    path: "scope.vehicle",
    found: scope.vehicle,
    expected: oneOf([...state.vehicles.keys()]),
  });
}

function endIn(
  state: ControlState,
  until: HoldBody["until"],
  scope: HoldScope,
  now: Instant,
): Answer<Json> | HoldEnd {
  if ("at" in until) {
    const at = momentIn(until.at);
    const last = after(now, LONGEST_HOLD);
    if (at !== null && at > now && at <= last) return { kind: "at", at };
    return invalid({
      path: "until.at",
      found: until.at,
      expected: `later than ${iso(now)}, at most 24 h ahead: until ${iso(last)}`,
    });
  }
  if ("events" in until) {
    const dispatches = [...dispatchesUnder(state, scope, now)];
    if (dispatches.length === 0)
      return invalid({
        path: "until.events",
        found: true,
        expected: `another end: no event is in force for ${formatScope(scope)} now`,
      });
    const events = [...new Set(dispatches.map(({ event }) => event.id))];
    return { kind: "events", events, latest: dispatches.map(({ until }) => until).reduce(later) };
  }
  const path = "unplugged" in until ? "until.unplugged" : "until.energyWh";
  const found = "unplugged" in until ? true : until.energyWh;
  const [charger] = scope.kind === "site" ? [] : chargersUnder(state, scope);
  if (charger === undefined) {
    const expected =
      scope.kind === "site"
        ? 'for the site: {"at": ISO moment} or {"events": true}'
        : `another end: ${formatScope(scope)} is at no charger`;
    return invalid({ path, found, expected });
  }
  return "unplugged" in until
    ? untilUnplugged(state, charger)
    : untilDelivered(state, charger, until.energyWh);
}

function untilUnplugged({ presence, occupancy }: ControlState, charger: ChargerId): Answer<Json> | HoldEnd {
  if (presence.of(charger).telemetry?.state === "unplugged")
    return invalid({
      path: "until.unplugged",
      found: true,
      expected: `another end: nothing is plugged in at ${charger}`,
    });
  const occupant = occupancy.at(charger);
  return { kind: "unplugged", charger, vehicle: occupant.kind === "vehicle" ? occupant.vehicle : null };
}

function untilDelivered({ presence }: ControlState, charger: ChargerId, wh: number): Answer<Json> | HoldEnd {
  const telemetry = presence.of(charger).telemetry;
  const register = telemetry?.energyWh === undefined ? "sessionWh" : "energyWh";
  const fromWh = telemetry?.[register];
  if (fromWh === undefined)
    return invalid({
      path: "until.energyWh",
      found: wh,
      expected: `another end: ${charger} has reported no energy since the start`,
    });
  return { kind: "energy", wh, meter: { charger, register, fromWh, deliveredWh: 0 } };
}

/** A larger message is refused unread. */
const MOST_BYTES = 16_384;
/** Name on record where a person would stand: a broker names no person. */
const BY_MQTT = "mqtt";

/** Requests about holds that MQTT may make. */
interface HoldRequests {
  readonly open: (body: unknown, by: string, key: string | null) => Promise<Answer<Json>>;
  /** Ends the hold that applies to a charger or to the vehicle there. */
  readonly endOver: (
    scope: z.infer<typeof holdEndRequest>["scope"],
    body: unknown,
    by: string,
  ) => Promise<Answer<Json>>;
}

/**
 * The answer to a request about a hold from MQTT, as `holds/result` gets it: the hold with its effect, or the problem. A
 * retained request is refused, because the broker would repeat it at each connection.
 */
export async function answerHoldMessage(
  holds: HoldRequests,
  { payload, retained }: { readonly payload: Buffer; readonly retained: boolean },
): Promise<string> {
  const answer = retained
    ? invalid({ path: "", found: "a retained message", expected: "a message that is not retained" })
    : await answered(holds, payload);
  return JSON.stringify(answer.ok ? answer.value : answer.problem);
}

async function answered(holds: HoldRequests, payload: Buffer): Promise<Answer<Json>> {
  if (payload.length > MOST_BYTES)
    return invalid({ path: "", found: `${payload.length} bytes`, expected: `at most ${MOST_BYTES} bytes` });
  let body: unknown;
  try {
    body = JSON.parse(payload.toString());
  } catch {
    return invalid({ path: "", found: payload.toString().slice(0, 80), expected: "a JSON object" });
  }
  if (typeof body !== "object" || body === null || !Object.hasOwn(body, "end"))
    return holds.open(body, BY_MQTT, null);
  const end = holdEndRequest.safeParse(body);
  if (end.success) return holds.endOver(end.data.scope, { reason: end.data.reason }, BY_MQTT);
  return invalid({
    path: "",
    found: asJson(body),
    expected: '{"end": true, "scope": {"charger": ID} or {"vehicle": ID}, "reason": why}',
  });
}
