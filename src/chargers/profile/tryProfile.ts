import * as z from "zod";

import type { Instant } from "../../domain/units.ts";
import { decodeMessage, type Memory } from "./decodeMessage.ts";
import { instantiateProfile, type ProfileInstance, type Params } from "./instance.ts";
import { type Action, publishesFor } from "./publishes.ts";
import type { Profile } from "./schema.ts";
import { whole } from "./signals.ts";
import { type TelemetryMap, compileTelemetry } from "./telemetryMap.ts";

/** Profiles by name. */
export type Profiles = ReadonlyMap<string, Profile>;

const PARAMS = "params: names with texts, numbers, or true or false";

/** Null means the same as absent. */
const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()], { error: PARAMS });

const NOT_JSON =
  'not a line to try: one JSON object a line, e.g. {"profile":"go-e-v2","params":{"serial":"000001"},"action":"pause"}';

const line = z.object(
  {
    profile: z.string({ error: "profile: the name of a profile" }),
    params: z
      .record(z.string(), scalar, { error: PARAMS })
      .nullish()
      .transform((params): Params =>
        Object.fromEntries(
          Object.entries(params ?? {}).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
        ),
      ),
    action: z.string({ error: "action: a text" }).nullish(),
    input: z
      .record(z.string(), z.unknown(), { error: "input: an object" })
      .nullish()
      .transform((input) => input ?? {}),
    topic: z.string({ error: "topic: a text" }).nullish(),
    payload: z.unknown().optional(),
  },
  { error: NOT_JSON },
);

type TryLine = z.output<typeof line>;

const ACTIONS = "acquire, setCurrent, setPower, pause, resume, release, setPhases, reboot";

const failure = (reason: string): string => JSON.stringify({ error: reason });

/** A charger of the trial: its profile with parameters, and its payloads so far. */
type Tried =
  | {
      readonly ok: true;
      readonly instance: ProfileInstance;
      readonly telemetryMap: TelemetryMap;
      readonly memory: Memory;
    }
  | { readonly ok: false; readonly reason: string };

/**
 * Answers one JSON line with one JSON line, for recorded or invented traffic. Earlier lines of the same
 * charger count, because some values are spread over several messages. Never throws because of a line.
 */
export function trial(profiles: Profiles, now: () => Instant): (text: string) => string {
  const chargers = new Map<string, Tried>();
  return (text) => {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      return failure(NOT_JSON);
    }
    const read = line.safeParse(json);
    if (!read.success) return failure(read.error.issues[0]?.message ?? NOT_JSON);
    const { profile: name, action, topic, payload, input } = read.data;
    const profile = profiles.get(name);
    if (profile === undefined)
      return failure(`unknown profile ${JSON.stringify(name)}; there are ${[...profiles.keys()].join(", ")}`);
    const tried = triedOf(chargers, profile, read.data);
    if (!tried.ok) return failure(tried.reason);
    if (action != null && topic == null) return publishLine(tried.instance, action, input, now());
    if (topic != null && action == null) return decodeLine(tried.telemetryMap, tried.memory, topic, payload);
    return failure("either an action or a topic with its payload");
  };
}

function triedOf(chargers: Map<string, Tried>, profile: Profile, { params }: TryLine): Tried {
  const key = JSON.stringify([profile.profile, Object.entries(params).toSorted(byName)]);
  const known = chargers.get(key);
  if (known !== undefined) return known;
  const binding = instantiateProfile(profile, params);
  const fresh: Tried = binding.ok
    ? { ...binding, telemetryMap: compileTelemetry(binding.instance), memory: new Map() }
    : binding;
  chargers.set(key, fresh);
  return fresh;
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);

function publishLine(
  instance: ProfileInstance,
  action: string,
  input: TryLine["input"],
  now: Instant,
): string {
  const asked = readAction(action, input);
  if (typeof asked === "string") return failure(asked);
  const answer = publishesFor(asked, instance, now);
  if (!answer.ok) return failure(answer.reason);
  const { publishes, note } = answer;
  return JSON.stringify(note === null ? { publishes } : { publishes, note });
}

function decodeLine(
  telemetryMap: TelemetryMap,
  memory: Memory,
  topic: string,
  payload: TryLine["payload"],
): string {
  if (payload === undefined) return failure("a topic comes with its payload, as a text");
  if (!isWritable(payload)) return failure("a payload whose numbers JSON can hold, or its text in quotes");
  // A JSON payload without quotes around it stands for its text.
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  const { signals, answer } = decodeMessage(telemetryMap, memory, topic, text);
  const output = { means: whole(signals) };
  return JSON.stringify(answer === null ? output : { ...output, answer });
}

/** False: a number too large for JSON.stringify. Without recursion, whatever the depth. */
function isWritable(payload: unknown): boolean {
  const left = [payload];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === "number" && !Number.isFinite(one)) return false;
    if (typeof one === "object" && one !== null) left.push(...Object.values(one));
  }
  return true;
}

/** The action with its input. A text: what is missing. */
function readAction(kind: string, input: TryLine["input"]): Action | string {
  const number = (name: string): number | null => {
    const value = Object.hasOwn(input, name) ? input[name] : undefined;
    return typeof value === "number" && Number.isFinite(value) ? value : null;
  };
  const missing = (name: string): string => `${kind} needs input.${name}, a number`;
  const lastCurrentA = number("lastCurrentA");
  if (lastCurrentA === null && (input["lastCurrentA"] ?? null) !== null) return missing("lastCurrentA");
  switch (kind) {
    case "acquire":
    case "pause":
    case "release":
    case "reboot":
      return { kind };
    case "setCurrent": {
      const currentA = number("currentA");
      return currentA === null ? missing("currentA") : { kind, currentA };
    }
    case "setPower": {
      const powerW = number("powerW");
      return powerW === null ? missing("powerW") : { kind, powerW };
    }
    case "resume":
      return { kind, lastCurrentA };
    case "setPhases": {
      const phases = number("phases");
      return phases === null ? missing("phases") : { kind, phases, lastCurrentA };
    }
    default:
      return `unknown action ${JSON.stringify(kind)}; there are ${ACTIONS}`;
  }
}
