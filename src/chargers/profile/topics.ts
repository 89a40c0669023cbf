import type { Instant, Millis } from "../../domain/units.ts";
import type { ProfileInstance } from "./instance.ts";
import { moment, type Publish, rendered } from "./publishes.ts";
import { readingsOf, topicsOf } from "./readings.ts";
import { placeholdersIn, renderText } from "./render.ts";
import type { Profile } from "./schema.ts";
import { NATIVE_LEAVES } from "./telemetryMap.ts";

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
  const rendered = (templates: readonly string[]): readonly string[] => [
    ...new Set(
      templates
        .filter((template) => placeholdersIn(template).every((name) => (values.get(name) ?? null) !== null))
        .map((template) => renderText(template, values)),
    ),
  ];
  return {
    published: rendered(publishedTemplates(profile)),
    subscribed: rendered(subscribedTemplates(profile)),
  };
}
