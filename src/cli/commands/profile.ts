import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

import { bestVerdictOf } from "../../chargers/profile/acceptance.ts";
import { describeProfile } from "../../chargers/profile/describe.ts";
import { trial } from "../../chargers/profile/tryProfile.ts";
import { explain, nearest } from "../../config/explain.ts";
import { type LoadedProfiles, loadProfiles } from "../../daemon/loadProfiles.ts";
import type { Instant } from "../../domain/units.ts";
import { configFile } from "../configuration.ts";
import { complain, fail, type ExitCode, say, type Verb } from "../output.ts";

/** Places of a site's own profiles. */
interface ProfilePlaces {
  /** Value of `--profiles`. */
  readonly folder: string | undefined;
  /** Value of `--config`. Its profiles are in the folder `profiles` beside it. */
  readonly config: string | undefined;
}

/** `profile try`: answers each JSON line of standard input with one, at once. */
async function profileTry(places: ProfilePlaces, now: () => Instant): Promise<ExitCode> {
  const profiles = profilesFrom(places);
  if (profiles === null) return 2;
  const answer = trial(profiles, now);
  for await (const line of linesOf(process.stdin.setEncoding("utf8"))) {
    // `trim` removes a byte order mark too.
    const text = line.trim();
    if (text !== "") say(answer(text));
  }
  return 0;
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Splits at line feeds only. JSON text may contain other line separators. */
async function* linesOf(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let begun = "";
  for await (const text of texts) {
    const [first = "", ...more] = text.split("\n");
    begun += first;
    for (const next of more) {
      yield begun;
      begun = next;
    }
  }
  yield begun;
}

/** `profile list`: prints one line for each profile. */
function profileList(places: ProfilePlaces): ExitCode {
  const profiles = profilesFrom(places);
  if (profiles === null) return 2;
  const longest = Math.max(...[...profiles.keys()].map((name) => name.length));
  for (const profile of profiles.values()) {
    const title = `${profile.title}${profile.experimental ? " (experimental)" : ""}`;
    say(`${profile.profile.padEnd(longest)}  ${bestVerdictOf(profile).padEnd("measured".length)}  ${title}`);
  }
  return 0;
}

/** `profile show`: prints the knowledge that an integrator needs before the first vehicle. */
function profileShow(places: ProfilePlaces, name: string): ExitCode {
  const profiles = profilesFrom(places);
  if (profiles === null) return 2;
  const profile = profiles.get(name);
  if (profile === undefined) {
    const similar = nearest(name, [...profiles.keys()]);
    return fail(
      2,
      `there is no profile ${name}; ${similar === null ? "" : `did you mean ${similar}? `}profile list names them`,
    );
  }
  say(describeProfile(profile));
  return 0;
}

/** Loads the profiles. Mistakes in a site's own ones are printed; the others work. Null: no such folder. */
function profilesFrom({ folder, config }: ProfilePlaces): LoadedProfiles["profiles"] | null {
  if (folder !== undefined && !isFolder(folder)) {
    const isThere = existsSync(folder);
    complain(
      `--profiles ${folder}: ${isThere ? "this is no folder; name the one it is in" : "there is no such folder"}`,
    );
    return null;
  }
  const file = configFile(config);
  const { profiles, broken } = loadProfiles(
    folder ?? (file === undefined ? null : join(dirname(file), "profiles")),
  );
  for (const { file: broke, mistakes } of broken) complain(explain(mistakes, broke));
  return profiles;
}

const TRY_HELP = `
Action to publishes:
  {"profile":"go-e-v2","params":{"serial":"000001"},"action":"setCurrent","input":{"currentA":13.7}}
  actions: acquire, setCurrent {currentA}, setPower {powerW}, pause, resume {lastCurrentA}, release, setPhases {phases};
  params may have maxCurrentA, phases and nominalV, the charger's own limits. A level below its minimum becomes a pause.
  An answer without publishes has a note with the reason. An action that the charger cannot do is an error.

Message to its meaning:
  {"profile":"go-e-v2","params":{"serial":"000001"},"topic":"go-eCharger/000001/amp","payload":"13"}
  Earlier lines with the same profile and params are remembered: some values are spread over several messages.

A line that cannot be answered gets {"error":"..."}. The next lines are answered.`;

/** `profile list`, `show` and `try`. */
export const profileVerb: Verb = (verb, { config, now, done }) => {
  const profile = verb.option(
    "--profiles <folder>",
    "folder with your own profiles, NAME.yaml each; default: the folder profiles beside the configuration",
  );
  const own = (): ProfilePlaces => ({
    folder: profile.opts<{ profiles?: string }>().profiles,
    config: config(),
  });
  profile
    .command("list")
    .description(
      "list the profiles: name, how far its commands are verified (measured, reported, sent), title",
    )
    .action(() => {
      done(profileList(own()));
    });
  profile
    .command("show")
    .description(
      "show parameters, set-up on the charger, limits, pace, behaviour without the gateway, and open questions",
    )
    .argument("<name>", "name of the profile")
    .action((name: string) => {
      done(profileShow(own(), name));
    });
  profile
    .command("try")
    .description("run a profile on recorded traffic, without a broker: a JSON line in, a JSON line out")
    .requiredOption("--stdin", "read the lines from standard input")
    .addHelpText("after", TRY_HELP)
    .action(async () => {
      done(await profileTry(own(), now));
    });
};
