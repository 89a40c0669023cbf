import { isIP, isIPv6 } from "node:net";
import * as z from "zod";

import { reads } from "./quantities.ts";

/** Address of a listener: host without brackets; port 0 means any free port. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** `127.0.0.1:8080`, `[::]:8090`, `localhost:0`. Null: not host and port. */
export function parseAddress(text: string): Address | null {
  const [, six, other, digits] = /^(?:\[([^\]]+)\]|([A-Za-z0-9][A-Za-z0-9._-]*)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  const host = six ?? other;
  if (host === undefined || port > 65_535 || (six !== undefined && !isIPv6(six))) return null;
  return { host, port };
}

/** True: reachable from this machine only. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);

/** Host for a URL from the same machine. A listener on all addresses also listens on loopback. */
export function urlHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

export const address = reads(
  parseAddress,
  "host:port, e.g. 127.0.0.1:8080, 0.0.0.0:8090 or [::]:8090 (port 0: any free one)",
);

/** `10.1.2.3`, `10.0.0.0/8`, `fd00::/8`. Null: neither an address nor a network. */
function parseNetwork(text: string): string | null {
  const [, host = "", bits] = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(host);
  if (version === 0) return null;
  return bits === undefined || Number(bits) <= (version === 4 ? 32 : 128) ? text : null;
}

export const network = reads(parseNetwork, "an address or a network, e.g. 127.0.0.1 or 10.0.0.0/8");

function parse(text: string, protocols: readonly string[]): URL | null {
  const url = URL.parse(text);
  if (url === null || !protocols.includes(url.protocol) || url.hostname === "" || url.hash !== "")
    return null;
  return url.username === "" && url.password === "" ? url : null;
}

/** An http or https address, also with a query. Null: none. */
export const parseWebUrl = (text: string): URL | null => parse(text, ["https:", "http:"]);

/** An https address without query, user or trailing slash. http is allowed with a warning. */
export const webUrl = reads((text) => {
  const url = parseWebUrl(text);
  return url === null || url.search !== "" ? null : text.replace(/\/+$/, "");
}, "an address that starts with https://, without user, password or query, e.g. https://api.partner.example");

export const brokerUrl = reads(
  (text) => (parse(text, ["mqtt:", "mqtts:", "ws:", "wss:"]) === null ? null : text),
  "an address that starts with mqtt://, mqtts://, ws:// or wss://, without user or password (they have keys of their own), e.g. mqtt://127.0.0.1:1883",
);

const IN_THE_CLEAR = ["http:", "mqtt:", "ws:"];

/** True: secrets would be sent in the clear over a network. */
export const isExposed = (url: string): boolean => {
  const parsed = URL.parse(url);
  return parsed !== null && IN_THE_CLEAR.includes(parsed.protocol) && !isLoopback(parsed.hostname);
};

/** Reverse proxies whose X-Forwarded-For is trusted, as a setting of a listener. */
export const trustedProxies = z
  .union([z.boolean(), z.array(network).min(1).max(64)], {
    error: 'true, false, or the addresses of your reverse proxies, e.g. ["127.0.0.1", "10.0.0.0/8"]',
  })
  .prefault(false);
