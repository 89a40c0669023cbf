import type { Bound } from "./bind.ts";
import { NATIVE_LEAVES } from "./nativeHear.ts";
import { readingsOf, topicsOf } from "./readings.ts";
import { placeholdersIn, renderText } from "./render.ts";
import type { Profile } from "./schema.ts";

/** Topic templates that a charger of this make is commanded on. */
export const publishedTemplates = ({ actions, keepalive }: Profile): readonly string[] =>
  [...Object.values(actions).flatMap((all) => all ?? []), ...keepalive].map(({ topic }) => topic);

/** Topic templates that are listened on. */
export const subscribedTemplates = (profile: Profile): readonly string[] => {
  const { telemetry, alive, ready, reports, results, nativePayloads } = profile;
  return [
    ...(nativePayloads ? NATIVE_LEAVES.map((leaf) => `{prefix}/{site}/chargers/{charger}/${leaf}`) : []),
    ...readingsOf(telemetry).flatMap(({ readings }) => readings.flatMap(topicsOf)),
    ...[alive, ready, ...Object.values(reports)].flatMap((one) => (one === undefined ? [] : [one.topic])),
    ...results.map(({ topic }) => topic),
  ];
};

/** Topics of one charger, each once; those of a parameter that is left out are left out as well. */
export function topicsFor({ profile, values }: Bound): {
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
