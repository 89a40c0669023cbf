import type { Millis } from "../../domain/units.ts";
import { publishedTemplates, subscribedTemplates } from "./publishes.ts";
import { describeBestVerdict, bestVerdictOf } from "./acceptance.ts";
import type { Profile } from "./schema.ts";

/** Everything that an integrator needs to know about a profile, as text. */
export function describeProfile(profile: Profile): string {
  const { title, experimental, setup, ifWeDie, uncertain } = profile;
  const parts: readonly (readonly [string, readonly string[]])[] = [
    ["Parameters", parameters(profile)],
    ["On the charger", setup],
    ["Limits", limits(profile)],
    ["Pace", pace(profile)],
    ["When the gateway dies", [ifWeDie]],
    ["Reboot", reboot(profile)],
    ["Published", published(profile)],
    ["Subscribed", subscribed(profile)],
    ["Verdicts", verdicts(profile)],
    ["Uncertain", uncertain],
  ];
  return [
    `${profile.profile}: ${title}${experimental ? " (experimental)" : ""}`,
    ...parts.flatMap(([heading, lines]) =>
      lines.length === 0 ? [] : ["", heading, ...lines.map((line) => `  ${line}`)],
    ),
  ].join("\n");
}

function parameters({ params }: Profile): readonly string[] {
  const own = Object.entries(params).map(
    ([name, { about, default: preset, values, form, optional, found }]) => {
      const choice = values === undefined ? "" : ` One of ${values.join(", ")}.`;
      const shape = form === undefined ? "" : ` Its form: ${form}.`;
      const absent = preset === undefined ? (optional ? "Optional." : "Required.") : `Default ${preset}.`;
      const source = found === undefined ? "" : ` If left out, it is taken from ${found.in}.`;
      return `${name}  ${about}${choice}${shape} ${absent}${source}`;
    },
  );
  return own.length === 0 ? ["none"] : own;
}

function limits({
  limits: { current, power, zero, belowMinimum },
  phases,
  actions,
  nativePayloads,
}: Profile): readonly string[] {
  const { min, max, ceiling = max, step, allOrNothing } = current;
  const range = nativePayloads
    ? "current.min (6 A by default) to current.max of the configuration"
    : `${min} A to ${max} A unless configured`;
  const watts =
    power === undefined
      ? "W are converted to A with the phases and voltage of the charger"
      : `W are sent as W, up to ${power.max} W${power.discharge === undefined ? "" : `, and back to -${power.discharge} W`}`;
  return [
    allOrNothing
      ? `on or off: less than the charger's maximum is a pause, ${max} A unless configured, ${ceiling} A at most`
      : `${range}, ${ceiling} A at most, in steps of ${step} A; less is a pause`,
    watts,
    `to the charger a limit of 0 would be: ${zero}; one below its minimum: ${belowMinimum}. Neither is ever sent`,
    phases === undefined || actions.setPhases === undefined
      ? "phases are not switched"
      : `phases can be switched to ${Object.keys(phases).join(" or ")}`,
  ];
}

function pace({
  refresh,
  rate,
  keepalive,
  deviceTimeout,
  actions,
  phaseSwitch: { every, settle, deadTime },
}: Profile): readonly string[] {
  return [
    rate.wear === "none"
      ? `a setpoint is sent again every ${formatSpan(refresh.every)}${refresh.onPlugIn ? ", and when a vehicle is plugged in" : ""}`
      : `each write wears ${rate.wear}: a setpoint is sent when it changes, when the charger comes back, and up to three times more if it was not accepted`,
    ...(rate.minInterval > 0 ? [`at least ${formatSpan(rate.minInterval)} between two setpoints`] : []),
    ...(rate.writesPerHour === undefined ? [] : [`at most ${rate.writesPerHour} setpoints an hour`]),
    ...(actions.setPhases === undefined
      ? []
      : [
          `at least ${formatSpan(every)} between two switches of phases, with ${formatSpan(settle)} of pause before and ${formatSpan(deadTime)} after each`,
        ]),
    ...keepalive.map(({ every, topic }) => `${topic} every ${formatSpan(every)}`),
    ...(deviceTimeout === undefined
      ? []
      : [`after ${formatSpan(deviceTimeout.after)} without us: ${deviceTimeout.effect}`]),
  ];
}

/** The topics of a reboot, or why there is none. */
function reboot({ actions, cannot, names }: Profile): readonly string[] {
  const topics = actions.reboot.map(({ topic }) => topic);
  if (topics.length > 0) return topicsIn(topics, { names });
  return [`not possible: ${cannot.reboot ?? "no message is known that reboots it over MQTT"}`];
}

/** Every topic that commands a charger. */
const published = (profile: Profile): readonly string[] => topicsIn(publishedTemplates(profile), profile);

/** Every topic that is subscribed. */
const subscribed = (profile: Profile): readonly string[] => topicsIn(subscribedTemplates(profile), profile);

/** Each topic once, with every value of a derived name. */
const topicsIn = (topics: readonly string[], { names }: Pick<Profile, "names">): readonly string[] => [
  ...new Set(
    Object.entries(names).reduce<readonly string[]>(
      (all, [name, { is }]) =>
        all.flatMap((topic) =>
          topic.includes(`{${name}}`)
            ? Object.values(is).map((value) => topic.replaceAll(`{${name}}`, String(value)))
            : [topic],
        ),
      topics,
    ),
  ),
];

const verdicts = (profile: Profile): readonly string[] => [
  describeBestVerdict(bestVerdictOf(profile)),
  ...(profile.confirmedBy === undefined
    ? []
    : [
        `${profile.confirmedBy.signal} repeats the setpoint within ${formatSpan(profile.confirmedBy.within)}`,
      ]),
];

const formatSpan = (span: Millis): string => (span % 1000 === 0 ? `${span / 1000} s` : `${span} ms`);
