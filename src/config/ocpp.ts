import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type * as z from "zod";

import type { ChargerId, Millis } from "../domain/units.ts";
import { chargerId } from "../domain/units.ts";
import { shipped } from "../platform/packageRoot.ts";
import { brokerChecks } from "./checks.ts";
import { firstKeys, readText, readYaml } from "./document.ts";
import {
  findings,
  located,
  refused,
  type Refused,
  sentence,
  type Finding,
  type Mistake,
  type Path,
} from "./explain.ts";
import { isLoopback, type Address } from "./fields/address.ts";
import { pemOpener, type KeyPair, type PemSource } from "./fields/pem.ts";
import { openAll, secretOpener, type Environment, type Place, type Secrets } from "./fields/secret.ts";
import { brokerConfig, type BrokerConfig } from "./sections/mqtt.ts";
import { ocppFile } from "./sections/ocpp.ts";
import { stateDirectory } from "./sections/state.ts";

/** Configuration of `setpointd ocpp`. */

export interface ConnectorConfig {
  readonly id: number;
  readonly charger: ChargerId;
  /** Null: the unit that the charger allows. */
  readonly unit: "A" | "W" | null;
  /** Null: the highest that the charger allows. */
  readonly stackLevel: number | null;
  readonly phases: number;
  readonly voltage: number;
  readonly sendPhases: boolean;
  readonly profileKind: "absolute" | "relative";
  readonly writesPerHour: number;
}

export interface StationConfig {
  readonly identity: string;
  /** Null: none is asked. */
  readonly password: Secrets | null;
  /** Null: no certificate is asked. */
  readonly certificate: string | null;
  readonly connectors: readonly ConnectorConfig[];
}

export interface OcppConfig {
  readonly site: string;
  /** Absolute. */
  readonly state: string;
  readonly mqtt: BrokerConfig;
  readonly listen: Address;
  readonly path: string;
  readonly tls: { readonly own: PemSource<KeyPair>; readonly clientCa: PemSource<string> | null } | null;
  /** Null: every token is accepted. */
  readonly tags: ReadonlySet<string> | null;
  readonly heartbeat: Millis;
  readonly callTimeout: Millis;
  readonly meterValues: {
    readonly every: Millis;
    readonly measurands: readonly string[];
    readonly configure: boolean;
  };
  /** Null: we are the only central system. */
  readonly upstream: { readonly url: string; readonly ca: PemSource<string> | null } | null;
  readonly status: Address;
  readonly stations: readonly StationConfig[];
}

export type OcppLoaded =
  | { readonly ok: true; readonly config: OcppConfig; readonly warnings: readonly Mistake[] }
  | Refused;

type File = z.infer<typeof ocppFile>;

function twice(all: readonly (readonly [string | number, Path])[], what: string): readonly Finding[] {
  const seen = new Set<string | number>();
  return all.flatMap(([value, path]) => {
    if (!seen.has(value)) {
      seen.add(value);
      return [];
    }
    return [{ path, found: `${value} a second time`, expected: `${what} that is used once` }];
  });
}

const UNPROTECTED = "a station without password and certificate";

const isUnprotected = ({ ocpp }: File, { password, certificate }: File["stations"][number]): boolean =>
  password === undefined && certificate === undefined && !ocpp.allowAnonymous;

function checks(file: File): readonly Finding[] {
  const { ocpp, stations } = file;
  const all: Finding[] = [...brokerChecks(file.mqtt, ["mqtt"])];
  if (file.mqtt.embedded !== undefined)
    all.push({
      path: ["mqtt", "embedded"],
      found: "a broker in the bridge",
      expected: "url of the daemon's broker",
    });
  if (!isLoopback(file.status.host))
    all.push({
      path: ["status"],
      found: file.status.host,
      expected: "a loopback address, e.g. 127.0.0.1:9080",
    });
  stations.forEach((station, index) => {
    const { certificate } = station;
    const path = ["stations", index];
    if (certificate !== undefined && ocpp.tls?.clientCa === undefined)
      all.push({
        path: [...path, "certificate"],
        found: "a certificate without an authority",
        expected: "ocpp.tls.clientCa beside ocpp.tls.cert",
      });
    if (isUnprotected(file, station) && !isLoopback(ocpp.listen.host))
      all.push({
        path,
        found: UNPROTECTED,
        expected: "password: { file: PATH }, or ocpp.allowAnonymous: true in a network of their own",
      });
  });
  all.push(
    ...twice(
      stations.map(({ identity: id }, index) => [id, ["stations", index, "identity"]] as const),
      "an identity",
    ),
    ...twice(
      stations.flatMap(({ connectors }, at) =>
        connectors.map(
          ({ charger }, index) => [charger, ["stations", at, "connectors", index, "charger"]] as const,
        ),
      ),
      "a charger",
    ),
    ...stations.flatMap(({ connectors }, at) =>
      twice(
        connectors.map(({ id }, index) => [id, ["stations", at, "connectors", index, "id"]] as const),
        "a connector of the station",
      ),
    ),
  );
  return all;
}

const configOf = (
  file: File,
  place: Place,
  report: (finding: Finding) => void,
  doubt: (finding: Finding) => void,
): OcppConfig => {
  const open = secretOpener(place, report, doubt);
  const openPem = pemOpener(place, report, doubt);
  const { site, state, mqtt, ocpp, upstream, status, stations } = file;
  const { tls, authorize, meterValues } = ocpp;
  stations.forEach((station, index) => {
    if (isUnprotected(file, station))
      doubt({
        path: ["stations", index],
        found: UNPROTECTED,
        expected:
          "password: { file: PATH }; only a station on this machine, or behind a proxy here, needs none",
      });
  });
  return {
    site,
    state: stateDirectory(state, place, report, doubt),
    mqtt: brokerConfig(mqtt, ["mqtt"], open, openPem),
    listen: ocpp.listen,
    path: ocpp.path,
    tls:
      tls === undefined
        ? null
        : {
            own: openPem.keyPair(tls, ["ocpp", "tls"]),
            clientCa:
              tls.clientCa === undefined
                ? null
                : openPem.certificates(tls.clientCa, ["ocpp", "tls", "clientCa"]),
          },
    tags: authorize === "all" ? null : new Set(authorize.tags.map((tag) => tag.toLowerCase())),
    heartbeat: ocpp.heartbeat,
    callTimeout: ocpp.callTimeout,
    meterValues,
    upstream:
      upstream === undefined
        ? null
        : {
            url: upstream.url,
            ca: upstream.ca === undefined ? null : openPem.certificates(upstream.ca, ["upstream", "ca"]),
          },
    status,
    stations: stations.map(({ identity: id, password, certificate, connectors }, index) => ({
      identity: id,
      password: password === undefined ? null : openAll(password, ["stations", index, "password"], open),
      certificate: certificate ?? null,
      connectors: connectors.map((entry) => ({
        ...entry,
        charger: chargerId(entry.charger),
        unit: entry.unit ?? null,
        stackLevel: entry.stackLevel ?? null,
      })),
    })),
  };
};

/** True: the file is a configuration of the bridge, and not of the daemon. */
export function isOcppFile(file: string): boolean {
  try {
    const keys = firstKeys(readFileSync(file, "utf8"));
    return (keys.has("ocpp") || keys.has("stations")) && !keys.has("vtn");
  } catch {
    return false;
  }
}

/** Chargers that speak OCPP, by the configuration of their bridge. */
export interface BridgedChargers {
  readonly site: string;
  readonly chargers: ReadonlySet<string>;
}

/** Reads no secret. Null: the file is no configuration of the bridge, or has mistakes. */
export function bridgedChargers(file: string): BridgedChargers | null {
  if (!isOcppFile(file)) return null;
  const yaml = readYaml(readFileSync(file, "utf8"));
  const parsed = yaml.ok ? ocppFile.safeParse(yaml.source.value) : null;
  if (parsed?.success !== true) return null;
  const connectors = parsed.data.stations.flatMap((station) => station.connectors);
  return { site: parsed.data.site, chargers: new Set(connectors.map(({ charger }) => charger)) };
}

const EXAMPLE = { what: "a configuration of the bridge", example: shipped("config/ocpp-example.yaml") };

/** Configuration of the OCPP bridge from the text of its file. */
export function ocppConfigFrom(text: string, place: Place): OcppLoaded {
  const yaml = readYaml(text, EXAMPLE);
  if (!yaml.ok) return yaml;
  const { source } = yaml;
  const parsed = ocppFile.safeParse(source.value, { error: sentence });
  if (!parsed.success) return refused(source, findings(parsed.error, source.value));
  const mistakes: Finding[] = [...checks(parsed.data)];
  const doubts: Finding[] = [];
  const config = configOf(
    parsed.data,
    place,
    (finding) => mistakes.push(finding),
    (finding) => doubts.push(finding),
  );
  return mistakes.length > 0
    ? refused(source, mistakes)
    : { ok: true, config, warnings: doubts.map(located(source)) };
}

/** Reads, checks and resolves the file. Never throws because of its content. */
export function loadOcppConfig(file: string, env: Environment): OcppLoaded {
  const read = readText(file);
  return read.ok ? ocppConfigFrom(read.text, { env, directory: dirname(resolve(file)) }) : read;
}
