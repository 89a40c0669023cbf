import { dirname, resolve } from "node:path";
import * as z from "zod";

import { crossChecks, type ProfileChecks } from "./checks.ts";
import { readText, readYaml, type Source } from "./document.ts";
import { findings, located, refused, type Refused, sentence, type Finding, type Mistake } from "./explain.ts";
import { pemOpener } from "./fields/pem.ts";
import { secretOpener, type Environment, type Place } from "./fields/secret.ts";
import { retentionOf } from "./sections/retention.ts";
import { controlConfig } from "./sections/control.ts";
import { departuresOf } from "./sections/departures.ts";
import { brokerConfig } from "./sections/mqtt.ts";
import { chargerOf, vehicleOf } from "./sections/site.ts";
import { type DatabaseConfig, databaseSection } from "./sections/state.ts";
import { configFile, configOf, type Config, type ConfigFile } from "./schema.ts";
import { warnings } from "./warnings.ts";
import { vehicleId } from "../domain/units.ts";
import { shipped } from "../platform/packageRoot.ts";

/*
 * Configuration of `setpointd fleet`. One file has what all sites share. A file for each site has the rest. Both
 * together are a configuration as `setpointd run` has it, and are checked as one.
 */

const { shape } = configFile;

export const fleetFile = z.strictObject({
  state: z
    .strictObject({
      folder: databaseSection.folder,
      postgres: databaseSection.postgres.describe(
        "The database, PostgreSQL 15 or later. Every process of the fleet names the same one. Required.",
      ),
    })
    .describe("The database of all sites, and the folder of users and tokens of this process. Required."),
  sitesAtMost: z
    .int()
    .min(1)
    .max(100_000)
    .prefault(10_000)
    .describe("Most sites that this process leads at a time. Default 10000."),
  vtn: shape.vtn,
  webhook: shape.webhook,
  operator: shape.operator,
  alarms: shape.alarms,
  mqtt: shape.mqtt.describe("The broker of every site that names none of its own. Required."),
  clock: shape.clock,
  report: shape.report,
  retention: shape.retention,
});

export const siteFile = z.strictObject({
  site: shape.site.describe("The site: its id is unique in the fleet. Required."),
  control: shape.control,
  chargers: shape.chargers,
  vehicles: shape.vehicles,
  mqtt: shape.mqtt.optional().describe("The broker of this site, instead of that of the fleet."),
});

type FleetFile = z.infer<typeof fleetFile>;

/** The database of a fleet has the keys of its sites. */
type FleetDatabase = DatabaseConfig & { readonly siteKeys: () => readonly Buffer[] };

/** Configuration of `setpointd fleet`. */
export interface Fleet {
  readonly database: FleetDatabase;
  readonly sitesAtMost: number;
  /** Settings that all sites share, as the configuration of a site without chargers. */
  readonly shared: Config;
  readonly file: FleetFile;
  /** The file as it was read, and the base of its relative paths. */
  readonly text: string;
  readonly place: Place;
}

/** A site of a fleet. `value`: the parsed file, for the database. */
export type SiteLoaded =
  | {
      readonly ok: true;
      readonly config: Config;
      readonly value: unknown;
      readonly warnings: readonly Mistake[];
    }
  | Refused;

export type FleetLoaded =
  | { readonly ok: true; readonly fleet: Fleet; readonly warnings: readonly Mistake[] }
  | Refused;

const EXAMPLE = { what: "a configuration of a fleet", example: shipped("config/example-fleet.yaml") };
const EXAMPLE_SITE = { what: "a site of a fleet", example: shipped("config/example-site.yaml") };

const SHARED_SITE = { id: "fleet", timezone: "UTC" };

/** The file of the fleet as that of a site. */
const withSite = (file: FleetFile, site: z.infer<typeof siteFile>): ConfigFile => ({
  ...LEAST,
  ...shareOf(file),
  ...site,
  mqtt: site.mqtt ?? file.mqtt,
});

const shareOf = ({ state, vtn, webhook, operator, alarms, clock, report, retention }: FleetFile) => ({
  state,
  vtn,
  webhook,
  operator,
  alarms,
  clock,
  report,
  retention,
});

/** The least configuration. Its sections are replaced by those of the fleet. Parsed once: a process loads thousands of sites. */
const LEAST = configFile.parse({
  site: SHARED_SITE,
  vtn: {
    baseUrl: "https://partner.invalid",
    tokenUrl: "https://partner.invalid",
    clientId: "-",
    clientSecret: { env: "NONE" },
  },
  mqtt: { url: "mqtt://broker.invalid" },
});

const NO_SITE = siteFile.parse({ site: SHARED_SITE });

/** An embedded broker belongs to one process, but any process may lead the site. */
const noEmbedded = (section: FleetFile["mqtt"] | undefined): readonly Finding[] =>
  section?.embedded === undefined
    ? []
    : [
        {
          path: ["mqtt", "embedded"],
          found: "a broker inside setpointd",
          expected: "url of a broker that every process reaches",
        },
      ];

/** Warnings of the whole that are about keys of this file. */
const warningsAbout = (file: object, whole: ConfigFile): readonly Finding[] =>
  warnings(whole).filter(({ path: [key = ""] }) => Object.hasOwn(file, key));

/** The configuration of a fleet from its text. */
export function fleetFrom(text: string, place: Place): FleetLoaded {
  const yaml = readYaml(text, EXAMPLE);
  if (!yaml.ok) return yaml;
  const { source } = yaml;
  const parsed = fleetFile.safeParse(source.value, { error: sentence });
  if (!parsed.success) return refused(source, findings(parsed.error, source.value));
  const file = parsed.data;
  const whole = withSite(file, NO_SITE);
  const mistakes: Finding[] = [...crossChecks(whole), ...noEmbedded(file.mqtt)];
  const doubts: Finding[] = [...warningsAbout(file, whole)];
  const report = (finding: Finding): void => void mistakes.push(finding);
  const doubt = (finding: Finding): void => void doubts.push(finding);
  const shared = configOf(whole, place, report, doubt);
  const { database } = shared;
  const siteKeys = database?.siteKeys ?? null;
  if (siteKeys === null)
    mistakes.push({
      path: ["state", "postgres", "siteKeys"],
      found: "nothing",
      expected: "{ file: PATH } of a key that encrypts the keys of the sites, from openssl rand -base64 32",
    });
  if (mistakes.length > 0 || database === null || siteKeys === null) return refused(source, mistakes);
  return {
    ok: true,
    fleet: { database: { ...database, siteKeys }, sitesAtMost: file.sitesAtMost, shared, file, text, place },
    warnings: doubts.map(located(source)),
  };
}

/** Reads, checks and resolves the configuration of a fleet. Never throws because of its content. */
export function loadFleet(file: string, env: Environment): FleetLoaded {
  const read = readText(file);
  return read.ok ? fleetFrom(read.text, { env, directory: dirname(resolve(file)) }) : read;
}

/** Reads and checks the file of a site. */
export function loadSiteFile(fleet: Fleet, file: string, makes: ProfileChecks): SiteLoaded {
  const read = readText(file);
  return read.ok ? siteFrom(fleet, read.text, makes) : read;
}

/** A site of a fleet from the text of its file. */
export function siteFrom(fleet: Fleet, text: string, makes: ProfileChecks): SiteLoaded {
  const yaml = readYaml(text, EXAMPLE_SITE);
  return yaml.ok ? siteOf(fleet, yaml.source, makes) : yaml;
}

/** A site as it is stored. */
export const storedSite = (fleet: Fleet, value: unknown, makes: ProfileChecks): SiteLoaded =>
  siteOf(fleet, { value, lineOf: () => null }, makes);

function siteOf(fleet: Fleet, source: Source, makes: ProfileChecks): SiteLoaded {
  const { value } = source;
  const parsed = siteFile.safeParse(value, { error: sentence });
  if (!parsed.success) return refused(source, findings(parsed.error, value));
  const { site, control, chargers, vehicles, mqtt } = parsed.data;
  const whole = withSite(fleet.file, parsed.data);
  const mistakes: Finding[] = [...crossChecks(whole), ...makes.mistakes(whole), ...noEmbedded(mqtt)];
  const doubts: Finding[] = [];
  const report = (finding: Finding): void => void mistakes.push(finding);
  const doubt = (finding: Finding): void => void doubts.push(finding);
  const { shared, place } = fleet;
  const broker =
    mqtt === undefined
      ? shared.mqtt
      : brokerConfig(mqtt, ["mqtt"], secretOpener(place, report, doubt), pemOpener(place, report, doubt));
  if (mistakes.length > 0) return refused(source, mistakes);
  return {
    ok: true,
    value,
    config: {
      ...shared,
      site,
      mqtt: broker,
      control: controlConfig(control),
      retention: retentionOf(fleet.file.retention, chargers.length, true),
      chargers: chargers.map((entry) => makes.applyProfileLimits(chargerOf(entry, control))),
      vehicles: vehicles.map(vehicleOf),
      departures: new Map(
        vehicles
          .filter(({ departures, battery }) => departures.length > 0 || battery !== undefined)
          .map((entry) => [vehicleId(entry.id), departuresOf(entry)]),
      ),
    },
    // A process that leads thousands of sites reads none.
    get warnings() {
      return [...warningsAbout(parsed.data, whole), ...makes.warnings(whole), ...doubts].map(located(source));
    },
  };
}
