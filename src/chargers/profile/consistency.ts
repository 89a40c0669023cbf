import { expected as expectedOf, readParameter } from "./instance.ts";
import { readingsOf, topicsOf } from "./signals.ts";
import { placeholdersIn } from "./render.ts";
import { fields, type Profile } from "./schema.ts";
import { telemetryMistakes, type Inconsistency, topicFaults, unknownNames } from "./telemetryConsistency.ts";

const MOMENT = ["now.unix", "now.ms", "now.iso"];
/** Values that the engine provides besides the parameters, by action. */
const VALUES: Readonly<Record<keyof Profile["actions"], readonly string[]>> = {
  acquire: [],
  setCurrent: ["current"],
  setPower: ["power", "import", "export"],
  pause: [],
  resume: ["current"],
  release: ["maxCurrent"],
  setPhases: ["phases", "current"],
  reboot: [],
};

/** Messages that must fit into one time-out of the device, so that a lost one does no harm. */
const MARGIN = 3;

/** Mistakes between members: unknown names, time-outs that would strike between two messages. */
const mistakesIn = (profile: Profile): readonly Inconsistency[] => [
  ...parameterMistakes(profile),
  ...templateMistakes(profile),
  ...telemetryMistakes(profile),
  ...confirmationMistakes(profile),
  ...timingMistakes(profile),
  ...limitMistakes(profile),
  ...echoMistakes(profile),
];

function templateMistakes(profile: Profile): readonly Inconsistency[] {
  const { alive } = profile;
  const own = [...Object.keys(profile.params), ...Object.keys(profile.names)];
  const check = (
    path: readonly PropertyKey[],
    { topic, needs, ...rest }: { topic: string; needs?: string | undefined },
    more: readonly string[],
  ) => [
    ...unknownNames(path, { topic, ...rest }, [...own, ...more]),
    ...topicFaults([...path, "topic"], topic, profile, "published"),
    ...missingNeeds(path, needs, profile),
    ...optionalNames([...path, "topic"], topic, profile),
  ];
  const reported = Object.keys(profile.reports);
  const actions = Object.entries(VALUES).flatMap(([action, values]) =>
    (profile.actions[action as keyof typeof VALUES] ?? []).flatMap((template, index) =>
      check(["actions", action, index], template, [...values, ...reported, ...MOMENT]),
    ),
  );
  return [
    ...actions,
    ...reportMistakes(profile),
    ...profile.keepalive.flatMap((template, index) => check(["keepalive", index], template, MOMENT)),
    ...profile.results.flatMap(({ topic }, index) => [
      ...unknownNames(["results", index], topic, own),
      ...topicFaults(["results", index, "topic"], topic, profile, "answered"),
    ]),
    ...unknownNames(["alive"], alive, own),
    ...(alive === undefined ? [] : topicFaults(["alive", "topic"], alive.topic, profile, "subscribed")),
  ];
}

/** Unknown names in reports, and names of reports that do not exist. */
function reportMistakes({
  reports,
  params,
  names,
  confirmedBy,
  actions,
  ownLimit,
}: Profile): readonly Inconsistency[] {
  const own = [...Object.keys(params), ...Object.keys(names)];
  const known = Object.keys(reports);
  const wanted = Object.values(actions).flatMap((all) =>
    (all ?? []).flatMap(({ unless = {} }) => Object.keys(unless)),
  );
  const missing = [...wanted, confirmedBy?.release, ownLimit].filter(
    (name) => name !== undefined && !known.includes(name),
  );
  return [
    ...Object.entries(reports).flatMap(([name, { topic, otherwise }]) => [
      ...unknownNames(["reports", name, "topic"], topic, own),
      ...unknownNames(["reports", name, "otherwise"], otherwise, [...own, "maxCurrent"]),
    ]),
    ...missing.map((name) => ({ path: ["reports"], message: `${name}, which is used by its name` })),
  ];
}

const missingNeeds = (path: readonly PropertyKey[], needs: string | undefined, { params }: Profile) =>
  needs === undefined || (Object.hasOwn(params, needs) && params[needs]?.optional === true)
    ? []
    : [{ path: [...path, "needs"], message: "an optional parameter" }];

/** The topic of a command must not depend on an optional parameter. */
const optionalNames = (path: readonly PropertyKey[], topic: string, { params }: Profile) =>
  placeholdersIn(topic)
    .filter((name) => Object.hasOwn(params, name) && params[name]?.optional === true)
    .map((name) => ({ path, message: `a topic without {${name}}, which may be left out` }));

function parameterMistakes({ params, names }: Profile): readonly Inconsistency[] {
  const wrong = Object.entries(names).filter(([, { of }]) => !Object.hasOwn(params, of));
  const refused = Object.entries(params).filter(
    ([, parameter]) =>
      parameter.default !== undefined && readParameter(parameter, parameter.default) === null,
  );
  const found = Object.entries(params).filter(
    ([, parameter]) => parameter.found !== undefined && !Object.hasOwn(params, parameter.found.in),
  );
  return [
    ...found.map(([name]) => ({
      path: ["params", name, "found", "in"],
      message: `a parameter: ${Object.keys(params).join(", ")}`,
    })),
    ...wrong.map(([name]) => ({
      path: ["names", name, "of"],
      message: `a parameter: ${Object.keys(params).join(", ")}`,
    })),
    ...refused.map(([name, parameter]) => ({
      path: ["params", name, "default"],
      message: expectedOf(parameter),
    })),
  ];
}

function confirmationMistakes({ confirmedBy, telemetry, nativePayloads }: Profile): readonly Inconsistency[] {
  if (confirmedBy === undefined || nativePayloads || telemetry[confirmedBy.signal] !== undefined) return [];
  const reported = (["requestedA", "limitA"] as const).filter((signal) => telemetry[signal] !== undefined);
  const expected =
    reported.length === 0
      ? "no confirmedBy, or telemetry that reports it"
      : `${reported.join(" or ")}, which telemetry reports`;
  return [{ path: ["confirmedBy", "signal"], message: expected }];
}

function timingMistakes({ deviceTimeout, refresh, keepalive }: Profile): readonly Inconsistency[] {
  if (deviceTimeout === undefined) return [];
  const soonest = Math.min(refresh.every, ...keepalive.map(({ every }) => every));
  return soonest * MARGIN <= deviceTimeout.after
    ? []
    : [
        {
          path: ["deviceTimeout", "after"],
          message: `at least ${MARGIN} times refresh.every or a keepalive`,
        },
      ];
}

function limitMistakes(profile: Profile): readonly Inconsistency[] {
  const { limits, actions, phases } = profile;
  const { min, max, ceiling = max } = limits.current;
  const all: Inconsistency[] = [...stepMistakes(profile)];
  if (min > max || max > ceiling)
    all.push({ path: ["limits", "current"], message: "min, max and ceiling in rising order" });
  if ((limits.power === undefined) !== (actions.setPower === undefined))
    all.push({ path: ["limits", "power"], message: "limits.power together with actions.setPower" });
  if ((phases === undefined) !== (actions.setPhases === undefined))
    all.push({ path: ["phases"], message: "phases together with actions.setPhases" });
  return all;
}

const isStepOf = (min: number, step: string | number): boolean =>
  typeof step === "number" && step > 0 && isWhole(min / step);

function stepMistakes({ limits: { current, power }, names }: Profile): readonly Inconsistency[] {
  const { min, max, step, scale, allOrNothing } = current;
  const all: Inconsistency[] = [];
  const add = (of: "current" | "power", key: "step" | "stepBy" | "scale", message: string): void =>
    void all.push({ path: ["limits", of, key], message });
  const steps = current.stepBy === undefined ? [] : Object.values(names[current.stepBy]?.is ?? {});
  if (current.stepBy !== undefined && !(steps.length > 0 && steps.every((one) => isStepOf(min, one))))
    add("current", "stepBy", `one of names that stands for steps that min, ${min} A, is a multiple of`);
  if (step > max) add("current", "step", `at most max, ${max} A`);
  else if (!allOrNothing && !isWhole(min / step))
    add("current", "step", `a step that min, ${min} A, is a multiple of`);
  if (scale !== 1 && !isWhole(min * scale))
    add("current", "scale", `units of which min, ${min} A, is a whole number`);
  if (power !== undefined && power.step > power.max) add("power", "step", `at most max, ${power.max} W`);
  else if (power !== undefined && !isWhole(power.min / power.step))
    add("power", "step", `a step that min, ${power.min} W, is a multiple of`);
  return all;
}

/** An echo needs a topic of an action and a topic of the telemetry. Otherwise it has no effect. */
function echoMistakes({ echoes, actions, telemetry }: Profile): readonly Inconsistency[] {
  const published = new Set(Object.values(actions).flatMap((all) => (all ?? []).map(({ topic }) => topic)));
  const read = new Set(readingsOf(telemetry).flatMap(({ readings }) => readings.flatMap(topicsOf)));
  return echoes.flatMap((echo, index) => [
    ...(published.has(echo.told)
      ? []
      : [{ path: ["echoes", index, "told"], message: "a topic of an action" }]),
    ...(read.has(echo.shown)
      ? []
      : [{ path: ["echoes", index, "shown"], message: "a topic that telemetry reads" }]),
  ]);
}

/** Tolerance for binary fractions: 6 / 0.1 is 59.99999999999999. */
const CLOSE = 1e-6;

const isWhole = (value: number): boolean => Math.abs(value - Math.round(value)) < CLOSE;

/** A profile as data: `config/profiles/NAME.yaml`. Safety is a matter of the engine, not of the file. */
export const profileFile = fields.superRefine((profile, context) => {
  for (const { path, message } of mistakesIn(profile))
    context.addIssue({ code: "custom", path: [...path], message });
});
