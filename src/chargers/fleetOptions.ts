import type { Logger } from "pino";

import type { Charger } from "../core/site/charger.ts";
import type { ChargerMessage } from "../core/site/telemetry.ts";
import type { ChargerId, Instant } from "../core/units.ts";
import type { BrokerTiming } from "./brokerTiming.ts";
import type { BrokerAddress } from "./dial.ts";
import type { Profile } from "./profile/schema.ts";

/** A broker, and what its native topics begin with. */
export interface FleetBroker {
  readonly address: BrokerAddress;
  readonly prefix: string;
}

export interface FleetOptions {
  readonly site: string;
  /** At the site's own broker; at a named one its name is appended. */
  readonly clientId: string;
  readonly chargers: readonly Charger[];
  /** By the name that `Charger.profile` has. */
  readonly profiles: ReadonlyMap<string, Profile>;
  /** By the name that `Charger.broker` has; "" is the site's own. */
  readonly brokers: ReadonlyMap<string, FleetBroker>;
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
