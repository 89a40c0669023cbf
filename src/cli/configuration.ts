import { existsSync } from "node:fs";
import { resolve } from "node:path";

import type { Profile } from "../chargers/profile/schema.ts";
import { explain, type Mistake } from "../config/explain.ts";
import type { Environment } from "../config/fields/secret.ts";
import type { SecretsNeed } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { loadSite } from "../daemon/chargerModels.ts";
import { shipped } from "../platform/packageRoot.ts";
import { complain, type ExitCode } from "./output.ts";
import { becomeOwner, enterPrivateFolder } from "./storedState.ts";

/** Where a configuration is looked for when none is named. */
const INSTALLED_CONFIG = "/etc/setpointd/config.yaml";

/** What systemd/setpointd.service has systemd set for the daemon: the verbs look in the same places by hand. */
const INSTALLED_PLACES: Environment = {
  STATE_DIRECTORY: "/var/lib/setpointd",
  CREDENTIALS_DIRECTORY: "/etc/setpointd/credentials",
};

/** The environment that relative paths in a configuration are read with (DESIGN 6.1). */
export const environmentOf = (file: string, env: Environment): Environment =>
  resolve(file) === INSTALLED_CONFIG ? { ...INSTALLED_PLACES, ...env } : env;

/** The file that was named, or `$SETPOINTD_CONFIG`, or the installed one; undefined: none of them. */
export const configFile = (named: string | undefined): string | undefined =>
  named ?? setting("SETPOINTD_CONFIG") ?? (existsSync(INSTALLED_CONFIG) ? INSTALLED_CONFIG : undefined);

/** A word where none belongs is mostly the configuration: says how it is named, or that it is no verb. */
export function misplaced(verb: "run" | "check", word: string): ExitCode {
  complain(
    verb === "check" || /\.ya?ml$/i.test(word)
      ? `name the configuration with -c: setpointd ${verb} -c ${word}`
      : `there is no verb ${word}; setpointd --help lists them`,
  );
  return 2;
}

/** A configuration, and the profiles of its chargers. */
export interface SiteConfiguration {
  readonly config: Config;
  readonly profiles: ReadonlyMap<string, Profile>;
  /** What works, but was perhaps not meant. */
  readonly warnings: readonly Mistake[];
}

/** As `verbConfiguration`, for a verb that speaks to no charger. */
export const configuration = (named: string | undefined): Config | null =>
  verbConfiguration(named)?.config ?? null;

/** As `siteConfiguration`; from then on root has the rights of the owner of the state only. */
export function verbConfiguration(named: string | undefined): SiteConfiguration | null {
  const site = siteConfiguration(named);
  if (site !== null) enterPrivateFolder(site.config.state);
  const refused = site === null ? null : becomeOwner(site.config.state);
  if (refused === null) return site;
  complain(refused);
  return null;
}

/** Loads the configuration; what is wrong with it has been explained when the answer is null. */
export function siteConfiguration(
  named: string | undefined,
  secrets: SecretsNeed = "needed",
): SiteConfiguration | null {
  const file = configFile(named);
  if (file === undefined) {
    complain(
      `which configuration? Name it with -c FILE, or in SETPOINTD_CONFIG; ${shipped("config/example.yaml")} is one to start from`,
    );
    return null;
  }
  const { loaded, profiles } = loadSite(file, environmentOf(file, process.env), secrets);
  if (loaded.ok) return { config: loaded.config, profiles, warnings: loaded.warnings };
  complain(explain(loaded.mistakes, file));
  const count = loaded.mistakes.length;
  complain(`${count} ${count === 1 ? "mistake" : "mistakes"} in ${file}; nothing was started or changed`);
  return null;
}

/** As pino names them. */
const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** A variable of the environment; an empty one counts as unset. */
export function setting(name: string): string | undefined {
  const found = process.env[name];
  return found === "" ? undefined : found;
}

/** `$LOG_LEVEL`; what is wrong with it has been explained when the answer is null. */
export function logLevel(): string | null {
  const level = setting("LOG_LEVEL") ?? "info";
  if (LEVELS.includes(level)) return level;
  complain(`LOG_LEVEL is ${JSON.stringify(level)}, which is no level; there are ${LEVELS.join(", ")}`);
  return null;
}
