import type { Command } from "commander";

import type { Instant } from "../core/units.ts";
import { TRY_HELP } from "./help.ts";
import type { ExitCode } from "./outcome.ts";
import { profileList, type ProfilePlaces, profileShow, profileTry } from "./profile.ts";

/** `profile list`, `show` and `try`. `configName`: what `-c` named. */
export function profileCommands(
  program: Command,
  configName: () => string | undefined,
  now: () => Instant,
  done: (code: ExitCode) => void,
): void {
  const profile = program
    .command("profile")
    .description("charger makes: how each speaks MQTT, what it needs, and what it can be held against")
    .option(
      "--profiles <folder>",
      "profiles of your own, one NAME.yaml each; default the folder profiles beside the configuration",
    );
  const own = (): ProfilePlaces => ({
    folder: profile.opts<{ profiles?: string }>().profiles,
    config: configName(),
  });
  profile
    .command("list")
    .description("every profile: its name, how far verdicts go (measured, reported, sent), its title")
    .action(() => {
      done(profileList(own()));
    });
  profile
    .command("show")
    .description(
      "parameters, set-up on the charger, limits, pace, what happens when the gateway dies, what is uncertain",
    )
    .argument("<name>", "which one")
    .action((name: string) => {
      done(profileShow(own(), name));
    });
  profile
    .command("try")
    .description("hold a profile against traffic, without a broker: a JSON line in, a JSON line out")
    .requiredOption("--stdin", "read the lines from standard input")
    .addHelpText("after", TRY_HELP)
    .action(async () => {
      done(await profileTry(own(), now));
    });
}
