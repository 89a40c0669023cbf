import type { BrokerConfig } from "../config/mqtt.ts";
import type { BrokerAddress } from "./dial.ts";

/** How a broker of the configuration is reached; `embeddedPort` where it runs in this process. */
export function addressOf(
  { reach, username, password, tls }: BrokerConfig,
  embeddedPort: number | null,
): BrokerAddress {
  return {
    url:
      reach.kind === "url"
        ? reach.url
        : `mqtt://${dialled(reach.listen.host)}:${embeddedPort ?? reach.listen.port}`,
    username,
    password: () => password?.(),
    tls:
      tls === null
        ? null
        : () => ({ ...(tls.ca === null ? {} : { ca: tls.ca.current() }), ...tls.own?.current() }),
  };
}

/** What the embedded broker asks of everyone; null: nothing. */
export const credentialsOf = ({ username, password }: BrokerConfig) =>
  username === null ? null : { username, password: () => password?.() ?? "" };

/** Who listens everywhere is reached on loopback. */
function dialled(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

/** Where the broker of this name stands in the configuration; "": the site's own. */
export const sectionOf = (name: string): string => (name === "" ? "mqtt" : `brokers.${name}`);
