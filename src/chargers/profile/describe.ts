import type { Millis } from "../../domain/units.ts";
import { publishedTemplates, subscribedTemplates } from "./topics.ts";
import { describeReach, reachOf } from "./acceptance.ts";
import type { Profile } from "./schema.ts";

/** All that an integrator has to know of a profile, as text for people. */
export function describeProfile(profile: Profile): string {
  const { title, experimental, setup, ifWeDie, uncertain } = profile;
  const parts: readonly (readonly [string, readonly string[]])[] = [
    ["Parameters", parameters(profile)],
    ["On the charger", setup],
    ["Limits", limits(profile)],
    ["Pace", pace(profile)],
    ["When the gateway dies", [ifWeDie]],
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
      const source = found === undefined ? "" : ` Left out, it is looked for in ${found.in}.`;
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
    ? "current.min (6 A unless told) to current.max of the configuration"
    : `${min} A to ${max} A unless configured`;
  const watts =
    power === undefined
      ? "W are turned into A with the phases and voltage of the charger"
      : `W as they are, up to ${power.max} W${power.discharge === undefined ? "" : `, and back to -${power.discharge} W`}`;
  return [
    allOrNothing
      ? `on or off: less than the charger's maximum is a pause, ${max} A unless configured, ${ceiling} A at most`
      : `${range}, ${ceiling} A at most, in steps of ${step} A; less is a pause`,
    watts,
    `to the charger a limit of 0 would be: ${zero}; one below its minimum: ${belowMinimum}. Neither is ever asked for`,
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
      ? `a setpoint is said again every ${serialized(refresh.every)}${refresh.onPlugIn ? ", and when a vehicle is plugged in" : ""}`
      : `each write wears ${rate.wear}: a setpoint is said when it changes, when the charger comes back, and up to three times more where it was not taken`,
    ...(rate.minInterval > 0 ? [`at least ${serialized(rate.minInterval)} between two setpoints`] : []),
    ...(rate.writesPerHour === undefined ? [] : [`at most ${rate.writesPerHour} setpoints an hour`]),
    ...(actions.setPhases === undefined
      ? []
      : [
          `at least ${serialized(every)} between two switches of phases, with ${serialized(settle)} of pause before and ${serialized(deadTime)} after each`,
        ]),
    ...keepalive.map(({ every, topic }) => `${topic} every ${serialized(every)}`),
    ...(deviceTimeout === undefined
      ? []
      : [`after ${serialized(deviceTimeout.after)} without us: ${deviceTimeout.effect}`]),
  ];
}

/** Every topic that a charger of this make is commanded on. */
const published = (profile: Profile): readonly string[] => topicsIn(publishedTemplates(profile), profile);

/** Every topic that is listened on. */
const subscribed = (profile: Profile): readonly string[] => topicsIn(subscribedTemplates(profile), profile);

/** Each once, with all that a name chosen by a parameter may stand for. */
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
  describeReach(reachOf(profile)),
  ...(profile.confirmedBy === undefined
    ? []
    : [
        `${profile.confirmedBy.signal} repeats the setpoint within ${serialized(profile.confirmedBy.within)}`,
      ]),
];

const serialized = (span: Millis): string => (span % 1000 === 0 ? `${span / 1000} s` : `${span} ms`);
