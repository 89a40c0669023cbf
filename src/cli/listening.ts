import type { Address } from "../config/address.ts";
import { pathText } from "../config/mistakes.ts";
import type { Config } from "../config/schema.ts";

/** Ports below this are for whoever has the right to them, as Unix has it. */
const FIRST_FREE_PORT = 1024;

interface Listener {
  /** Where it stands in the configuration. */
  readonly key: string;
  readonly listen: Address;
}

/** Why a listener cannot have its address, under its key and with what to do about it. */
export function cannotListen(error: Error & Whereabouts, config: Config): string {
  const { code, address, port, hostname } = error;
  const all = listenersOf(config);
  const found =
    all.find(({ listen }) => listen.port === port && listen.host === address) ??
    all.find(({ listen }) => listen.port === port || listen.host === hostname);
  if (found === undefined) return `cannot listen: ${error.message}`;
  const { key, listen } = found;
  const host = listen.host.includes(":") ? `[${listen.host}]` : listen.host;
  const where = `${host}:${listen.port}`;
  return `${key}: ${where} ${trouble(code, listen) ?? `cannot be listened on (${error.message})`}`;
}

/** What Node tells of an address that it could not have, or of a name that it could not look up. */
interface Whereabouts {
  readonly code?: unknown;
  readonly address?: unknown;
  readonly port?: unknown;
  readonly hostname?: unknown;
}

function listenersOf({ webhook, operator, mqtt, brokers }: Config): readonly Listener[] {
  const all: Listener[] = [{ key: "operator.listen", listen: operator.listen }];
  if (webhook !== null) all.push({ key: "webhook.listen", listen: webhook.listen });
  const named = [...brokers].map(([name, broker]) => [pathText(["brokers", name]), broker] as const);
  for (const [key, { reach }] of [["mqtt", mqtt] as const, ...named])
    if (reach.kind === "embedded") all.push({ key: `${key}.embedded.listen`, listen: reach.listen });
  return all;
}

function trouble(code: unknown, { port }: Address): string | null {
  switch (code) {
    case "EADDRINUSE":
      return "is in use by another program: stop that, or choose another port";
    case "EADDRNOTAVAIL":
      return "is no address of this machine: name one that it has, or 0.0.0.0 for all of them";
    case "ENOTFOUND":
      return "is a name that this machine does not know: name an address that it has";
    case "EACCES":
      return port < FIRST_FREE_PORT
        ? `needs a right, as every port under ${FIRST_FREE_PORT} does: choose a higher port, or give setpointd CAP_NET_BIND_SERVICE`
        : null;
    default:
      return null;
  }
}
