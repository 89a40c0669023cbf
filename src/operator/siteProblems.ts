import type { FailingReceiver } from "../alarms/notifier.ts";
import type { PartnerHealth } from "../control/ingest/partnerHealth.ts";
import { type Instant, type Millis, type ChargerId, iso } from "../domain/units.ts";
import type { RetentionAlarm } from "../retention/rules.ts";

/** Kinds in the order in which they are shown, the gravest first. */
export const PROBLEM_KINDS = [
  "disk",
  "database",
  "clock",
  "broker",
  "partner",
  "skew",
  "webhook",
  "publish",
  "refused",
  "notFollowed",
  "contradicted",
  "unknownVehicle",
  "offline",
  "silent",
  "neverHeard",
  "stranded",
  "reports",
  "retention",
  "notify",
  "access",
  "configuration",
] as const;

export type ProblemKind = (typeof PROBLEM_KINDS)[number];

/** Open problem: a fact that keeps the site from following its events. */
export interface Problem {
  /** ISO. Null: not known. */
  readonly since: string | null;
  readonly kind: ProblemKind;
  /** Charger, broker, listener or kind of stored data. Null: the whole site. */
  readonly subject: string | null;
  /** Sentence that describes the problem. */
  readonly message: string;
  /** Sentence that describes the remedy. */
  readonly action: string;
}

/** A broker that is not connected. */
interface BrokerOutage {
  /** Name in the configuration. "": the site's default broker. */
  readonly name: string;
  readonly since: Instant;
  readonly reason: string | null;
}

/** Webhook requests refused for their signature since the start. `at`, `reason`: the newest. */
interface RefusedWebhooks {
  readonly count: number;
  readonly at: Instant;
  readonly reason: string;
}

/** Sources of problems beside the control state. */
export interface ProblemSources {
  readonly startedAt: Instant;
  readonly partner: PartnerHealth;
  /** Largest difference between our clock and the partner's that is not a problem. */
  readonly maxSkew: Millis;
  readonly brokersAway: readonly BrokerOutage[];
  /** Brokers that dropped our connection repeatedly. `drops`: within the last ten minutes. */
  readonly brokersUnstable: readonly { readonly name: string; readonly drops: number }[];
  /** True while the broker of this charger is connected. */
  readonly isLinked: (charger: ChargerId) => boolean;
  /** Null: commits succeed. */
  readonly failingCommits: { readonly since: Instant; readonly reason: string } | null;
  /** `doubtedSince`: the lease on the site could not be renewed since then. Null there: it could. Null: the state is a folder. */
  readonly database: { readonly doubtedSince: Instant | null } | null;
  /** Null: the clock is believed. */
  readonly clockDoubtedSince: Instant | null;
  /** Report requests within the last hour, and their limit. Null: far below it. */
  readonly reportRequests: { readonly made: number; readonly most: number } | null;
  /** Kinds of data that nearly fill the disk space allowed to them. */
  readonly retention: readonly RetentionAlarm[];
  /** Reason why users and tokens cannot be read. Null: they can, or there is no login. */
  readonly accessFault: string | null;
  /** A changed configuration that did not start. Null: none. */
  readonly configurationFault: { readonly since: Instant; readonly message: string } | null;
  /** Receivers of alarms that do not accept them. */
  readonly failingReceivers: readonly FailingReceiver[];
  /** Reason why the webhook does not listen. Null: it does, or there is none. */
  readonly unboundWebhook: string | null;
  /** Null: no refused delivery since the last accepted one. */
  readonly refusedWebhooks: RefusedWebhooks | null;
}

/** Lost connections within ten minutes. A restart of a broker causes fewer. */
export const MANY_DROPS = 3;

/** Problems of the site as a whole. Those of its chargers are in problems.ts. */
export const ofTheSite = (sources: ProblemSources): readonly Problem[] => [
  ...brokerProblems(sources),
  ...machineProblems(sources),
  ...partnerProblems(sources),
  ...retentionProblems(sources),
  ...peopleProblems(sources),
];

const nameOf = (broker: string): string => (broker === "" ? "broker" : `broker ${broker}`);

function brokerProblems({ brokersAway, brokersUnstable }: ProblemSources): readonly Problem[] {
  const away = brokersAway.map(({ name, since, reason }): Problem => ({
    since: iso(since),
    kind: "broker",
    subject: name === "" ? null : name,
    message: `${reason ?? `the ${nameOf(name)} cannot be reached`}; no setpoint reaches its chargers until it is connected`,
    action: "check that the broker runs and that the configuration has its address and credentials",
  }));
  const unstable = brokersUnstable.map(({ name, drops }): Problem => ({
    since: null,
    kind: "broker",
    subject: name === "" ? null : name,
    message: `the ${nameOf(name)} dropped us ${drops} times within ten minutes`,
    action:
      "look for a second gateway of this site, or a client that uses our user or client id; setpointd acl prints a configuration that prevents it",
  }));
  return [...away, ...unstable];
}

/** Problems of the disk or the database, and of the clock of this machine. */
function machineProblems({
  failingCommits,
  database,
  clockDoubtedSince,
}: ProblemSources): readonly Problem[] {
  const found: Problem[] = [];
  if (database === null && failingCommits !== null)
    found.push({
      since: iso(failingCommits.since),
      kind: "disk",
      subject: null,
      message: `nothing can be stored: ${failingCommits.reason}; nothing new is decided, only releases go out`,
      action: "make room on the disk of the state folder, or replace the disk",
    });
  const unusable = database === null ? null : unusableDatabase(database, failingCommits);
  if (unusable !== null)
    found.push({
      since: iso(unusable.since),
      kind: "database",
      subject: null,
      message: unusable.message,
      action: "check the database of state.postgres.url and the network to it",
    });
  if (clockDoubtedSince !== null)
    found.push({
      since: iso(clockDoubtedSince),
      kind: "clock",
      subject: null,
      message: "the clock of this machine is behind the last record: no new event starts",
      action: "set the time of this machine (NTP), or wait for the partner to confirm it",
    });
  return found;
}

/** Null: the database is in use. */
function unusableDatabase(
  { doubtedSince }: { readonly doubtedSince: Instant | null },
  failing: ProblemSources["failingCommits"],
): { readonly since: Instant; readonly message: string } | null {
  if (doubtedSince !== null)
    return {
      since: doubtedSince,
      message:
        "the lease on the site cannot be renewed in the database: nothing is sent, and chargers fall back by their own lease",
    };
  if (failing === null) return null;
  return {
    since: failing.since,
    message: `nothing can be stored: ${failing.reason}; nothing new is decided`,
  };
}

/** Problems of what the partner answers, delivers and is sent. */
function partnerProblems(sources: ProblemSources): readonly Problem[] {
  const { partner, maxSkew, unboundWebhook, refusedWebhooks, reportRequests } = sources;
  const found: Problem[] = [];
  if (partner.failures > 0)
    found.push({
      since: iso(partner.answeredAt),
      kind: "partner",
      subject: null,
      message: `the partner cannot be asked: ${partner.lastFailure ?? "no answer"}; the stored plan goes on`,
      action: "check network, vtn.baseUrl and credentials; setpointd poll tries again at once",
    });
  if (partner.skew !== null && partner.skewed > 1 && Math.abs(partner.skew) > maxSkew)
    found.push({
      since: iso(partner.answeredAt),
      kind: "skew",
      subject: null,
      message: `our clock is ${Math.round(Math.abs(partner.skew) / 1000)} s ${partner.skew > 0 ? "ahead of" : "behind"} the partner's`,
      action: "check the time of this machine (NTP)",
    });
  if (unboundWebhook !== null)
    found.push({
      since: null,
      kind: "webhook",
      subject: null,
      message: `no webhook delivery can arrive: ${unboundWebhook}; events are fetched by polling`,
      action:
        "bring up the network that has the address of webhook.listen, or name 0.0.0.0; it is tried again every 5 s",
    });
  if (refusedWebhooks !== null)
    found.push({
      since: iso(refusedWebhooks.at),
      kind: "webhook",
      subject: null,
      message: `webhook deliveries refused: ${refusedWebhooks.count}; the last one: ${refusedWebhooks.reason}`,
      action:
        "compare webhook.auth with what the partner signs; setpointd webhook test sends a signed example",
    });
  if (reportRequests !== null)
    found.push({
      since: null,
      kind: "reports",
      subject: null,
      message: `reports made ${reportRequests.made} of at most ${reportRequests.most} requests within the last hour; further ones wait`,
      action: "ask the partner for fewer reports, or for longer intervals in each",
    });
  return found;
}

const retentionProblems = ({ retention }: ProblemSources): readonly Problem[] =>
  retention.map(({ kind, since, message, action }) => ({
    since: iso(since),
    kind: "retention",
    subject: kind,
    message,
    action,
  }));

/** Problems that keep people from alarms, from signing in, or from what they changed. */
function peopleProblems({
  failingReceivers,
  accessFault,
  configurationFault,
}: ProblemSources): readonly Problem[] {
  const found = failingReceivers.map(({ name, since, reason }): Problem => ({
    since: iso(since),
    kind: "notify",
    subject: name,
    message: `alarms cannot be sent to ${name}: ${reason}`,
    action: "check that it runs, and its address, header fields and secret under alarms.notify",
  }));
  if (accessFault !== null)
    found.push({
      since: null,
      kind: "access",
      subject: null,
      message: `nobody can sign in: ${accessFault}`,
      action:
        "put access.json back from a backup; or remove it, restart, and add the users again with setpointd user add",
    });
  if (configurationFault !== null)
    found.push({
      since: iso(configurationFault.since),
      kind: "configuration",
      subject: null,
      message: configurationFault.message,
      action:
        'correct the file, then "Apply the file" on the page System, or setpointd apply --reason TEXT; until the file changes a restart keeps what runs',
    });
  return found;
}
