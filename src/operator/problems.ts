import type { ControlState } from "../control/state.ts";
import { type CommandRecord, isToBeFreed, reallySent } from "../domain/command.ts";
import { formatLevel } from "../domain/setpoint.ts";
import { between, type ChargerId, type Instant, iso, seconds } from "../domain/units.ts";
import { sanitizeForLog } from "../platform/text.ts";
import { inSteps, type ResumableTask } from "../platform/cooperative.ts";
import {
  PROBLEM_KINDS,
  type ProblemKind,
  type Problem,
  type ProblemSources,
  ofTheSite,
} from "./siteProblems.ts";

/** Time after a start within which a charger should send its first message. */
const FIRST_MESSAGE_WITHIN = seconds(60);

/** Open problems, grouped by kind, the oldest first within a kind. A site may have 20,000 chargers. */
export function* problems(
  state: ControlState,
  sources: ProblemSources,
  now: Instant,
): ResumableTask<readonly Problem[]> {
  const all = [...ofTheSite(sources)];
  yield* inSteps(state.chargers.keys(), (id) => {
    for (const problem of ofCharger(state, id, sources, now)) all.push(problem);
  });
  yield* inSteps(state.commands.values(), (record) => {
    const problem = stranded(state, record);
    if (problem !== null) all.push(problem);
  });
  const byKind = new Map<ProblemKind, Problem[]>(PROBLEM_KINDS.map((kind) => [kind, []]));
  yield* inSteps(all, (problem) => byKind.get(problem.kind)?.push(problem));
  const inOrder: Problem[] = [];
  for (const ofOneKind of byKind.values()) {
    if (ofOneKind.length === 0) continue;
    yield;
    for (const problem of ofOneKind.toSorted(oldestFirst)) inOrder.push(problem);
  }
  return inOrder;
}

/** Times of one format: a comparison of texts by language would take ten times as long. */
function oldestFirst(a: Problem, b: Problem): number {
  const [first, second] = [a.since ?? "", b.since ?? ""];
  return first === second ? 0 : first < second ? -1 : 1;
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
  state: ControlState,
  charger: ChargerId,
  { startedAt, isLinked }: Pick<ProblemSources, "startedAt" | "isLinked">,
  now: Instant,
): boolean {
  const { online, heardAt } = state.presence.of(charger);
  const neverHeard = heardAt === null && between(startedAt, now) >= FIRST_MESSAGE_WITHIN;
  return online === false || state.silence.has(charger) || neverHeard || !isLinked(charger);
}

function ofCharger(
  state: ControlState,
  id: ChargerId,
  sources: ProblemSources,
  now: Instant,
): readonly Problem[] {
  const reach = reachProblem(state, id, sources, now);
  const publish = state.commands.publishFailureOf(id);
  const found: Problem[] = reach === null ? [] : [reach];
  if (publish !== undefined && sources.isLinked(id))
    found.push({
      since: iso(publish.since),
      kind: "publish",
      subject: id,
      message: `the command of ${id} was not published: ${publish.reason}`,
      action: "allow that topic in the broker's access list: setpointd acl prints the whole list",
    });
  const record = state.commands.get(id);
  const verdict = record === undefined ? null : verdictProblem(id, record);
  const claimed = record === undefined ? null : claimProblem(state, record);
  return [
    ...found,
    ...[verdict, claimed, unknownVehicleProblem(state, id)].filter((problem) => problem !== null),
  ];
}

/** First remedy for a charger that sends nothing. */
const CHECK_LINK = "check power, network and MQTT settings of the charger";

/** Null: the charger is reachable, or its broker is the problem. */
function reachProblem(
  state: ControlState,
  id: ChargerId,
  { startedAt, isLinked }: ProblemSources,
  now: Instant,
): Problem | null {
  if (!isLinked(id)) return null;
  const { online, heardAt } = state.presence.of(id);
  const lastHeard = heardAt === null ? null : iso(heardAt);
  if (online === false)
    return {
      since: lastHeard,
      kind: "offline",
      subject: id,
      message: `${id} is offline: no setpoint reaches it until it is back`,
      action: CHECK_LINK,
    };
  if (state.silence.has(id))
    return {
      since: lastHeard,
      kind: "silent",
      subject: id,
      message: `${id} sent messages before and is silent now: whether it follows its setpoint is not known`,
      action: CHECK_LINK,
    };
  if (heardAt !== null || between(startedAt, now) < FIRST_MESSAGE_WITHIN) return null;
  return {
    since: iso(startedAt),
    kind: "neverHeard",
    subject: id,
    message: `${id} has not sent a message since the start: it is unknown whether it receives commands`,
    action: `${CHECK_LINK}; compare its topics with setpointd profile show, and the broker's access list; then test it: page System, or setpointd commission ${id}`,
  };
}

function verdictProblem(id: ChargerId, record: CommandRecord): Problem | null {
  const { command, progress, outAt, refusal } = reallySent(record) ?? record;
  if (progress !== "notFollowed" && progress !== "refused") return null;
  const level = formatLevel(command.desired);
  const since = iso(outAt ?? command.decidedAt);
  return progress === "refused"
    ? {
        since,
        kind: "refused",
        subject: id,
        message: `${id} refuses ${level}${refusalText(refusal)}`,
        action: `change that in the settings of the charger, or in its limits in the configuration; then test it: page System, or setpointd commission ${id}; its answers: page Log, or setpointd audit --charger ${id}`,
      }
    : {
        since,
        kind: "notFollowed",
        subject: id,
        // Not "accepted": some makes answer nothing, and a refusal is judged by the readings as well.
        message: `${id} does not follow its setpoint of ${level}`,
        action: `look at the charger, and for another controller of it; "Send again" or "Reboot" on the page of its vehicle; if it still does not follow, test it: page System, or setpointd commission ${id}`,
      };
}

/** The charger's own reason, in a sentence. */
export function refusalText(refusal: CommandRecord["refusal"]): string {
  if (refusal === undefined) return "";
  return refusal === null ? " and gives no reason" : ` (${sanitizeForLog(refusal)})`;
}

/** Null: no other charger reports the vehicle that this one is limited for. */
function claimProblem({ occupancy, vehicles }: ControlState, { command }: CommandRecord): Problem | null {
  const occupant = occupancy.at(command.charger);
  if (occupant.kind !== "vehicle" || occupant.source !== "kept") return null;
  const where = occupancy.where(occupant.vehicle);
  return {
    since: iso(command.decidedAt),
    kind: "contradicted",
    subject: command.charger,
    message: `${command.charger} keeps its limit for ${vehicles.get(occupant.vehicle)?.name ?? occupant.vehicle}, which is reported at ${where ?? "no charger"}; ${command.charger} has not reported that it is unplugged`,
    action: `check which of the two has the vehicle; setpointd release ${command.charger} frees it`,
  };
}

/** Null: no unknown vehicle is reported where a vehicle is fixed that has no identities. */
function unknownVehicleProblem({ occupancy, vehicles }: ControlState, id: ChargerId): Problem | null {
  const occupant = occupancy.at(id);
  const bound = occupant.kind === "unknown" ? occupancy.fixedVehicleOf(id) : null;
  if (occupant.kind !== "unknown" || bound === null || vehicles.get(bound)?.identities.length !== 0)
    return null;
  return {
    since: null,
    kind: "unknownVehicle",
    subject: id,
    message: `${id} reports the identity ${occupant.identity}, which no vehicle has: ${vehicles.get(bound)?.name ?? bound}, which is fixed to it, gets no setpoint`,
    action: `check which vehicle stands there and name it: "Name it" on the page, or setpointd bind ${id} VEHICLE --reason TEXT; later add the identity to it in the configuration`,
  };
}

/** Null: the charger did not leave the configuration while it was limited. */
function stranded(state: ControlState, record: CommandRecord): Problem | null {
  const { charger } = record.command;
  if (state.chargers.has(charger) || !isToBeFreed(record)) return null;
  return {
    since: iso(record.command.decidedAt),
    kind: "stranded",
    subject: charger,
    message: `${charger} left the configuration while it was limited to ${formatLevel((reallySent(record) ?? record).command.desired)}`,
    action: `put it back into the configuration and run setpointd release ${charger}, or free it at the charger; a native charger goes back to its own limits when its lease is over`,
  };
}
