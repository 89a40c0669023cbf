import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { IANAZone } from "luxon";

import type { Profile } from "../chargers/profile/schema.ts";
import { firstKeys, readYaml } from "../config/document.ts";
import { explain, type Mistake, nearest } from "../config/explain.ts";
import type { Environment } from "../config/fields/secret.ts";
import type { FleetLoaded } from "../config/fleet.ts";
import type { SecretsNeed } from "../config/load.ts";
import { loadOcppConfig, type OcppLoaded } from "../config/ocpp.ts";
import type { Config } from "../config/schema.ts";
import { statePath } from "../config/sections/state.ts";
import { loadSite } from "../daemon/chargerModels.ts";
import { vehiclesNamed } from "../domain/vehicle.ts";
import { shipped } from "../platform/packageRoot.ts";
import { listed, counted } from "../platform/text.ts";
import { complain, fail, type ExitCode } from "./output.ts";
import { becomeOwner, enterPrivateFolder } from "./storedState.ts";

/** Default path of the configuration. */
const INSTALLED_CONFIG = "/etc/setpointd/config.yaml";

const CREDENTIALS_DIRECTORY = "/etc/setpointd/credentials";

/** Environment that systemd sets for each service (`/systemd`), by its configuration. Verbs use the same places. */
const INSTALLED_PLACES: Readonly<Record<string, Environment>> = {
  [INSTALLED_CONFIG]: { STATE_DIRECTORY: "/var/lib/setpointd", CREDENTIALS_DIRECTORY },
  "/etc/setpointd/fleet.yaml": { STATE_DIRECTORY: "/var/lib/setpointd-fleet", CREDENTIALS_DIRECTORY },
  "/etc/setpointd/ocpp.yaml": {
    STATE_DIRECTORY: "/var/lib/setpointd-ocpp",
    CREDENTIALS_DIRECTORY,
    STATIONS_DIRECTORY: "/etc/setpointd/stations",
  },
};

/** Folder of the status socket. The service of the package has it while it runs; a daemon without systemd has none. */
const RUNTIME_DIRECTORY = "/run/setpointd";

/** Environment for resolving relative paths in a configuration. */
export const environmentOf = (
  file: string,
  env: Environment,
  isThere: (path: string) => boolean = existsSync,
): Environment => ({
  ...INSTALLED_PLACES[resolve(file)],
  ...(resolve(file) === INSTALLED_CONFIG && isThere(RUNTIME_DIRECTORY) ? { RUNTIME_DIRECTORY } : {}),
  ...env,
});

/** File that was named, else `$SETPOINTD_CONFIG`, else the installed one. Undefined: none of them. */
export const configFile = (named: string | undefined): string | undefined =>
  named ?? setting("SETPOINTD_CONFIG") ?? (existsSync(INSTALLED_CONFIG) ? INSTALLED_CONFIG : undefined);

/** Explains a stray argument: mostly it is a configuration without `-c`, or an unknown verb. */
export function misplaced(verb: "run" | "check", argument: string): ExitCode {
  return fail(
    2,
    verb === "check" || /\.ya?ml$/i.test(argument)
      ? `name the configuration with -c: setpointd ${verb} -c ${argument}`
      : `there is no verb ${argument}; setpointd --help lists them`,
  );
}

/** A configuration, and the profiles of its chargers. */
export interface SiteConfiguration {
  readonly config: Config;
  readonly profiles: ReadonlyMap<string, Profile>;
  /** Settings that work, but may be unintended. */
  readonly warnings: readonly Mistake[];
}

/** `verbConfiguration` for a verb that does not need the profiles. */
export const configuration = (named: string | undefined): Config | null =>
  verbConfiguration(named)?.config ?? null;

/** `siteConfiguration`; afterwards root has only the rights of the owner of the state. */
export function verbConfiguration(named: string | undefined): SiteConfiguration | null {
  const site = siteConfiguration(named);
  if (site !== null) enterPrivateFolder(site.config.state);
  const refused = site === null ? null : becomeOwner(site.config.state);
  if (refused === null) return site;
  complain(refused);
  return null;
}

/** End of a refusal by a verb that would have changed something. */
export const UNCHANGED = "; nothing was started or changed";

/** The program that reads a configuration. */
type ConfigurationKind = "site" | "fleet" | "site of a fleet" | "ocpp";

/** Prints every mistake with its remedy, and their number. `wanted`: the kind that the verb reads. */
export function printMistakes(
  mistakes: readonly Mistake[],
  file: string,
  { note = "", wanted = "site" }: { readonly note?: string; readonly wanted?: ConfigurationKind } = {},
): void {
  complain(explain(mistakes, file));
  complain(`${counted(mistakes.length, "mistake")} in ${file}${note}`);
  const kind = kindOf(file);
  if (kind !== null && kind !== wanted)
    complain(`${file} looks like the configuration of ${OWNERS[kind](file)}`);
}

const OWNERS: Readonly<Record<ConfigurationKind, (file: string) => string>> = {
  site: (file) => `one site: setpointd run -c ${file}`,
  fleet: (file) => `a fleet: setpointd fleet -c ${file}`,
  "site of a fleet": (file) => `a site of a fleet: setpointd site check ${file} -c FLEET.yaml`,
  ocpp: (file) => `the OCPP bridge: setpointd ocpp -c ${file}`,
};

/** Kind of a file by its sections. Null: none of them shows it. */
export function kindOf(file: string): ConfigurationKind | null {
  const keys = firstKeys(readText(file) ?? "");
  const has = (...names: readonly string[]): boolean => names.some((name) => keys.has(name));
  if (has("ocpp", "stations") && !has("vtn")) return "ocpp";
  if (has("site", "chargers", "vehicles")) {
    if (has("vtn")) return "site";
    // Both kinds may have a broker.
    return has("mqtt") ? null : "site of a fleet";
  }
  return isFleetFile(file) ? "fleet" : null;
}

/** Loads the configuration. Null: it has mistakes, which have been printed. */
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
  printMistakes(loaded.mistakes, file, { note: UNCHANGED });
  return null;
}

/** State folder in the text of a configuration. The default where the text has none, or cannot be read. */
export function stateFolderIn(text: string, file: string, env: Environment): string {
  const read = readYaml(text);
  const state = read.ok ? member(read.source.value, "state") : brokenState(text);
  const folder = typeof state === "string" ? state : member(state, "folder");
  const place = { env: environmentOf(file, env), directory: dirname(resolve(file)) };
  return statePath(typeof folder === "string" ? folder : "./state", place);
}

const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

/** In a text that is no YAML. */
const brokenState = (text: string): unknown =>
  /^(?:state|state:\s*\n\s+folder):[ \t]*["']?([^\s"'#{]+)/m.exec(text)?.[1];

/** State folder and zone of a site, also where the file has mistakes. Null: there is no file, which has been printed. */
export function verbState(
  named: string | undefined,
): { readonly state: string; readonly timezone: string } | null {
  const file = configFile(named);
  if (file === undefined) {
    complain("which configuration? Name it with -c FILE, or in SETPOINTD_CONFIG");
    return null;
  }
  const text = readText(file);
  if (text === null) {
    complain(`${file} cannot be read: name a configuration that this user may read`);
    return null;
  }
  const state = stateFolderIn(text, file, process.env);
  enterPrivateFolder(state);
  const refused = becomeOwner(state);
  if (refused !== null) {
    complain(refused);
    return null;
  }
  const read = readYaml(text);
  const zone = read.ok ? member(member(read.source.value, "site"), "timezone") : null;
  return { state, timezone: typeof zone === "string" && IANAZone.isValidZone(zone) ? zone : "UTC" };
}

/** Null: the file cannot be read as text. */
export function readText(file: string): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file));
  } catch {
    return null;
  }
}

/** Level names of pino. */
const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** True: the file is a configuration of a fleet. It has no site, and names a database. */
export function isFleetFile(file: string): boolean {
  try {
    const text = readFileSync(file, "utf8");
    const keys = firstKeys(text);
    const isOfSite = ["site", "chargers", "vehicles"].some((key) => keys.has(key));
    return !isOfSite && (keys.has("sitesAtMost") || /^[^#]*\bpostgres["']?\s*:/m.test(text));
  } catch {
    return false;
  }
}

/** Loads the configuration of a fleet. Null: it has mistakes, which have been printed. */
export async function fleetConfiguration(
  named: string | undefined,
): Promise<Extract<FleetLoaded, { ok: true }> | null> {
  const file = named ?? setting("SETPOINTD_CONFIG");
  if (file === undefined) {
    complain(
      `which fleet? Name its configuration with -c FILE; ${shipped("config/example-fleet.yaml")} is one to start from`,
    );
    return null;
  }
  // The schema of a fleet takes 20 ms to build. Most verbs need none of it.
  const { loadFleet } = await import("../config/fleet.ts");
  const loaded = loadFleet(file, environmentOf(file, process.env));
  if (loaded.ok) return loaded;
  printMistakes(loaded.mistakes, file, { note: UNCHANGED, wanted: "fleet" });
  return null;
}

/** `configuration` for a verb about the record. That of a fleet is for what people change for all of its sites. */
export async function recordConfiguration(
  named: string | undefined,
): Promise<{ readonly config: Config; readonly isFleet: boolean } | null> {
  const file = configFile(named);
  if (file === undefined || !isFleetFile(file)) {
    const config = configuration(named);
    return config === null ? null : { config, isFleet: false };
  }
  const loaded = await fleetConfiguration(file);
  if (loaded === null) return null;
  const { shared } = loaded.fleet;
  enterPrivateFolder(shared.state);
  const refused = becomeOwner(shared.state);
  if (refused === null) {
    const { recordOfFleet } = await import("../daemon/offline.ts");
    return { config: recordOfFleet(shared), isFleet: true };
  }
  complain(refused);
  return null;
}

/** Environment variable. An empty one counts as unset. */
export function setting(name: string): string | undefined {
  const found = process.env[name];
  return found === "" ? undefined : found;
}

/** `$LOG_LEVEL`. Null: it is not a level, which has been printed. */
export function logLevel(): string | null {
  const level = setting("LOG_LEVEL") ?? "info";
  if (LEVELS.includes(level)) return level;
  complain(
    `LOG_LEVEL is ${JSON.stringify(level)}, which is not a level; the levels are ${LEVELS.join(", ")}`,
  );
  return null;
}

/** The configuration of `setpointd ocpp`. Null: it cannot be used, and the reason is printed. */
export function bridgeConfiguration(file: string | undefined): (OcppLoaded & { readonly ok: true }) | null {
  if (file === undefined) {
    complain("which configuration? Name the bridge's own with -c FILE, e.g. ocpp.yaml");
    return null;
  }
  const loaded = loadOcppConfig(file, environmentOf(file, process.env));
  if (loaded.ok) return loaded;
  printMistakes(loaded.mistakes, file, { wanted: "ocpp" });
  return null;
}

/** Null: the target is a charger or a vehicle of the configuration. */
export function unknownTarget(target: string, { chargers, vehicles }: Config): string | null {
  if (vehiclesNamed(vehicles, target).length > 0 || chargers.some(({ id }) => id === target)) return null;
  const known = [...chargers.map(({ id }) => id), ...vehicles.flatMap(({ id, name }) => [id, name])];
  const similar = nearest(target, known);
  if (similar !== null) return `there is no charger and no vehicle ${target}; did you mean ${similar}?`;
  return `there is no charger and no vehicle ${target}; chargers: ${namedIn(chargers)}; vehicles: ${namedIn(vehicles)}`;
}

/** Ids in a message. */
const MOST_NAMED = 20;

const namedIn = (all: readonly { readonly id: string }[]): string =>
  listed(
    all.map(({ id }) => id),
    MOST_NAMED,
  ) || "none";
