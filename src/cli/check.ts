import { existsSync } from "node:fs";
import { join } from "node:path";

import { expiryWarnings } from "../certificates.ts";
import type { Config } from "../config/schema.ts";
import { explain } from "../config/mistakes.ts";
import { checkLive } from "./checkLive.ts";
import { configFile, environmentOf } from "./configuration.ts";
import { isToBeFreed, reallySent } from "../core/control/command.ts";
import { inWords } from "../core/control/setpoint.ts";
import { retentionForecast } from "../core/retentionForecast.ts";
import type { Instant } from "../core/units.ts";
import { stateTrouble } from "../store/files.ts";
import { loadSite } from "../loadSite.ts";
import { becomeOwner } from "./owner.ts";
import { complain, type ExitCode, say } from "./outcome.ts";
import { enterPrivateFolder } from "./privateFolder.ts";
import { REPORT_REQUESTS_PER_HOUR } from "../vtn/reports.ts";
import { askOrRead } from "./storedState.ts";

/** `check`: every mistake with its path, what was found and what would be right. `live`: then all of it is tried. */
export async function check(named: string | undefined, live: boolean, now: Instant): Promise<ExitCode> {
  const file = configFile(named);
  if (file === undefined) {
    complain("which configuration? Name it with -c FILE");
    return 2;
  }
  const { loaded, profiles } = loadSite(file, environmentOf(file, process.env));
  if (!loaded.ok) {
    complain(explain(loaded.mistakes, file));
    complain(`${loaded.mistakes.length} ${loaded.mistakes.length === 1 ? "mistake" : "mistakes"} in ${file}`);
    return 2;
  }
  enterPrivateFolder(loaded.config.state);
  if (loaded.warnings.length > 0) complain(`Works, but was it meant?\n\n${explain(loaded.warnings, file)}`);
  const { site, chargers, vehicles, control, state } = loaded.config;
  const bound = vehicles.filter(({ charger }) => charger !== null).length;
  say(
    `${file} is fine: site ${site.id} (${site.timezone}), ${chargers.length} chargers, ${vehicles.length} vehicles (${bound} with a fixed charger)`,
  );
  say(`mode ${control.mode}, state in ${state}, deliveries ${deliveriesInWords(loaded.config)}`);
  for (const line of keyLines(loaded.config)) say(line);
  for (const line of retentionLines(loaded.config)) say(line);
  for (const words of expiryWarnings(loaded.config, now)) complain(words);
  const denied = becomeOwner(state) ?? stateTrouble(state);
  if (denied !== null) complain(denied);
  for (const { charger, told } of await leftBehind(loaded.config)) {
    complain(
      `${charger} is not in this configuration, but was told ${told}: put it back, release it, then take it out`,
    );
  }
  return live ? checkLive(loaded.config, profiles) : 0;
}

/** Where each key comes from. */
const keyLines = ({ state, keys }: Config): readonly string[] =>
  [["site.key", keys.site] as const, ["proof.key", keys.proof] as const].map(([name, credential]) =>
    credential === null
      ? `${name}: the file ${join(state, name)}${existsSync(join(state, name)) ? "" : ", made at the first start"}`
      : `${name}: the credential ${credential.path}`,
  );

const retentionLines = ({ retention, report, chargers }: Config): readonly string[] =>
  retentionForecast(retention, {
    chargers: chargers.length,
    keepReadings: report.keepReadings,
    reportsPerHour: REPORT_REQUESTS_PER_HOUR,
  });

function deliveriesInWords({ webhook }: Config): string {
  if (webhook === null) return "by polling only";
  const { kind } = webhook.auth;
  return kind === "none" ? "as hints only: not signed, they make the list be fetched" : `signed by ${kind}`;
}

/** Chargers that stand limited, by the running daemon or the stored state, and are not configured any more (DESIGN 5.5). */
async function leftBehind(config: Config): Promise<readonly Limited[]> {
  const limited = await askOrRead<readonly Limited[]>(config, "/limited", ({ remembered }) =>
    remembered.commands
      .map(reallySent)
      .filter((sent) => sent !== null)
      .filter(isToBeFreed)
      .map(({ command }) => ({ charger: command.charger, told: inWords(command.desired) })),
  );
  // A state that cannot be read is not what a check of the configuration is about.
  if (typeof limited === "string") return [];
  return limited.filter(({ charger }) => !config.chargers.some(({ id }) => id === charger));
}

interface Limited {
  readonly charger: string;
  readonly told: string;
}
