import { createHmac } from "node:crypto";
import type { Logger } from "pino";

import { urlHost } from "../../config/fields/address.ts";
import type { BrokerConfig } from "../../config/sections/mqtt.ts";
import type { Charger } from "../../domain/charger.ts";
import type { ChargerMessage } from "../../domain/telemetry.ts";
import type { ChargerId, Instant } from "../../domain/units.ts";
import type { Profile } from "../profile/schema.ts";
import type { BrokerAddress, BrokerTiming } from "./createClient.ts";

/**
 * The MQTT client id of a site: the same for every process of the site, so that the next one takes the session over, and
 * not to be guessed by a charger, which could throw us off the broker with it (DESIGN 2).
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
}

/** The address of a configured broker; `embedded` where it runs in this process. */
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
  };
}

/** Credentials that the embedded broker asks of every client but the daemon. Null: none. */
export const credentialsOf = ({ username, password }: BrokerConfig) =>
  username === null ? null : { username, password: () => password?.() ?? "" };

/** Where the broker of this name stands in the configuration; "": the site's own. */
export const sectionOf = (name: string): string => (name === "" ? "mqtt" : `brokers.${name}`);

/** A broker, and what its native topics begin with. */
export interface NamedBroker {
  readonly address: BrokerAddress;
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
  /** Nobody is to be commanded: what would keep a charger obeying is not said either. Absent: no. */
  readonly observes?: boolean;
  /** The topic that tells whether we are there, after `<prefix>/<site>/`. Absent: that of the daemon. */
  readonly presencePath?: string;
  readonly now: () => Instant;
  /** A fraction for the jitter of the back-off. */
  readonly random: () => number;
  readonly log: Logger;
  /** Everything a configured charger says, in the order of arrival, rubbish included. */
  readonly onMessage: (message: ChargerMessage) => void;
  /** A message that was not taken in: it could not be read, or there were too many of them. */
  readonly onDiscard: (charger: ChargerId, why: Discarded) => void;
  /**
   * Up after every (re)connection: what its chargers should be doing now has to be said again (F85). Not up: it was lost,
   * or the first attempt did not find it.
   */
  readonly onBroker: (name: string, up: boolean) => void;
  /** Publishes without a PUBACK at a time. */
  readonly window?: number;
  readonly timing?: Partial<BrokerTiming>;
}

export type Discarded = "unreadable" | "tooMany";
