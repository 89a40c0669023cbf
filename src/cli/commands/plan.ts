import type { Config } from "../../config/schema.ts";
import { nameOf, eventWarnings, levelRangeOf } from "../../control/decide/describe.ts";
import { intake, latestNotices } from "../../control/ingest/intake.ts";
import type { Dispatch, ExpandContext } from "../../control/schedule/expand.ts";
import { dispatchesOf, type Stretch, stretchesOf } from "../../control/schedule/plan.ts";
import { targeting } from "../../control/schedule/targeting.ts";
import { siteKeyOrNew } from "../../daemon/stateFolder.ts";
import type { Notice } from "../../domain/delivery.ts";
import type { KnownEvent } from "../../domain/event.ts";
import { formatLevel, valueOf } from "../../domain/setpoint.ts";
import { type Instant, iso } from "../../domain/units.ts";
import { runToEnd } from "../../platform/cooperative.ts";
import { type WallClock, wallClock } from "../../platform/clock.ts";
import { dialectOf } from "../../vtn/dialects/choose.ts";
import type { Dialect } from "../../vtn/dialects/dialect.ts";
import { siteConfiguration } from "../configuration.ts";
import {
  MOMENT,
  readInput,
  readMoment,
  writeErrorLine,
  type ExitCode,
  fail,
  say,
  writeLine,
  type Verb,
} from "../output.ts";
import { becomeOwner, enterPrivateFolder, keysFromDatabase } from "../storedState.ts";
import { messageOf } from "../../platform/text.ts";

interface PlanOptions {
  readonly config: string | undefined;
  readonly events: string;
  readonly at: string | undefined;
  readonly json: boolean;
  readonly dispatches: boolean;
}

/** `plan`: shows the setpoints of each charger for a list of events. Open holds do not count. Sends none. */
async function plan(
  options: PlanOptions,
  now: Instant,
  randomBytes: (count: number) => Buffer,
): Promise<ExitCode> {
  const config = siteConfiguration(options.config, "unused")?.config ?? null;
  if (config === null) return 2;
  enterPrivateFolder(config.state);
  const at = options.at === undefined ? now : readMoment(options.at, config.site.timezone, now);
  if (at === null) return fail(2, `--at ${options.at}: a moment is ${MOMENT}`);
  // Read before root gives up its rights: the list may be in a folder of root.
  const events = readEvents(options.events, dialectOf(config), at);
  const refused = becomeOwner(config.state);
  if (refused !== null) return fail(1, refused);
  const key = (await keysFromDatabase(config)) ?? siteKeyOrNew(config, randomBytes);
  if (!key.ok) return fail(1, key.reason);
  if (typeof events === "string") return fail(1, events);
  const vehicles = new Map(config.vehicles.map((vehicle) => [vehicle.id, vehicle]));
  const context = { siteKey: key.siteKey, vehicles, settings: config.control };
  for (const known of events) printOddities(known, config, context, at);
  const dispatches = dispatchesOf(events, context);
  if (options.dispatches) {
    say(JSON.stringify(dispatches.filter(({ until }) => until > at).map(dispatchRow), null, 2));
    return 0;
  }
  const clock = wallClock(config.site.timezone, () => at);
  const byVehicle = Map.groupBy(dispatches, ({ vehicle }) => vehicle);
  const stretches = config.chargers.flatMap((charger) => {
    const [vehicle, second] = config.vehicles.filter((candidate) => candidate.charger === charger.id);
    if (vehicle === undefined || second !== undefined) return [];
    return stretchesOf(charger, vehicle, byVehicle.get(vehicle.id) ?? [], context, clock);
  });
  const ahead = stretches.filter(({ until }) => until > at);
  printLevelsAtEnd(config, ahead);
  if (options.json) say(JSON.stringify(ahead.map(stretchRow), null, 2));
  else printStretches(ahead, config.site.timezone, clock);
  return 0;
}

/** Newest revision of each event in the list. Unreadable ones are printed and left out. A string is the reason for none. */
function readEvents(file: string, dialect: Dialect, at: Instant): readonly KnownEvent[] | string {
  const name = file === "-" ? "standard input" : file;
  let body: Buffer;
  try {
    body = readInput(file);
  } catch (error) {
    return `${name} cannot be read: ${messageOf(error)}`;
  }
  const list = runToEnd(dialect.readingList(body));
  if (list.kind === "unparsable") return `${name} is not a list of events: ${list.reason}`;
  const events = latestNotices(list.notices).flatMap((notice) => knownOf(notice, at));
  const isUnreadable = events.length === 0 && list.notices.length > 0;
  return isUnreadable ? `${name} holds no event that can be read` : events;
}

/** Prints the oddities that the daemon would record, for example foreign vehicles or implausible units. */
function printOddities(known: KnownEvent, config: Config, context: ExpandContext, at: Instant): void {
  if (known.kind !== "live") return;
  const { revision } = known;
  const aim = targeting(revision.event, context);
  const odd = eventWarnings(revision, aim, context, levelRangeOf(config.chargers), at);
  if (odd.length > 0) writeErrorLine(`${nameOf(revision.event)}: ${odd.join("; ")}`);
}

/** A charger is released between its stretches, unless its `atEnd` names a level. */
function printLevelsAtEnd({ chargers }: Config, stretches: readonly Stretch[]): void {
  const planned = new Set(stretches.map(({ charger }) => charger));
  for (const { id, atEnd } of chargers)
    if (planned.has(id) && atEnd.kind !== "release")
      writeErrorLine(`${id}: no release where its events end: ${formatLevel(atEnd)} instead, as atEnd says`);
}

function knownOf(notice: Notice, at: Instant): readonly KnownEvent[] {
  if (notice.kind === "rejected") {
    writeErrorLine(`left out: ${notice.path}: ${notice.reason}`);
    return [];
  }
  const { known } = intake(undefined, notice, { source: "fetch", at, askedAt: at });
  return known === undefined ? [] : [known];
}

const stretchRow = ({ charger, vehicle, from, until, desired, winner, reason }: Stretch) => ({
  charger,
  vehicle,
  from: iso(from),
  until: iso(until),
  kind: desired.kind,
  ...valueOf(desired),
  event: winner?.event.id ?? null,
  offsetMs: winner?.offset ?? null,
  reason,
});

const dispatchRow = ({ event, vehicle, from, until, setpoint, offset }: Dispatch) => ({
  event: event.id,
  vehicle,
  from: iso(from),
  until: iso(until),
  kind: setpoint.kind,
  ...valueOf(setpoint),
  priority: event.priority,
  offsetMs: offset,
});

function printStretches(stretches: readonly Stretch[], zone: string, clock: WallClock): void {
  say(stretches.length === 0 ? "no charger would get a command" : `times in ${zone}`);
  for (const { from, until, reason } of stretches)
    writeLine(`${clock(from)}  ${clock(until)}  ${reason.words}`);
}

export const planVerb: Verb = (verb, { config, now, randomBytes, done }) => {
  verb
    .requiredOption(
      "--events <file>",
      "list of events as the partner serves it (JSON); - reads standard input; needed",
    )
    .option(
      "--at <moment>",
      "plan as of this moment (ISO 8601; without a zone, the site's zone); windows that ended before it are left out; default now",
    )
    .option(
      "--json",
      "print a JSON array with a row for each span with one verdict; a gap is a release",
      false,
    )
    .option("--dispatches", "print each vehicle's dispatches as JSON, before arbitration and limits", false)
    .action(async (options: { events: string; at?: string; json: boolean; dispatches: boolean }) => {
      done(await plan({ config: config(), at: options.at, ...options }, now(), randomBytes));
    });
};
