import { createHmac } from "node:crypto";
import type { Logger } from "pino";

import { urlHost } from "../../config/fields/address.ts";
import type { BrokerConfig } from "../../config/sections/mqtt.ts";
import type { Charger } from "../../domain/charger.ts";
import type { ChargerMessage } from "../../domain/telemetry.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";
import type { SharedPlaces } from "../../platform/cooperative.ts";
import type { Profile } from "../profile/schema.ts";
import type { BrokerAddress, BrokerTiming } from "./createClient.ts";

/**
 * The MQTT client id of a site. Every process of the site uses the same, so the next one takes the session
 * over. A charger must not be able to guess it: it could disconnect the daemon with it.
 */
export function mqttClientId(site: string, siteKey: Uint8Array): string {
  const digest = createHmac("sha256", siteKey).update("mqtt client id").digest("hex");
  return `setpointd-${site}-${digest.slice(0, 8)}`;
}

/** A broker that runs in this process, and how the daemon itself connects to it. */
export interface EmbeddedReach {
  readonly port: number;
  readonly username: string;
  readonly password: string;
  /** Reason why it does not listen. Null: it listens. */
  readonly fault: () => string | null;
}

/** The address of a configured broker. `embedded`: the broker runs in this process. */
export function addressOf(
  { reach, username, password, tls }: BrokerConfig,
  embedded: EmbeddedReach | null,
): BrokerAddress {
  return {
    url:
      reach.kind === "url"
        ? reach.url
        : `mqtt://${urlHost(reach.listen.host)}:${embedded?.port ?? reach.listen.port}`,
    username: embedded?.username ?? username,
    password: () => embedded?.password ?? password?.(),
    tls:
      tls === null
        ? null
        : () => ({ ...(tls.ca === null ? {} : { ca: tls.ca.current() }), ...tls.own?.current() }),
    ...(embedded === null ? {} : { fault: embedded.fault }),
  };
}

/** Credentials that the embedded broker asks of every client but the daemon. Null: none. */
export const credentialsOf = ({ username, password }: BrokerConfig) =>
  username === null ? null : { username, password: () => password?.() ?? "" };

/** Configuration section of the broker with this name. "": the site's own. */
export const sectionOf = (name: string): string => (name === "" ? "mqtt" : `brokers.${name}`);

/** A broker, and what its native topics begin with. */
export interface NamedBroker {
  readonly address: BrokerAddress;
  /** The broker runs in this process. Absent: no. */
  readonly isEmbedded?: boolean;
  readonly prefix: string;
}

export interface ConnectionOptions {
  readonly site: string;
  /** At the site's own broker; at a named one its name is appended. */
  readonly clientId: string;
  readonly chargers: readonly Charger[];
  /** By the name that `Charger.profile` has. */
  readonly profiles: ReadonlyMap<string, Profile>;
  /** By the name that `Charger.broker` has; "" is the site's own. */
  readonly brokers: ReadonlyMap<string, NamedBroker>;
  /** No charger is commanded, so keepalives that keep a charger obeying are not sent either. Absent: no. */
  readonly observes?: boolean;
  /** Topic of our presence, after `<prefix>/<site>/`. Absent: the daemon's topic. */
  readonly presencePath?: string;
  /** False: another process may command the chargers. Absent: always true. */
  readonly mayConnect?: () => boolean;
  readonly now: () => Instant;
  /** A fraction for the jitter of the back-off. */
  readonly random: () => number;
  readonly log: Logger;
  /** Every message of a configured charger, in the order of arrival, malformed ones included. */
  readonly onMessage: (message: ChargerMessage) => void;
  /** A message on `holds/set` at the site's own broker. Absent: that topic is not subscribed to. */
  readonly onHoldMessage?: (message: HoldMessage) => void;
  /** Home Assistant has started. `prefix`: of its topics. Absent: its messages are not read. */
  readonly homeAssistant?: { readonly prefix: string; readonly onBirth: () => void };
  /** A message was discarded: unreadable, or too many in a short time. */
  readonly onDiscard: (charger: ChargerId, why: Discarded) => void;
  /**
   * Up: called after every connection; all commands that hold must be sent again. Not up: the connection
   * was lost, or the first attempt failed.
   */
  readonly onBroker: (name: string, up: boolean) => void;
  /** Publishes without a PUBACK at a time. */
  readonly window?: number;
  /** Shared with other sites of the process. */
  readonly quota?: SharedPlaces;
  readonly timing?: Partial<BrokerTiming>;
}

/** A request for a hold as it arrived. `retained`: it was published before we subscribed. */
export interface HoldMessage {
  readonly payload: Buffer;
  readonly retained: boolean;
}

export type Discarded = "unreadable" | "tooMany";
