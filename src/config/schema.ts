import * as z from "zod";

import type { Charger } from "../domain/charger.ts";
import type { VehicleDepartures } from "../domain/departure.ts";
import { type Instant, type Millis, type VehicleId, vehicleId } from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import { shipped } from "../platform/packageRoot.ts";
import type { Retention } from "../retention/rules.ts";
import type { Finding } from "./explain.ts";
import { keyCredentials, type KeyCredentials, secretOpener, type Place } from "./fields/secret.ts";
import { pemOpener } from "./fields/pem.ts";
import { duration, topicName, topicPrefix } from "./fields/quantities.ts";
import { alarmSection, type ReceiverConfig, receiversOf } from "./sections/alarms.ts";
import { controlConfig, controlSection, type ControlConfig } from "./sections/control.ts";
import { brokerConfig, brokerSection, type BrokerConfig } from "./sections/mqtt.ts";
import { departureGuardSection, departuresOf } from "./sections/departures.ts";
import { operatorConfig, operatorSection, type OperatorConfig } from "./sections/operator.ts";
import { reportConfig, reportSection, type ReportConfig } from "./sections/report.ts";
import { retentionOf, retentionSection } from "./sections/retention.ts";
import { chargerEntry, chargerOf, siteSection, vehicleEntry, vehicleOf } from "./sections/site.ts";
import {
  type DatabaseConfig,
  databaseOf,
  stateDirectory,
  statePath,
  stateSection,
  statusSocketPath,
} from "./sections/state.ts";
import { vtnConfig, vtnSection, type VtnConfig } from "./sections/vtn.ts";
import { webhookConfig, webhookSection, type WebhookConfig } from "./sections/webhook.ts";

/**
 * The configuration file. Everything else that knows a key is generated from this schema, or compared with
 * it by a test.
 */
export const configFile = z.strictObject(
  {
    site: siteSection.describe("The site this gateway serves."),
    state: stateSection
      .prefault("./state")
      .describe(
        "Directory of the stored state; relative to $STATE_DIRECTORY if systemd sets it, otherwise to this file. Default ./state. Each daemon needs its own. Or a section with postgres: the state in a database, for a depot with a stand-in.",
      ),
    vtn: vtnSection.describe("The partner's service that sends events."),
    webhook: webhookSection
      .optional()
      .describe(
        "Listener for the partner's deliveries. Leave it out if the partner cannot reach the site: events are then fetched by polling only.",
      ),
    operator: operatorSection.prefault({}).describe("Listener for the people on site."),
    alarms: alarmSection.prefault({}).describe("Facts that need a person, and who is notified of them."),
    mqtt: brokerSection.describe("The broker that the chargers are connected to."),
    homeAssistant: z
      .strictObject({
        discovery: z
          .boolean()
          .prefault(false)
          .describe(
            "Describes the site and its chargers to Home Assistant by MQTT discovery, at the broker of mqtt. With operator.mqttHolds each charger gets a button and a number for holds. Default false, which removes earlier descriptions.",
          ),
        prefix: topicPrefix
          .prefault("homeassistant")
          .describe("Discovery prefix of Home Assistant. Default homeassistant."),
      })
      .prefault({})
      .describe("Home Assistant, which shows the site and its chargers."),
    brokers: z
      .record(topicName, brokerSection)
      .prefault({})
      .describe(
        "Further brokers by name, with the keys of mqtt (some chargers contain a broker). A charger selects one with its key broker. Default {}.",
      ),
    clock: z
      .strictObject({
        maxSkew: duration("1s", "1d")
          .prefault("5m")
          .describe(
            "Largest difference to the partner's clock in two consecutive answers before a warning. Default 5m.",
          ),
      })
      .prefault({})
      .describe("Limits for wrong clocks."),
    control: controlSection.prefault({}).describe("How events become setpoints."),
    report: reportSection
      .prefault({})
      .describe("Reports that events request. The contract does not define how their counts are meant."),
    retention: retentionSection.prefault({}).describe("How long past data is kept. It is pruned once a day."),
    departureGuard: departureGuardSection
      .prefault({})
      .describe("Frees a vehicle from events that would otherwise leave short, at the latest moment."),
    chargers: z
      .array(chargerEntry)
      .max(100_000)
      .prefault([])
      .describe("The outlets that setpointd drives. Default []."),
    vehicles: z
      .array(vehicleEntry)
      .max(100_000)
      .prefault([])
      .describe("Your vehicles. Events for other vehicles are counted, not acted on. Default []."),
  },
  {
    error: (issue) =>
      issue.code === "invalid_type"
        ? `sections: site, vtn, mqtt, chargers, vehicles; ${shipped("config/example.yaml")} is an example`
        : undefined,
  },
);

/** The file after the schema, before the cross checks. */
export type ConfigFile = z.infer<typeof configFile>;

/**
 * The resolved configuration. Absent parts are null or empty. It holds no secret, only functions that read
 * one.
 */
export interface Config {
  readonly site: {
    readonly id: string;
    readonly timezone: string;
    /** Lanes of the yard, for the page. */
    readonly board: readonly (readonly string[])[];
    /** Planned work, for the page. No bays: the whole site. */
    readonly maintenance: readonly {
      readonly name: string;
      readonly from: Instant;
      readonly until: Instant;
      readonly bays: readonly string[];
    }[];
    /** Main fuse, in A per phase. Undefined: not configured. */
    readonly fuse?: number | undefined;
  };
  /** Folder of the state, or of what is beside it where there is a database. Absolute. */
  readonly state: string;
  /** Null: the state is in that folder. */
  readonly database: DatabaseConfig | null;
  /** The keys that are not in the state folder. */
  readonly keys: KeyCredentials;
  /** Absolute path of the Unix socket for `setpointd status`. */
  readonly statusSocket: string;
  readonly vtn: VtnConfig;
  /** Null: no listener, polling only. */
  readonly webhook: WebhookConfig | null;
  readonly operator: OperatorConfig;
  /** Receivers of alarms. */
  readonly receivers: readonly ReceiverConfig[];
  readonly mqtt: BrokerConfig;
  /** `prefix`: first levels of the topics of Home Assistant. */
  readonly homeAssistant: { readonly discovery: boolean; readonly prefix: string };
  /** By the name in `Charger.broker`. The site's own broker is `mqtt`. */
  readonly brokers: ReadonlyMap<string, BrokerConfig>;
  readonly clock: { readonly maxSkew: Millis };
  readonly control: ControlConfig;
  readonly report: ReportConfig;
  readonly retention: Retention;
  readonly chargers: readonly Charger[];
  readonly vehicles: readonly Vehicle[];
  /** Null: off. */
  readonly departureGuard: { readonly most: number } | null;
  /** Vehicles with a weekly departure or a known battery. */
  readonly departures: ReadonlyMap<VehicleId, VehicleDepartures>;
}

/**
 * Reports everything that cannot be used on this machine: secrets, certificates, the state. The result is
 * valid only without a report.
 */
export function configOf(
  file: ConfigFile,
  place: Place,
  report: (finding: Finding) => void,
  doubt: (finding: Finding) => void,
): Config {
  const open = secretOpener(place, report, doubt);
  const openPem = pemOpener(place, report, doubt);
  const folder = typeof file.state === "string" ? file.state : file.state.folder;
  const state = stateDirectory(folder, place, report, doubt);
  const database = databaseOf(file.state, open);
  return {
    site: file.site,
    state,
    database,
    keys: keyCredentials(state, place, report, doubt),
    statusSocket: statusSocketPath(statePath(folder, place), place),
    vtn: vtnConfig(file.vtn, open),
    webhook: file.webhook === undefined ? null : webhookConfig(file.webhook, open, openPem),
    operator: operatorConfig(file.operator, openPem),
    receivers: receiversOf(file.alarms, open),
    mqtt: brokerConfig(file.mqtt, ["mqtt"], open, openPem),
    homeAssistant: file.homeAssistant,
    brokers: new Map(
      Object.entries(file.brokers).map(([name, section]) => [
        name,
        brokerConfig(section, ["brokers", name], open, openPem),
      ]),
    ),
    clock: file.clock,
    control: controlConfig(file.control),
    report: reportConfig(file.report, file.vtn),
    retention: retentionOf(file.retention, file.chargers.length, database !== null),
    chargers: file.chargers.map((entry) => chargerOf(entry, file.control)),
    vehicles: file.vehicles.map(vehicleOf),
    departureGuard: file.departureGuard.on ? { most: file.departureGuard.most } : null,
    departures: new Map(
      file.vehicles
        .filter(({ departures, battery }) => departures.length > 0 || battery !== undefined)
        .map((entry) => [vehicleId(entry.id), departuresOf(entry)]),
    ),
  };
}
