import { urlHost } from "../config/address.ts";
import type { BrokerConfig } from "../config/mqtt.ts";
import type { BrokerAddress } from "./dial.ts";

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
