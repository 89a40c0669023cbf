import { type Instant, iso, type Millis } from "../../domain/units.ts";
import { topicFault, NATIVE_LEAVES } from "../native/messages.ts";
import type { ProfileInstance } from "./instance.ts";
import { allowedCurrent, allowedPower, chargesNever, maxCurrent, onTheWire } from "./level.ts";
import { placeholdersIn, renderJson, renderText, type Values } from "./render.ts";
import type { Profile } from "./schema.ts";
import type { ActionName, PublishTemplate } from "./sections.ts";
import { readingsOf, topicsOf } from "./signals.ts";

/** An action at a charger. The kinds are those of `setpointd profile try`. */
export type Action =
  | { readonly kind: "acquire" | "pause" | "release" | "reboot" }
  | { readonly kind: "setCurrent"; readonly currentA: number }
  /** `isDecided`: never a pause, however low. */
  | { readonly kind: "setPower"; readonly powerW: number; readonly isDecided?: true }
  /** Null: the charger kept its limit. Some makes cannot resume without a current. */
  | { readonly kind: "resume"; readonly lastCurrentA: number | null }
  | { readonly kind: "setPhases"; readonly phases: number; readonly lastCurrentA: number | null };

/** A message to a charger. QoS 1, never retained: a retained command would be obeyed again after a reboot. */
export interface Publish {
  readonly topic: string;
  readonly payload: string;
  readonly qos: 1;
  readonly retain: false;
}

export type Publishes =
  /** In this order. Empty: this charger needs no message, and `note` gives the reason. */
  | { readonly ok: true; readonly publishes: readonly Publish[]; readonly note: string | null }
  /** The profile cannot do it. */
  | { readonly ok: false; readonly reason: string };

/** All publishes of an action. A level below the minimum becomes a pause. */
export function publishesFor(action: Action, instance: ProfileInstance, now: Instant): Publishes {
  switch (action.kind) {
    case "acquire":
      return renderAction(instance, "acquire", [], now, "no message is needed before the first setpoint");
    case "setCurrent":
      return atCurrent(instance, "setCurrent", action.currentA, now);
    case "setPower":
      return atPower(instance, action.powerW, action.isDecided === true, now);
    case "pause":
    case "release":
    case "reboot":
      return renderAction(instance, action.kind, [], now, null);
    case "resume":
      return resumed(instance, action.lastCurrentA, now);
    case "setPhases":
      return onPhases(instance, action.phases, action.lastCurrentA, now);
  }
}

/**
 * The messages of one action. `whyNone`: the reason why no message is needed; null: no message means that it
 * cannot be done.
 */
function renderAction(
  instance: ProfileInstance,
  name: ActionName,
  level: readonly (readonly [string, string | number])[],
  now: Instant,
  whyNone: string | null,
): Publishes {
  const { profile } = instance;
  const all = profile.actions[name] ?? [];
  const templates = all.filter(({ needs }) => needs === undefined || instance.values.get(needs) !== null);
  if (templates.length === 0) {
    if (whyNone !== null && all.length === 0) return { ok: true, publishes: [], note: whyNone };
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
    .filter((template) => isNeeded(template, full, instance))
    .map((template) => rendered(template, full));
  const fault = publishes.map(({ topic }) => topicFault(topic)).find((reason) => reason !== null);
  return fault === undefined ? { ok: true, publishes, note: null } : { ok: false, reason: fault };
}

/** Adds the values that the charger reported, or their defaults. Null: not known. */
function withReports(values: Values, { profile, reported }: ProfileInstance): Values {
  const known = Object.entries(profile.reports).map(([name, { otherwise }]) => {
    const preset = otherwise === undefined ? null : renderText(otherwise, values);
    return [name, reported.get(name) ?? preset] as const;
  });
  return new Map([...values, ...known]);
}

/** False: a value is not known, or the message would overwrite a setting of the owner. */
const isNeeded = (
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
  return renderAction(instance, name, [["current", onTheWire(amperes, instance)]], now, NOTHING_TO_RESUME);
}

const NOTHING_TO_RESUME = "no message is needed to resume";

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
  return renderAction(instance, "setPower", sides, now, null);
}

function resumed(instance: ProfileInstance, last: number | null, now: Instant): Publishes {
  if (last !== null) return atCurrent(instance, "resume", last, now);
  if (placeholdersIn(instance.profile.actions.resume).includes("current"))
    return {
      ok: false,
      reason: `${instance.profile.profile} needs a current to resume: lastCurrentA`,
    };
  return renderAction(instance, "resume", [], now, NOTHING_TO_RESUME);
}

function onPhases(instance: ProfileInstance, phases: number, last: number | null, now: Instant): Publishes {
  const { profile } = instance;
  const payloads = new Map<string, string | number>(Object.entries(profile.phases ?? {}));
  const phasesPayload = payloads.get(String(phases));
  if (phasesPayload === undefined && payloads.size > 0)
    return {
      ok: false,
      reason: `${profile.profile} can be switched to ${[...payloads.keys()].join(" or ")} phases`,
    };
  const needs = placeholdersIn(profile.actions.setPhases ?? []).includes("current");
  const amperes = allowedCurrent(last ?? leastCurrent(instance), instance);
  if (needs && amperes === null)
    return {
      ok: false,
      reason: `${profile.profile} switches phases together with a current: lastCurrentA, at least its minimum`,
    };
  return renderAction(
    instance,
    "setPhases",
    [
      ["phases", phasesPayload ?? ""],
      ["current", amperes === null ? "" : onTheWire(amperes, instance)],
    ],
    now,
    null,
  );
}

/**
 * Current for a switch of phases without a given current: the least that any vehicle charges with (IEC
 * 61851).
 */
const leastCurrent = ({ profile }: ProfileInstance): number => Math.max(profile.limits.current.min, 6);

/** Renders a template. */
const rendered = (
  { topic, text, json }: Omit<PublishTemplate, "unless" | "needs">,
  values: Values,
): Publish => ({
  topic: renderText(topic, values),
  payload: text === undefined ? JSON.stringify(renderJson(json ?? null, values)) : renderText(text, values),
  qos: 1,
  retain: false,
});

/** The time in three formats. */
const moment = (now: Instant): readonly (readonly [string, string | number])[] => [
  ["now.unix", Math.floor(now / 1000)],
  ["now.ms", now],
  ["now.iso", iso(now)],
];

/** A message that must be repeated so that the charger obeys, or reports. */
export interface Keepalive {
  readonly every: Millis;
  /** True: it only requests telemetry. */
  readonly asksOnly: boolean;
  /** The message for a time. `first`: the first after a connection may differ. */
  readonly publishAt: (now: Instant, first: boolean) => Publish;
}

/** Keepalives of one charger. Chargers of one gateway may share a topic: a message is sent once. */
export const keepalivesOf = ({ profile, values }: ProfileInstance): readonly Keepalive[] =>
  profile.keepalive.map(({ every, topic, text, json, first: opening, asksOnly }) => ({
    every,
    asksOnly,
    publishAt: (now, first) => {
      const payload = first && opening !== undefined ? { text: opening, json: undefined } : { text, json };
      return rendered(
        { topic, ...payload },
        new Map<string, string | number | null>([...values, ...moment(now)]),
      );
    },
  }));

/** Keepalives that keep the charger obeying. */
export const commandingOf = (instance: ProfileInstance): readonly Keepalive[] =>
  keepalivesOf(instance).filter(({ asksOnly }) => !asksOnly);

/** Topic templates of commands. */
export const publishedTemplates = ({ actions, keepalive }: Profile): readonly string[] =>
  [...Object.values(actions).flatMap((all) => all ?? []), ...keepalive].map(({ topic }) => topic);

/** Topic templates of subscriptions. */
export const subscribedTemplates = (profile: Profile): readonly string[] => {
  const { telemetry, alive, ready, reports, results, nativePayloads } = profile;
  return [
    ...(nativePayloads ? NATIVE_LEAVES.map((leaf) => `{prefix}/{site}/chargers/{charger}/${leaf}`) : []),
    ...readingsOf(telemetry).flatMap(({ readings }) => readings.flatMap(topicsOf)),
    ...[alive, ready, ...Object.values(reports)].flatMap((one) => (one === undefined ? [] : [one.topic])),
    ...results.map(({ topic }) => topic),
  ];
};

/** Topics of one charger, each once, without those of an absent optional parameter. */
export function topicsFor({ profile, values }: ProfileInstance): {
  readonly published: readonly string[];
  readonly subscribed: readonly string[];
} {
  const topicsIn = (templates: readonly string[]): readonly string[] => [
    ...new Set(
      templates
        .filter((template) => placeholdersIn(template).every((name) => (values.get(name) ?? null) !== null))
        .map((template) => renderText(template, values)),
    ),
  ];
  return {
    published: topicsIn(publishedTemplates(profile)),
    subscribed: topicsIn(subscribedTemplates(profile)),
  };
}
