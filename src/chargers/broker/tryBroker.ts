import { isNative } from "../../domain/charger.ts";
import { iso } from "../../domain/units.ts";
import { nativeTopics, siteTopic } from "../native/messages.ts";
import { brokerAccess, SUGGESTED_USER } from "./access.ts";
import { type ConnectionOptions, type NamedBroker, sectionOf } from "./address.ts";
import { isTooLarge } from "./brokerAnswers.ts";
import type { BrokerSession } from "./session.ts";
import { TopicEvidence } from "./evidence.ts";

/** Result of trying one broker: login, subscriptions and publishes. */
export type BrokerTrial = {
  /** Name in the configuration; "" is the site's own. */
  readonly name: string;
  readonly connected: boolean;
  /** Reason why it is not connected, as far as known. */
  readonly trouble: string;
  /** False: MQTT 3.1.1, which does not report a refused publish. */
  readonly reportsRefusals: boolean;
  readonly refusedFilters: readonly string[];
  /** Topics of native chargers that a payload without effect was published on. */
  readonly publishes: readonly PublishTrial[];
  readonly verdict: BrokerVerdict;
};

type PublishTrial = {
  readonly topic: string;
  /** Null: the broker accepted it. */
  readonly refusal: string | null;
  /** False: the topic has no subscriber. True: it has one, or the broker does not report it. */
  readonly hasSubscriber: boolean;
};

/** A topic that a broker refuses, or about which it reports nothing. */
type TopicFinding = {
  /** Word of an access list: `write` is a publish, `read` a subscription. */
  readonly access: "write" | "read";
  readonly topic: string;
  readonly found: string;
};

/** Login and access list of one broker, for people. */
export type BrokerVerdict = {
  /** Section of the configuration. */
  readonly broker: string;
  /** True: it is connected, and refuses none of the topics. */
  readonly passed: boolean;
  readonly isEmbedded: boolean;
  /** Null: it is not connected. */
  readonly connectedSince: string | null;
  readonly trouble: string | null;
  readonly mqtt: "5" | "3.1.1" | null;
  /** The secret part is replaced by asterisks. */
  readonly clientId: string;
  readonly username: string | null;
  /** Counts of topics of the access list. `unused`: nothing was published there since the broker connected. */
  readonly topics: {
    readonly allowed: number;
    readonly refused: number;
    readonly untold: number;
    readonly unused: number;
  };
  /** `MOST_NAMED` at most, as all lists here. */
  readonly refused: readonly TopicFinding[];
  readonly untold: readonly TopicFinding[];
  /** Topics on which no client listens: the charger is away, or may not subscribe. */
  readonly unheard: readonly string[];
  /** Lines of mosquitto's `acl_file` that allow what is refused. */
  readonly acl: readonly string[];
};

/** A `set` of version 0: every native charger ignores unknown versions. */
const IGNORED = '{"v":0}';
/** Publishes at a time: commands wait in the same line. */
const AT_A_TIME = 20;
/** Cap on topics that an answer names. */
const MOST_NAMED = 50;
/** The facts that a verdict is made of. */
export interface BrokerFacts {
  readonly name: string;
  readonly isEmbedded: boolean;
  readonly version: 4 | 5;
  readonly clientId: string;
  readonly username: string | null;
  /** Topics of the access list. */
  readonly access: { readonly write: readonly string[]; readonly read: readonly string[] };
  /** Topics on which every payload commands a charger of another make than native. */
  readonly commanding: ReadonlySet<string>;
  readonly refusedFilters: readonly string[];
  /** A text: the broker is not connected, and why. */
  readonly evidence: TopicEvidence | string;
  readonly unheard: readonly string[];
}

/** Judges login and access list. A broker that reports nothing has not refused. */
export function judgeBroker(facts: BrokerFacts): BrokerVerdict {
  const { name, isEmbedded, version, clientId, username, evidence } = facts;
  const about = { broker: sectionOf(name), isEmbedded, clientId, username };
  if (typeof evidence === "string") return { ...about, ...NOT_CONNECTED, trouble: evidence };
  const rows = [...judgeWrites(facts, evidence), ...judgeReads(facts, evidence)];
  const of = (verdict: Row["verdict"]): readonly Row[] => rows.filter((row) => row.verdict === verdict);
  const [refused, untold] = [of("refused"), of("untold")];
  return {
    ...about,
    passed: refused.length === 0,
    connectedSince: evidence.since === null ? null : iso(evidence.since),
    trouble: null,
    mqtt: version === 5 ? "5" : "3.1.1",
    topics: {
      allowed: of("allowed").length,
      refused: refused.length,
      untold: untold.length,
      unused: of("unused").length,
    },
    refused: named(refused),
    untold: named(untold),
    unheard: facts.unheard.slice(0, MOST_NAMED),
    acl: aclLines(refused, name, username),
  };
}

const NOT_CONNECTED = {
  passed: false,
  connectedSince: null,
  mqtt: null,
  topics: { allowed: 0, refused: 0, untold: 0, unused: 0 },
  refused: [],
  untold: [],
  unheard: [],
  acl: [],
} as const;

interface Row extends TopicFinding {
  readonly verdict: "allowed" | "refused" | "untold" | "unused";
  /** The topic as the access list has it. */
  readonly listed: string;
}

const named = (rows: readonly Row[]): readonly TopicFinding[] =>
  rows.slice(0, MOST_NAMED).map(({ access, topic, found }) => ({ access, topic, found }));

function judgeWrites(
  { isEmbedded, version, access, commanding }: BrokerFacts,
  evidence: TopicEvidence,
): readonly Row[] {
  const refusals = evidence.refusals();
  return access.write.flatMap((listed): readonly Row[] => {
    const row = { access: "write", listed, topic: listed, found: "" } as const;
    const refused = refusals.get(listed) ?? [];
    if (refused.length > 0)
      return refused.map(([topic, found]) => ({ ...row, topic, found, verdict: "refused" }));
    if (isEmbedded) return [{ ...row, verdict: "allowed" }];
    if (version === 4) return [{ ...row, verdict: "untold", found: SILENT_VERSION }];
    if (evidence.isAccepted(listed)) return [{ ...row, verdict: "allowed" }];
    if (commanding.has(listed)) return [{ ...row, verdict: "untold", found: WOULD_COMMAND }];
    return [{ ...row, verdict: "unused" }];
  });
}

function judgeReads(
  { isEmbedded, access, refusedFilters }: BrokerFacts,
  evidence: TopicEvidence,
): readonly Row[] {
  const refused = new Set(refusedFilters);
  return access.read.map((listed): Row => {
    const row = { access: "read", listed, topic: listed, found: "" } as const;
    if (refused.has(listed))
      return { ...row, verdict: "refused", found: "the broker refuses the subscription" };
    if (isEmbedded || evidence.isReceived(listed)) return { ...row, verdict: "allowed" };
    return { ...row, verdict: "untold", found: WITHHELD };
  });
}

const SILENT_VERSION = "cannot be known with MQTT 3.1.1: the broker does not report a refused publish";
const WOULD_COMMAND = "cannot be known without a command: the setpoint test of the charger shows it";
/** mosquitto 2.0 with an `acl_file` grants every subscription. */
const WITHHELD =
  "granted, and no message has come yet: some brokers grant a subscription and withhold its messages";

function aclLines(rows: readonly Row[], name: string, username: string | null): readonly string[] {
  const refused = rows.filter(({ found }) => !isTooLarge(found));
  if (refused.length === 0) return [];
  const lines = new Set(refused.map(({ access, listed }) => `topic ${access} ${listed}`));
  const nobody = `# ${sectionOf(name)}.username is not set: give setpointd a user of its own.`;
  return [
    ...(username === null ? [nobody] : []),
    `user ${username ?? SUGGESTED_USER}`,
    ...[...lines].slice(0, MOST_NAMED),
  ];
}

type SiteTopics = Pick<
  ConnectionOptions,
  "site" | "chargers" | "profiles" | "onHoldMessage" | "homeAssistant"
>;

/** The topics of the access list at one broker, and those of them that command a charger of another make. */
export function topicsAt(
  name: string,
  { prefix }: NamedBroker,
  { site, chargers, profiles, onHoldMessage, homeAssistant }: SiteTopics,
): Pick<BrokerFacts, "access" | "commanding"> {
  const { daemon, chargers: others } = brokerAccess({
    site,
    prefix,
    chargers: chargers.filter(({ broker }) => broker === name),
    profiles,
    isHome: name === "",
    takesHolds: onHoldMessage !== undefined,
    homeAssistant: homeAssistant?.prefix ?? null,
  });
  return { access: daemon, commanding: new Set([...others.values()].flatMap(({ read }) => read)) };
}

/** Notes what one broker allows. `filters`: its subscriptions. Called for each connection. */
export function evidenceAt(
  name: string,
  broker: NamedBroker,
  filters: readonly string[],
  options: SiteTopics & Pick<ConnectionOptions, "now">,
): () => TopicEvidence {
  // Topics of other makes stand in no list with a +.
  const native = options.chargers.filter(isNative);
  const { access } = topicsAt(name, broker, { ...options, chargers: native });
  return () => new TopicEvidence(filters, access.write, options.now);
}

/** Sites, chargers and brokers of a trial. `clientId`: without the name of the broker. */
export type TrialOptions = SiteTopics & Pick<ConnectionOptions, "clientId" | "presencePath">;

/**
 * Tries one broker over the connection that it has: with `use_username_as_clientid`, another client with the same user
 * name would take its place. No payload commands a charger.
 */
export async function tryBroker(
  name: string,
  broker: NamedBroker,
  session: Pick<BrokerSession, "connected" | "trouble" | "terms" | "tryFilters" | "tryPublish">,
  options: TrialOptions,
): Promise<BrokerTrial> {
  await session.tryFilters();
  // A broker of MQTT 3.1.1 reports nothing about a publish, and may end the connection at a refused one.
  const reportsRefusals = session.terms.version === 5;
  const publishes =
    session.connected && reportsRefusals ? await tryPublishes(name, broker, session, options) : [];
  const { connected, trouble, terms } = session;
  const { version, refusedFilters, evidence } = terms;
  const known = options.clientId.slice(0, -SECRET_LENGTH);
  const verdict = judgeBroker({
    name,
    ...topicsAt(name, broker, options),
    isEmbedded: broker.isEmbedded === true,
    version,
    clientId: `${known}${"*".repeat(SECRET_LENGTH)}${name === "" ? "" : `-${name}`}`,
    username: broker.address.username,
    refusedFilters,
    evidence: connected && evidence !== undefined ? evidence : trouble,
    unheard: publishes.flatMap(({ topic, hasSubscriber }) => (hasSubscriber ? [] : [topic])),
  });
  return { name, connected, trouble, reportsRefusals, refusedFilters, publishes, verdict };
}

/** The last characters of a client id: nobody can guess them (`mqttClientId`). */
const SECRET_LENGTH = 8;

/** Publishes a payload without effect on the topics of the site itself and of each native charger. */
async function tryPublishes(
  name: string,
  { prefix }: NamedBroker,
  session: Pick<BrokerSession, "tryPublish">,
  { site, chargers, presencePath }: TrialOptions,
): Promise<readonly PublishTrial[]> {
  const presence = presencePath ?? "gateway/online";
  await session.tryPublish(siteTopic(prefix, site, presence), "true", true);
  // An empty payload clears. Nobody commissions without the daemon while it runs, and this alarm was never open.
  const cleared = ["gateway/commissioning", ...(name === "" ? ["alarms/broker-trial"] : [])];
  for (const path of cleared)
    if (path !== presence) await session.tryPublish(siteTopic(prefix, site, path), "", true);
  const native = chargers.filter((charger) => charger.broker === name && isNative(charger));
  const topics = native.flatMap(({ id }) => nativeTopics(prefix, site, id)?.set ?? []);
  const trials: PublishTrial[] = [];
  for (let at = 0; at < topics.length; at += AT_A_TIME) {
    const some = topics.slice(at, at + AT_A_TIME).map(async (topic) => {
      const { sent, hasSubscriber } = await session.tryPublish(topic, IGNORED);
      return { topic, refusal: sent.ok ? null : sent.reason, hasSubscriber };
    });
    trials.push(...(await Promise.all(some)));
  }
  return trials;
}
