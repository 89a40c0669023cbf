import { loadConfig } from "../config/load.ts";
import { explain } from "../config/mistakes.ts";
import { configFile, environmentOf } from "./configuration.ts";
import { complain, type ExitCode, say } from "./outcome.ts";

/** `check`: every mistake with its path, what was found and what would be right. */
export function check(named: string | undefined): ExitCode {
  const file = configFile(named);
  if (file === undefined) {
    complain("which configuration? Name it with -c FILE");
    return 2;
  }
  const loaded = loadConfig(file, environmentOf(file, process.env));
  if (!loaded.ok) {
    complain(explain(loaded.mistakes, file));
    complain(`${loaded.mistakes.length} ${loaded.mistakes.length === 1 ? "mistake" : "mistakes"} in ${file}`);
    return 2;
  }
  if (loaded.warnings.length > 0) complain(`Works, but was it meant?\n\n${explain(loaded.warnings, file)}`);
  const { site, chargers, vehicles, control, state, webhook } = loaded.config;
  const bound = vehicles.filter(({ charger }) => charger !== null).length;
  say(
    `${file} is fine: site ${site.id} (${site.timezone}), ${chargers.length} chargers, ${vehicles.length} vehicles (${bound} with a fixed charger)`,
  );
  say(
    `mode ${control.mode}, state in ${state}, deliveries ${webhook === null ? "by polling only" : `signed by ${webhook.auth.kind}`}`,
  );
  return 0;
}
