import { type Instant, iso } from "../../domain/units.ts";
import type { ProfileInstance } from "./instance.ts";
import { allowedCurrent, allowedPower, chargesNever, maxCurrent, onTheWire } from "./level.ts";
import { placeholdersIn, renderJson, renderText, type Values, topicFault } from "./render.ts";
import type { ActionName, PublishTemplate } from "./sections.ts";

/** What a charger is to do, in the words of DESIGN 6.5. */
export type Action =
  | { readonly kind: "acquire" | "pause" | "release" }
  | { readonly kind: "setCurrent"; readonly currentA: number }
  /** `isDecided`: it is no pause, however little it is by what is known here. */
  | { readonly kind: "setPower"; readonly powerW: number; readonly isDecided?: true }
  /** Null: the charger kept its limit; only some can do without being told. */
  | { readonly kind: "resume"; readonly lastCurrentA: number | null }
  | { readonly kind: "setPhases"; readonly phases: number; readonly lastCurrentA: number | null };

/** One message to a charger. QoS 1, and never retained: what is retained is obeyed again after a reboot. */
export interface Publish {
  readonly topic: string;
  readonly payload: string;
  readonly qos: 1;
  readonly retain: false;
}

export type Publishes =
  /** In this order. None: there is nothing to say to this make, and `note` tells why that is enough. */
  | { readonly ok: true; readonly publishes: readonly Publish[]; readonly note: string | null }
  /** This make cannot do it. */
  | { readonly ok: false; readonly reason: string };

/** What to publish so that the charger does it. Levels below the minimum become a pause. */
export function publishesFor(action: Action, instance: ProfileInstance, now: Instant): Publishes {
  switch (action.kind) {
    case "acquire":
      return said(instance, "acquire", [], now, "nothing has to be said before the first setpoint");
    case "setCurrent":
      return atCurrent(instance, "setCurrent", action.currentA, now);
    case "setPower":
      return atPower(instance, action.powerW, action.isDecided === true, now);
    case "pause":
    case "release":
      return said(instance, action.kind, [], now, null);
    case "resume":
      return resumed(instance, action.lastCurrentA, now);
    case "setPhases":
      return onPhases(instance, action.phases, action.lastCurrentA, now);
  }
}

/** Exactly the messages of one action; `enough` says why none is enough, null: none means that it cannot be done. */
function said(
  instance: ProfileInstance,
  name: ActionName,
  level: readonly (readonly [string, string | number])[],
  now: Instant,
  enough: string | null,
): Publishes {
  const { profile } = instance;
  const all = profile.actions[name] ?? [];
  const templates = all.filter(({ needs }) => needs === undefined || instance.values.get(needs) !== null);
  if (templates.length === 0) {
    if (enough !== null && all.length === 0) return { ok: true, publishes: [], note: enough };
    const why = new Map(Object.entries(profile.cannot)).get(name);
    return { ok: false, reason: `${profile.profile} cannot ${name}${why === undefined ? "" : `: ${why}`}` };
  }
  const tooLittle = placeholdersIn(templates).includes("maxCurrent") ? chargesNever(instance) : null;
  if (tooLittle !== null) return { ok: false, reason: `${profile.profile}: ${tooLittle}` };
  const values: Values = new Map<string, string | number | null>([
    ...instance.values,
    ...moment(now),
    ["maxCurrent", onTheWire(maxCurrent(instance), instance)],
    ...level,
  ]);
  const full = withReports(values, instance);
  const publishes = templates
    .filter((template) => isMeant(template, full, instance))
    .map((template) => rendered(template, full));
  const fault = publishes.map(({ topic }) => topicFault(topic)).find((words) => words !== null);
  return fault === undefined ? { ok: true, publishes, note: null } : { ok: false, reason: fault };
}

/** What the charger reported, or what stands for it; null: not known. */
function withReports(values: Values, { profile, reported }: ProfileInstance): Values {
  const known = Object.entries(profile.reports).map(([name, { otherwise }]) => {
    const preset = otherwise === undefined ? null : renderText(otherwise, values);
    return [name, reported.get(name) ?? preset] as const;
  });
  return new Map([...values, ...known]);
}

/** Without what nobody knows nothing can be sent, and some things are not sent over the owner's own. */
const isMeant = (
  { unless = {}, topic, text, json }: PublishTemplate,
  values: Values,
  { profile }: ProfileInstance,
): boolean =>
  Object.entries(unless).every(([name, value]) => values.get(name) !== value) &&
  placeholdersIn({ topic, text, json }).every(
    (name) => !Object.hasOwn(profile.reports, name) || values.get(name) !== null,
  );

function atCurrent(
  instance: ProfileInstance,
  name: "setCurrent" | "resume",
  asked: number,
  now: Instant,
): Publishes {
  const amperes = allowedCurrent(asked, instance);
  if (amperes === null) return publishesFor({ kind: "pause" }, instance, now);
  return said(instance, name, [["current", onTheWire(amperes, instance)]], now, NOTHING_TO_RESUME);
}

const NOTHING_TO_RESUME = "nothing has to be said to resume";

function atPower(instance: ProfileInstance, asked: number, isDecided: boolean, now: Instant): Publishes {
  const level = allowedPower(asked, instance, isDecided);
  if (level === null) return publishesFor({ kind: "pause" }, instance, now);
  if (level.kind === "current") return atCurrent(instance, "setCurrent", level.amperes, now);
  const { watts } = level;
  const sides = [
    ["power", watts],
    ["import", Math.max(watts, 0)],
    ["export", Math.max(-watts, 0)],
  ] as const;
  return said(instance, "setPower", sides, now, null);
}

function resumed(instance: ProfileInstance, last: number | null, now: Instant): Publishes {
  if (last !== null) return atCurrent(instance, "resume", last, now);
  if (placeholdersIn(instance.profile.actions.resume).includes("current"))
    return {
      ok: false,
      reason: `${instance.profile.profile} has to be told a current to resume: lastCurrentA`,
    };
  return said(instance, "resume", [], now, NOTHING_TO_RESUME);
}

function onPhases(instance: ProfileInstance, phases: number, last: number | null, now: Instant): Publishes {
  const { profile } = instance;
  const spelled = new Map<string, string | number>(Object.entries(profile.phases ?? {}));
  const word = spelled.get(String(phases));
  if (word === undefined && spelled.size > 0)
    return {
      ok: false,
      reason: `${profile.profile} can be switched to ${[...spelled.keys()].join(" or ")} phases`,
    };
  const needs = placeholdersIn(profile.actions.setPhases ?? []).includes("current");
  const amperes = allowedCurrent(last ?? leastOf(instance), instance);
  if (needs && amperes === null)
    return {
      ok: false,
      reason: `${profile.profile} is told phases together with amperes: lastCurrentA, at least its minimum`,
    };
  return said(
    instance,
    "setPhases",
    [
      ["phases", word ?? ""],
      ["current", amperes === null ? "" : onTheWire(amperes, instance)],
    ],
    now,
    null,
  );
}

/** Where nobody says how many amperes go with the phases: as few as any vehicle charges with (IEC 61851). */
const leastOf = ({ profile }: ProfileInstance): number => Math.max(profile.limits.current.min, 6);

/** One template with its values put in. */
export const rendered = (
  { topic, text, json }: Omit<PublishTemplate, "unless" | "needs">,
  values: Values,
): Publish => ({
  topic: renderText(topic, values),
  payload: text === undefined ? JSON.stringify(renderJson(json ?? null, values)) : renderText(text, values),
  qos: 1,
  retain: false,
});

/** The moment in the three spellings that chargers want. */
export const moment = (now: Instant): readonly (readonly [string, string | number])[] => [
  ["now.unix", Math.floor(now / 1000)],
  ["now.ms", now],
  ["now.iso", iso(now)],
];
