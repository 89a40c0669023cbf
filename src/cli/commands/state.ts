import { resolve } from "node:path";

import { type Millis, millis } from "../../domain/units.ts";
import { siteConfiguration, verbConfiguration } from "../configuration.ts";
import { complain, fail, type ExitCode, say, type Verb, type VerbContext } from "../output.ts";

/** True: the target is a configuration. Otherwise it is a folder. */
const isConfiguration = (target: string): boolean => /\.ya?ml$/i.test(target);

const monotonic = (): Millis => millis(performance.now());

async function move(target: string, { config: named, now, randomBytes }: VerbContext): Promise<ExitCode> {
  // Read first: afterwards root is the owner of the state folder.
  const other = isConfiguration(target) ? siteConfiguration(target) : undefined;
  const from = verbConfiguration(named())?.config ?? null;
  if (from === null || other === null) return 2;
  const to = other?.config ?? { ...from, state: resolve(target), database: null };
  const { moveState } = await import("../../daemon/moveState.ts");
  const { logger } = await import("../logger.ts");
  const machine = { now, monotonic, randomBytes, log: logger(2, "error") };
  const moved = await moveState(from, to, machine, complain);
  if (typeof moved === "string") return fail(1, `nothing was moved: ${moved}`);
  const place = to.database === null ? to.state : `the schema ${to.database.schema} of the database`;
  say(
    `${place}: ${moved.audit} rows of the record, ${moved.bodies} events and other values, ${moved.readings} readings; all verified`,
  );
  say("The old state is as it was. Start setpointd with the new one only.");
  return 0;
}

export const stateVerb: Verb = (verb, tools) => {
  verb
    .command("move")
    .description(
      "copy the state of a stopped site between a folder and PostgreSQL, keys included, and verify it",
    )
    .requiredOption(
      "--to <target>",
      "a folder for SQLite; or a configuration (YAML) of the same site, with the state as it will be; needed",
    )
    .action(async ({ to }: { to: string }) => tools.done(await move(to, tools)));
};
