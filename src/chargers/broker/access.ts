import { type Charger, isNative } from "../../domain/charger.ts";
import { birthTopic, discoveryTopic, SITE_STATE } from "../native/homeAssistant.ts";
import {
  gatewayOnlineTopic,
  HOLD_RESULT,
  holdRequestTopic,
  nativeFilters,
  siteTopic,
} from "../native/messages.ts";
import { instanceSettings } from "../profile/level.ts";
import type { Profile } from "../profile/schema.ts";
import { topicsFor } from "../profile/publishes.ts";

/** Topics that a charger publishes on. All others below the site's root are the daemon's. */
const REPORTED = ["ack", "telemetry", "online"];

/**
 * The client that speaks for each charger, at a broker with one user name for all: the first that publishes
 * on the charger's topics, until it disconnects. Another client cannot impersonate the charger meanwhile.
 */
export class TopicOwners {
  readonly #root: string;
  readonly #owners = new Map<string, string>();
  readonly #shared: ReadonlySet<string>;

  /** `root`: `<prefix>/<site>`. `shared`: topics below it on which every client may publish. */
  constructor(root: string, shared: readonly string[] = []) {
    this.#root = `${root}/`;
    this.#shared = new Set(shared);
  }

  /**
   * Reason why this client may not publish on a topic. Null: it may. Topics outside of the site's root are
   * free.
   */
  refusal(client: string, topic: string): string | null {
    if (!topic.startsWith(this.#root) || this.#shared.has(topic)) return null;
    const [chargers, charger = "", leaf = "", ...rest] = topic.slice(this.#root.length).split("/");
    if (chargers !== "chargers" || !REPORTED.includes(leaf) || rest.length > 0)
      return "only setpointd publishes there";
    const owner = this.#owners.get(charger) ?? client;
    if (owner !== client) return `${charger} is connected as another client`;
    this.#owners.set(charger, client);
    return null;
  }

  left(client: string): void {
    for (const [charger, owner] of this.#owners) if (owner === client) this.#owners.delete(charger);
  }
}

/** Topics that one user of a broker may publish on and read. They may hold wildcards. */
interface Rights {
  readonly write: readonly string[];
  readonly read: readonly string[];
}

/** The rights that a site needs at one of its brokers. */
export interface BrokerAccess {
  readonly daemon: Rights;
  /** Native chargers have their rights by pattern: the user is named like the charger. */
  readonly hasNative: boolean;
  /** Chargers of other makes. Their rights are seen from the charger: it reads what the daemon writes. */
  readonly chargers: ReadonlyMap<string, Rights>;
}

export interface BrokerAccessOptions {
  readonly site: string;
  readonly prefix: string;
  /** Chargers that are connected to this broker. */
  readonly chargers: readonly Charger[];
  readonly profiles: ReadonlyMap<string, Profile>;
  /** The site's own broker: state and prices of the whole site are published there. */
  readonly isHome: boolean;
  /** Holds are accepted from MQTT. */
  readonly takesHolds: boolean;
  /** Prefix of Home Assistant's topics. Null: no discovery. */
  readonly homeAssistant: string | null;
}

/**
 * Topics that each client must be able to publish and read. A charger without a valid profile has no
 * rights.
 */
export function brokerAccess(options: BrokerAccessOptions): BrokerAccess {
  const { site, prefix, chargers, profiles, isHome, takesHolds } = options;
  const homeAssistant = isHome ? options.homeAssistant : null;
  const hasHolds = isHome && takesHolds;
  const others = new Map<string, Rights>();
  for (const charger of chargers) {
    const profile = profiles.get(charger.profile);
    if (profile === undefined || profile.nativePayloads) continue;
    const binding = instanceSettings(charger, profile);
    if (!binding.ok) continue;
    const { published, subscribed } = topicsFor(binding.instance);
    others.set(charger.id, { write: subscribed, read: published });
  }
  const hasNative = chargers.some(isNative);
  const rights = [...others.values()];
  const write = [
    ...(hasNative ? ["set", "reboot"].map((leaf) => siteTopic(prefix, site, `chargers/+/${leaf}`)) : []),
    ...(hasNative || isHome ? [siteTopic(prefix, site, "chargers/+/state")] : []),
    ...(isHome ? [siteTopic(prefix, site, "prices/+"), siteTopic(prefix, site, "alarms/+")] : []),
    ...(hasHolds ? [siteTopic(prefix, site, HOLD_RESULT)] : []),
    ...(homeAssistant === null
      ? []
      : [siteTopic(prefix, site, SITE_STATE), discoveryTopic(homeAssistant, "+")]),
    gatewayOnlineTopic(prefix, site),
    siteTopic(prefix, site, "gateway/commissioning"),
    ...rights.flatMap(({ read }) => read),
  ];
  const read = [
    ...(hasNative ? nativeFilters(prefix, site) : []),
    ...(hasHolds ? [holdRequestTopic(prefix, site)] : []),
    ...(homeAssistant === null ? [] : [birthTopic(homeAssistant)]),
    ...rights.flatMap(({ write }) => write),
  ];
  return { daemon: { write: [...new Set(write)], read: [...new Set(read)] }, hasNative, chargers: others };
}

/** User name in the list where the configuration names none. */
export const SUGGESTED_USER = "depot";

/** The file for mosquitto's `acl_file`, with the lines of mosquitto.conf that go with it. `user`: the daemon's. */
export function mosquittoAcl(
  { daemon, hasNative, chargers }: BrokerAccess,
  { user, site, prefix }: { readonly user: string; readonly site: string; readonly prefix: string },
): readonly string[] {
  const pattern = (access: string, leaf: string): string =>
    `pattern ${access} ${siteTopic(prefix, site, `chargers/%u/${leaf}`)}`;
  return [
    "# In mosquitto.conf:",
    "#   allow_anonymous false",
    "#   password_file /etc/mosquitto/passwords",
    "#   acl_file /etc/mosquitto/setpointd.acl",
    "#   use_username_as_clientid true",
    "# With the last line no client can throw another off by taking its client id.",
    "# Leave it out beside setpointd ocpp, which has a connection for each of its chargers.",
    "",
    `user ${user}`,
    ...daemon.write.map((topic) => `topic write ${topic}`),
    ...daemon.read.map((topic) => `topic read ${topic}`),
    ...[...chargers].flatMap(([charger, { write, read }]) => [
      "",
      `user ${charger}`,
      ...read.map((topic) => `topic read ${topic}`),
      ...write.map((topic) => `topic write ${topic}`),
    ]),
    ...(hasNative
      ? [
          "",
          "# Native chargers: one user each, named like the charger.",
          pattern("read", "set"),
          pattern("read", "reboot"),
          pattern("write", "ack"),
          pattern("write", "telemetry"),
          pattern("write", "online"),
        ]
      : []),
  ];
}

/** The part of the same file for the OCPP bridge: one user for all of its chargers. */
export const mosquittoBridgeAcl = (
  chargers: readonly string[],
  { user, site, prefix }: { readonly user: string; readonly site: string; readonly prefix: string },
): readonly string[] => [
  "# Add this to the list of setpointd acl for the daemon's configuration. In mosquitto.conf leave out",
  "# use_username_as_clientid: the bridge has a connection for each charger, and they would end each other.",
  "",
  `user ${user}`,
  ...chargers.flatMap((charger) =>
    (["read set", "read reboot", "write ack", "write telemetry", "write online"] as const).map((right) => {
      const [access, leaf] = right.split(" ");
      return `topic ${access} ${siteTopic(prefix, site, `chargers/${charger}/${leaf}`)}`;
    }),
  ),
];
