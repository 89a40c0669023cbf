import type { Charger } from "../domain/charger.ts";
import { identityKey } from "../domain/vehicle.ts";
import { type Finding, MOST_MISTAKES, nearest, type Path, pathText } from "./explain.ts";
import { type Address, isLoopback } from "./fields/address.ts";
import type { ConfigFile } from "./schema.ts";
import type { BrokerSection } from "./sections/mqtt.ts";
import { RECEIVERS } from "./sections/alarms.ts";
import { accessChecks } from "./sections/operator.ts";

/** Checks of a configuration that need the profiles of chargers. */
export interface ProfileChecks {
  /** Settings that these profiles cannot fulfil. */
  readonly mistakes: (file: ConfigFile) => readonly Finding[];
  /** Settings that work, but are probably a mistake. */
  readonly warnings: (file: ConfigFile) => readonly Finding[];
  /** A charger with the limits of its profile. */
  readonly applyProfileLimits: (charger: Charger) => Charger;
}

/** Chargers with an unknown profile. */
export const unknownProfiles = (
  { chargers }: ConfigFile,
  known: readonly string[],
  broken: ReadonlyMap<string, string> = new Map(),
): readonly Finding[] =>
  chargers.flatMap(({ profile }, index): readonly Finding[] => {
    if (known.includes(profile)) return [];
    const path = ["chargers", index, "profile"];
    const why = broken.get(profile);
    if (why !== undefined) return [{ path, found: `${profile}, whose file cannot be used`, expected: why }];
    const meant = nearest(profile, known);
    const names = `one of: ${known.join(", ")}`;
    return [
      {
        path,
        found: `${JSON.stringify(profile)}, which is no profile`,
        expected: meant === null ? names : `did you mean ${meant}? ${names}`,
      },
    ];
  });

/** Without profiles: native chargers only. */
export const NATIVE_ONLY: ProfileChecks = {
  mistakes: (file) => unknownProfiles(file, ["native"]),
  warnings: () => [],
  applyProfileLimits: (charger) => charger,
};

function oneOf(section: object, keys: readonly string[], path: Path, what: string): readonly Finding[] {
  const given = keys.filter((key) => Reflect.get(section, key) !== undefined);
  if (given.length === 1) return [];
  const found = given.length === 0 ? `none of ${keys.join(", ")}` : given.join(" and ");
  return [{ path: given[1] === undefined ? path : [...path, given[1]], found, expected: what }];
}

/** Mistakes in a broker that one member alone does not show. `path`: of its section. */
export function brokerChecks(section: BrokerSection, path: Path): readonly Finding[] {
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
      found: "a username without a password, which lets in everyone who knows the name",
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

/** All brokers, the site's own first, with the path of each section. */
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

/** The board of the page names each charger once at most; planned work names chargers. */
function boardChecks(file: ConfigFile): readonly Finding[] {
  const { site } = file;
  const places = site.board.flatMap((lane, row) =>
    lane.map((name, column) => ({ path: ["site", "board", row, column], name })),
  );
  const worked = site.maintenance.flatMap(({ bays }, row) =>
    bays.map((name, column) => ({ path: ["site", "maintenance", row, "bays", column], name })),
  );
  return [...noCharger([...places, ...worked], file), ...repeated(places, "each charger in one place")];
}

/** A token sent in the clear can be read and reused. */
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

/** Mistakes that span several keys. */
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
  ...boardChecks(file),
  ...openBearer(file),
  ...accessChecks(file.operator),
  ...file.alarms.notify.flatMap((entry, index) =>
    oneOf(entry, RECEIVERS, ["alarms", "notify", index], `exactly one of ${RECEIVERS.join(" and ")}`),
  ),
  ...chargerAndVehicleChecks(file),
];

interface Named {
  readonly path: Path;
  readonly name: string;
}

/** Names that no charger has. More than are shown are not looked up: that takes seconds in a running daemon. */
function noCharger(all: readonly Named[], { chargers }: ConfigFile): readonly Finding[] {
  const ids = chargers.map(({ id }) => id);
  const known = new Set<string>(ids);
  return all
    .filter(({ name }) => !known.has(name))
    .slice(0, MOST_MISTAKES)
    .map(({ path, name }) => {
      const meant = nearest(name, ids);
      return {
        path,
        found: `${JSON.stringify(name)}, which is no charger`,
        expected: meant === null ? "the id of a charger in chargers" : `did you mean ${meant}?`,
      };
    });
}

/** Every further use of a name. */
function repeated(all: readonly Named[], expected: string): readonly Finding[] {
  const first = new Map<string, Path>();
  return all.flatMap(({ path, name }): readonly Finding[] => {
    const earlier = first.get(name);
    if (earlier === undefined) {
      first.set(name, path);
      return [];
    }
    return [{ path, found: `${JSON.stringify(name)}, which ${pathText(earlier)} has too`, expected }];
  });
}

function limitChecks(file: ConfigFile): readonly Finding[] {
  return file.chargers.flatMap((charger, index) => {
    const path = ["chargers", index];
    const all: Finding[] = [];
    if (charger.current === undefined && charger.power === undefined)
      all.push({
        path,
        found: `${charger.id} without current and power`,
        expected: "at least one of them, e.g. current: { min: 6, max: 32 }",
      });
    for (const key of ["current", "power"] as const) {
      const limits = charger[key];
      if (limits === undefined || limits.min <= limits.max) continue;
      const [min, max, unit] =
        key === "current" ? [limits.min, limits.max, "A"] : [limits.min / 1000, limits.max / 1000, "kW"];
      all.push({
        path: [...path, key],
        found: `min ${min} ${unit}, max ${max} ${unit}`,
        expected: "a min that is not above max",
      });
    }
    return all;
  });
}

function bindingChecks(file: ConfigFile): readonly Finding[] {
  const named = file.vehicles.flatMap(({ charger }, index) =>
    charger === undefined ? [] : [{ path: ["vehicles", index, "charger"], name: charger, index }],
  );
  const bound = new Map<string, number[]>(file.chargers.map(({ id }) => [id, []]));
  for (const { name, index } of named) bound.get(name)?.push(index);
  const ambiguous = [...bound].flatMap(([charger, there]): readonly Finding[] => {
    const [first, second] = there;
    const nameless = there.findLast((index) => file.vehicles[index]?.identities.length === 0);
    if (first === undefined || second === undefined || nameless === undefined) return [];
    const others = there.filter((index) => index !== nameless).map((index) => file.vehicles[index]?.id);
    return [
      {
        path: ["vehicles", nameless, "charger"],
        found: `${JSON.stringify(charger)}, which ${others.slice(0, 3).join(", ")} has too`,
        expected:
          "one vehicle for each charger; or identities for all of them, so that the charger can say which it is",
      },
    ];
  });
  return [...noCharger(named, file), ...ambiguous];
}

/** Mistakes that span several chargers or vehicles. */
const chargerAndVehicleChecks = (file: ConfigFile): readonly Finding[] => [
  ...repeated(
    file.chargers.map(({ id }, index) => ({ path: ["chargers", index, "id"], name: id })),
    "an id of its own",
  ),
  ...repeated(
    file.vehicles.map(({ id }, index) => ({ path: ["vehicles", index, "id"], name: id })),
    "an id of its own",
  ),
  ...repeated(
    file.vehicles.flatMap(({ identities }, index) => {
      const own = new Set<string>();
      return identities.flatMap(({ kind, value }, at): readonly Named[] => {
        const name = identityKey(kind, value);
        // The MAC address and the EVCC id of a vehicle may be equal.
        if (own.has(name) && kind === "evccid") return [];
        own.add(name);
        return [{ path: ["vehicles", index, "identities", at], name }];
      });
    }),
    "an identity that names one vehicle only",
  ),
  ...limitChecks(file),
  ...bindingChecks(file),
];
