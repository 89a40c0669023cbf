import { STATES } from "./means.ts";
import { isList, readingsOf } from "./readings.ts";
import { placeholdersIn } from "./render.ts";
import type { Profile } from "./schema.ts";

interface Inconsistency {
  readonly path: readonly PropertyKey[];
  /** What would be right. */
  readonly message: string;
}

const MOMENT = ["now.unix", "now.ms", "now.iso"];
/** What the engine puts in beside the parameters, by action. */
const VALUES: Readonly<Record<keyof Profile["actions"], readonly string[]>> = {
  acquire: [],
  setCurrent: ["current"],
  setPower: ["power", "import", "export"],
  pause: [],
  resume: ["current"],
  release: ["maxCurrent"],
  setPhases: ["phases", "current"],
};

/** The part of a device time-out that may pass between two messages that hold it off. */
const MARGIN = 3;

/** What each member alone cannot tell: names that nobody defines, time-outs that would strike. */
export const mistakesIn = (profile: Profile): readonly Inconsistency[] => [
  ...templateMistakes(profile),
  ...telemetryMistakes(profile),
  ...timingMistakes(profile),
  ...limitMistakes(profile),
];

function templateMistakes(profile: Profile): readonly Inconsistency[] {
  const own = [...Object.keys(profile.params), ...Object.keys(profile.names)];
  const check = (path: readonly PropertyKey[], used: unknown, more: readonly string[]) =>
    unknownNames(path, used, [...own, ...more]);
  const actions = Object.entries(VALUES).flatMap(([action, values]) =>
    (profile.actions[action as keyof typeof VALUES] ?? []).flatMap((template, index) =>
      check(["actions", action, index], template, [...values, ...MOMENT]),
    ),
  );
  const names = Object.entries(profile.names).flatMap(([name, { of }]) =>
    of in profile.params
      ? []
      : [{ path: ["names", name, "of"], message: `a parameter: ${Object.keys(profile.params).join(", ")}` }],
  );
  return [
    ...names,
    ...actions,
    ...profile.keepalive.flatMap((template, index) => check(["keepalive", index], template, MOMENT)),
    ...profile.results.flatMap((result, index) => check(["results", index], result, [])),
    ...check(["alive"], profile.alive, []),
  ];
}

const unknownNames = (
  path: readonly PropertyKey[],
  used: unknown,
  known: readonly string[],
): readonly Inconsistency[] =>
  placeholdersIn(used)
    .filter((name) => !known.includes(name))
    .map((name) => ({ path, message: `{${name}} to be one of: ${known.join(", ")}` }));

function telemetryMistakes(profile: Profile): readonly Inconsistency[] {
  const known = [...Object.keys(profile.params), ...Object.keys(profile.names)];
  return readingsOf(profile.telemetry).flatMap(({ signal, composed, readings }) => {
    const path = ["telemetry", signal];
    const all: Inconsistency[] = [...unknownNames(path, readings, known)];
    const say = (message: string): void => void all.push({ path, message });
    if ("each" in composed && !isList(signal)) say("one reading: only currentsA and voltagesV are lists");
    for (const reading of readings) {
      if ((signal === "vehicleId") !== (reading.kind !== undefined))
        say("a kind for vehicleId, and for it only");
      if ((reading.path ?? "").includes("#") !== (reading.index !== undefined))
        say("[#] in path together with index");
      const words = Object.values(reading.map ?? {}).filter((word) => word !== null);
      if (signal === "state" && !words.every((word) => STATES.some((state) => state === word)))
        say(`states of: ${STATES.join(", ")}`);
    }
    return all;
  });
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

function limitMistakes({ limits, actions, phases }: Profile): readonly Inconsistency[] {
  const { min, max, ceiling = max } = limits.current;
  const all: Inconsistency[] = [];
  if (min > max || max > ceiling)
    all.push({ path: ["limits", "current"], message: "min, max and ceiling in rising order" });
  if ((limits.power === undefined) !== (actions.setPower === undefined))
    all.push({ path: ["limits", "power"], message: "limits.power together with actions.setPower" });
  if ((phases === undefined) !== (actions.setPhases === undefined))
    all.push({ path: ["phases"], message: "phases together with actions.setPhases" });
  return all;
}
