import { type CommandRecord, isToBeFreed, reallySent } from "../domain/command.ts";
import { formatLevel } from "../domain/setpoint.ts";
import type { ControlState } from "../control/state.ts";
import type { PartnerHealth } from "../control/ingest/partnerHealth.ts";
import type { RetentionAlarm } from "../retention/caps.ts";
import { between, type ChargerId, type Instant, iso, type Millis, seconds } from "../domain/units.ts";

/** Kinds in the order in which they are shown, the gravest first. */
const PROBLEM_KINDS = [
  "disk",
  "clock",
  "broker",
  "partner",
  "skew",
  "webhook",
  "publish",
  "refused",
  "notFollowed",
  "contradicted",
  "offline",
  "silent",
  "neverHeard",
  "stranded",
  "reports",
  "retention",
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
  /** Null: the clock is believed. */
  readonly clockDoubtedSince: Instant | null;
  /** Report requests within the last hour, and their limit. Null: far below it. */
  readonly reportRequests: { readonly made: number; readonly most: number } | null;
  /** Kinds of data that nearly fill the disk space allowed to them. */
  readonly retention: readonly RetentionAlarm[];
  /** Null: no refused delivery since the last accepted one. */
  readonly refusedWebhooks: RefusedWebhooks | null;
}

/** Lost connections within ten minutes. A restart of a broker causes fewer. */
export const MANY_DROPS = 3;

/** Time after a start within which a charger should send its first message. */
const FIRST_MESSAGE_WITHIN = seconds(60);

/** Open problems, grouped by kind, the oldest first within a kind. */
export function problems(depot: ControlState, sources: ProblemSources, now: Instant): readonly Problem[] {
  const all = [...ofTheSite(sources), ...ofChargers(depot, sources, now), ...stranded(depot)];
  const rank = (problem: Problem): number => PROBLEM_KINDS.indexOf(problem.kind);
  return all.toSorted((a, b) => rank(a) - rank(b) || (a.since ?? "").localeCompare(b.since ?? ""));
}

/** Number of problems by kind, zeros included: a missing gauge would look like a healthy one. */
export function countProblems(found: readonly Problem[]): Readonly<Record<ProblemKind, number>> {
  const counts = Object.fromEntries(PROBLEM_KINDS.map((kind) => [kind, 0]));
  for (const { kind } of found) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts as Record<ProblemKind, number>;
}

/**
 * True while the state of a charger is unknown: offline, silent, behind a lost broker, or without a message since the
 * start.
 */
export function isUnreachable(
  depot: ControlState,
  charger: ChargerId,
  { startedAt, isLinked }: Pick<ProblemSources, "startedAt" | "isLinked">,
  now: Instant,
): boolean {
  const { online, heardAt } = depot.presenceOf(charger);
  const neverHeard = heardAt === null && between(startedAt, now) >= FIRST_MESSAGE_WITHIN;
  return online === false || depot.silence.has(charger) || neverHeard || !isLinked(charger);
}

function ofTheSite(sources: ProblemSources): readonly Problem[] {
  const { partner, maxSkew, brokersAway, brokersUnstable } = sources;
  const { failingCommits, clockDoubtedSince, refusedWebhooks, reportRequests, retention } = sources;
  const found: Problem[] = brokersAway.map(({ name, since, reason }) => ({
    since: iso(since),
    kind: "broker",
    subject: name === "" ? null : name,
    message: reason ?? `the ${name === "" ? "broker" : `broker ${name}`} cannot be reached`,
    action: "check that the broker runs and that the configuration has its address and credentials",
  }));
  for (const { name, drops } of brokersUnstable)
    found.push({
      since: null,
      kind: "broker",
      subject: name === "" ? null : name,
      message: `the ${name === "" ? "broker" : `broker ${name}`} dropped us ${drops} times within ten minutes`,
      action:
        "look for a second gateway of this site, or a client that uses our user or client id; setpointd acl prints a configuration that prevents it",
    });
  if (failingCommits !== null)
    found.push({
      since: iso(failingCommits.since),
      kind: "disk",
      subject: null,
      message: `commits fail: ${failingCommits.reason}; nothing new is decided, only releases go out`,
      action: "make room on the disk of the state folder, or replace the disk",
    });
  if (clockDoubtedSince !== null)
    found.push({
      since: iso(clockDoubtedSince),
      kind: "clock",
      subject: null,
      message: "the clock of this machine is behind the last record: no new event starts",
      action: "set the time of this machine (NTP), or wait for the partner to confirm it",
    });
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
  if (refusedWebhooks !== null)
    found.push({
      since: iso(refusedWebhooks.at),
      kind: "webhook",
      subject: null,
      message: `${refusedWebhooks.count} webhook deliveries refused, the last one: ${refusedWebhooks.reason}`,
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
  for (const { kind, since, message, action } of retention)
    found.push({ since: iso(since), kind: "retention", subject: kind, message, action });
  return found;
}

function ofChargers(depot: ControlState, sources: ProblemSources, now: Instant): readonly Problem[] {
  return [...depot.chargers.keys()].flatMap((id) => {
    const reach = reachProblem(depot, id, sources, now);
    const publish = depot.commands.publishFailureOf(id);
    const found: Problem[] = reach === null ? [] : [reach];
    if (publish !== undefined && sources.isLinked(id))
      found.push({
        since: iso(publish.since),
        kind: "publish",
        subject: id,
        message: `the command of ${id} was not published: ${publish.reason}`,
        action: "allow that topic in the broker's access list: setpointd acl prints the whole list",
      });
    const record = depot.commands.get(id);
    const verdict = record === undefined ? null : verdictProblem(id, record);
    const claimed = record === undefined ? null : claimProblem(depot, record);
    return [...found, ...[verdict, claimed].filter((problem) => problem !== null)];
  });
}

/** Null: the charger is reachable, or its broker is the problem. */
function reachProblem(
  depot: ControlState,
  id: ChargerId,
  { startedAt, isLinked }: ProblemSources,
  now: Instant,
): Problem | null {
  if (!isLinked(id)) return null;
  const { online, heardAt } = depot.presenceOf(id);
  const lastHeard = heardAt === null ? null : iso(heardAt);
  const action = "check power, network and MQTT settings of the charger";
  if (online === false)
    return { since: lastHeard, kind: "offline", subject: id, message: `${id} is offline`, action };
  if (depot.silence.has(id))
    return {
      since: lastHeard,
      kind: "silent",
      subject: id,
      message: `${id} sent messages before and is silent now`,
      action,
    };
  if (heardAt !== null || between(startedAt, now) < FIRST_MESSAGE_WITHIN) return null;
  return {
    since: iso(startedAt),
    kind: "neverHeard",
    subject: id,
    message: `${id} has not sent a message since the start: it is unknown whether it receives commands`,
    action: `compare its topics with setpointd profile show, and the broker's access list; then setpointd commission ${id}`,
  };
}

function verdictProblem(id: ChargerId, record: CommandRecord): Problem | null {
  const { command, progress, outAt } = record;
  if (progress !== "notFollowed" && progress !== "refused") return null;
  const level = formatLevel(command.desired);
  const since = iso(outAt ?? command.decidedAt);
  return progress === "refused"
    ? {
        since,
        kind: "refused",
        subject: id,
        message: `${id} refuses ${level}`,
        action: `read its reason with setpointd audit --charger ${id}`,
      }
    : {
        since,
        kind: "notFollowed",
        subject: id,
        message: `${id} accepted ${level} and does not follow it`,
        action: `look for another controller of this charger; setpointd commission ${id} tries it`,
      };
}

/** Null: no other charger reports the vehicle that this one is limited for. */
function claimProblem({ occupancy }: ControlState, { command }: CommandRecord): Problem | null {
  const occupant = occupancy.at(command.charger);
  if (occupant.kind !== "vehicle" || occupant.source !== "kept") return null;
  const where = occupancy.where(occupant.vehicle);
  return {
    since: iso(command.decidedAt),
    kind: "contradicted",
    subject: command.charger,
    message: `${command.charger} keeps its limit for ${occupant.vehicle}, which is reported at ${where ?? "no charger"}; ${command.charger} has not reported that it is unplugged`,
    action: `check which of the two has the vehicle; setpointd release ${command.charger} frees it`,
  };
}

/** Chargers that left the configuration while they were limited. */
function stranded(depot: ControlState): readonly Problem[] {
  return [...depot.commands.values()].flatMap((record) => {
    const { charger } = record.command;
    if (depot.chargers.has(charger) || !isToBeFreed(record)) return [];
    return {
      since: iso(record.command.decidedAt),
      kind: "stranded",
      subject: charger,
      message: `${charger} left the configuration while it was limited to ${formatLevel((reallySent(record) ?? record).command.desired)}`,
      action: `put it back into the configuration and run setpointd release ${charger}, or free it at the charger`,
    } satisfies Problem;
  });
}
