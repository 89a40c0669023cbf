import { isIPv6 } from "node:net";
import { reads } from "./reads.ts";

/** Where a listener listens: the host without brackets; port 0 takes any free one. */
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

/** Reachable from this machine only. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);

export const address = reads(
  parseAddress,
  "host:port, e.g. 127.0.0.1:8080, 0.0.0.0:8090 or [::]:8090 (port 0: any free one)",
);
