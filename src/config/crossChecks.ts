import { type Address, isLoopback } from "./address.ts";
import type { Finding, Path } from "./mistakes.ts";
import type { BrokerSection } from "./mqtt.ts";
import { nearest } from "./nearest.ts";
import { pathText } from "./mistakes.ts";
import type { ConfigFile } from "./schema.ts";
import { fleetChecks } from "./fleetChecks.ts";

function oneOf(section: object, keys: readonly string[], path: Path, what: string): readonly Finding[] {
  const given = keys.filter((key) => Reflect.get(section, key) !== undefined);
  if (given.length === 1) return [];
  const found = given.length === 0 ? `none of ${keys.join(", ")}` : given.join(" and ");
  return [{ path: given[1] === undefined ? path : [...path, given[1]], found, expected: what }];
}

function brokerChecks(section: BrokerSection, path: Path): readonly Finding[] {
  const { url, tls, username, password } = section;
  const all = [...oneOf(section, ["url", "embedded"], path, "exactly one of url and embedded")];
  if (password !== undefined && username === undefined)
    all.push({
      path: [...path, "password"],
      found: "a password without a username",
      expected: "username beside it",
    });
  if (section.embedded !== undefined && username !== undefined && password === undefined)
    all.push({
      path: [...path, "username"],
      found: "a username without a password, which lets in whoever knows the name",
      expected: "password beside it",
    });
  if (tls !== undefined && !(url?.startsWith("mqtts:") || url?.startsWith("wss:")))
    all.push({
      path: [...path, "tls"],
      found: `tls with ${url ?? "an embedded broker"}, which is not encrypted`,
      expected: "a url that starts with mqtts:// or wss://, or no tls",
    });
  if (tls !== undefined && (tls.cert === undefined) !== (tls.key === undefined))
    all.push({
      path: [...path, "tls"],
      found: "only one of cert and key",
      expected: "both of them, or neither",
    });
  return all;
}

interface Listener {
  readonly path: Path;
  readonly listen: Address;
}

function* listeners(file: ConfigFile): Generator<Listener> {
  if (file.webhook !== undefined) yield { path: ["webhook", "listen"], listen: file.webhook.listen };
  yield { path: ["operator", "listen"], listen: file.operator.listen };
  for (const [path, section] of brokerSections(file))
    if (section.embedded !== undefined)
      yield { path: [...path, "embedded", "listen"], listen: section.embedded.listen };
}

/** All brokers, the site's own first, each with where it stands. */
export const brokerSections = (file: ConfigFile): readonly (readonly [Path, BrokerSection])[] => [
  [["mqtt"], file.mqtt],
  ...Object.entries(file.brokers).map(([name, section]) => [["brokers", name], section] as const),
];

function portChecks(file: ConfigFile): readonly Finding[] {
  const taken = new Map<number, Path>();
  const all: Finding[] = [];
  for (const { path, listen } of listeners(file)) {
    const other = listen.port === 0 ? undefined : taken.get(listen.port);
    if (other !== undefined)
      all.push({
        path,
        found: `port ${listen.port}, which ${pathText(other)} has too`,
        expected: "a port of its own",
      });
    taken.set(listen.port, other ?? path);
  }
  return all;
}

function chargerBrokers(file: ConfigFile): readonly Finding[] {
  const known = Object.keys(file.brokers);
  return file.chargers.flatMap(({ broker }, index): readonly Finding[] => {
    if (broker === undefined || known.includes(broker)) return [];
    const names = known.length === 0 ? "brokers has none" : `brokers has ${known.join(", ")}`;
    const meant = nearest(broker, known);
    return [
      {
        path: ["chargers", index, "broker"],
        found: `${JSON.stringify(broker)}, which is not among the brokers`,
        expected: `${meant === null ? "the name of a broker" : `did you mean ${meant}?`} (${names}), or no broker: then mqtt's`,
      },
    ];
  });
}

/** Whoever reads a token on its way can send deliveries. */
function openBearer({ webhook }: ConfigFile): readonly Finding[] {
  if (typeof webhook?.auth !== "object" || webhook.auth.bearer === undefined) return [];
  if (webhook.tls !== undefined || webhook.trustProxy !== false || isLoopback(webhook.listen.host)) return [];
  return [
    {
      path: ["webhook", "auth", "bearer"],
      found: `a token in the clear at ${webhook.listen.host}`,
      expected: "webhook.tls, or trustProxy with the reverse proxy that ends TLS, or hmac",
    },
  ];
}

/** What no single key can tell: all mistakes that span several. */
export const crossChecks = (file: ConfigFile): readonly Finding[] => [
  ...(typeof file.webhook?.auth === "object"
    ? oneOf(
        file.webhook.auth,
        ["hmac", "standardWebhooks", "bearer"],
        ["webhook", "auth"],
        "exactly one of hmac, standardWebhooks and bearer; or auth: none",
      )
    : []),
  ...brokerSections(file).flatMap(([path, section]) => brokerChecks(section, path)),
  ...portChecks(file),
  ...chargerBrokers(file),
  ...openBearer(file),
  ...fleetChecks(file),
];
