import type { Json } from "../../src/domain/audit.ts";
import { type Command, commandId } from "../../src/domain/command.ts";
import type { Hold } from "../../src/domain/hold.ts";
import type { ChargerId, Millis } from "../../src/domain/units.ts";
import {
  allowed,
  covers,
  heldAt,
  isSame,
  type Share,
  shareOf,
  type Site,
  standingUnder,
  type TrueEvent,
} from "./oracle.ts";
import { NAP } from "./patience.ts";
import type { PlannedCharger, PlannedVehicle } from "./plan.ts";
import { memberOf, type SeenRecord } from "./record.ts";

/** One message on its way to a charger. */
export interface Publish {
  readonly command: Command;
  readonly lease: Millis;
  /** By the gateway's clock. */
  readonly at: number;
  /** Monotonic, ms. */
  readonly elapsed: number;
  /** Since the gateway's clock was set, ms; infinite: it never was. */
  readonly sinceSet: number;
  /** The gateway's clock is behind: it may live through what is over once more. */
  readonly isBehind: boolean;
  /** Another publish to the same charger is not settled yet. */
  readonly isBusy: boolean;
  /** Something excuses its charger now. */
  readonly isDisturbed: boolean;
  /** The gateway says that it holds an increase at this charger back. */
  readonly isHeldBack: boolean;
  /** Since the disk last refused a commit, ms; infinite: it never did. */
  readonly sinceRefusal: number;
  /** The vehicle that counts as being on its charger; null: none of ours. */
  readonly occupant: string | null;
  /** Holds that are open, or ended a moment ago. */
  readonly holds: readonly Hold[];
}

/** What was seen on the wire and on disk since midnight, over all runs of the daemon. */
export class Seen {
  /** The newest command of each charger. */
  readonly newest = new Map<ChargerId, Command>();
  readonly byId = new Map<string, Command>();
  readonly record: SeenRecord;
  /** Releases of the running process that went out while the disk refused, and were not found in the record yet. */
  readonly unrecorded = new Map<string, Command>();
  /** Where a level's window was found to start, by event, vehicle, start and spread. */
  readonly offsets = new Map<string, number>();
  /** The oldest revision that the newest command of a charger can stand on, by charger, vehicle and event. */
  readonly revisions = new Map<string, number>();
  /** When each charger was last sent to, the newest last. */
  readonly recent = new Map<ChargerId, number[]>();
  /** When the standing command of each charger was last sent, since anything disturbed it, the newest last. */
  readonly repeats = new Map<ChargerId, readonly number[]>();
  readonly site: Site;
  readonly history: ReadonlyMap<string, readonly TrueEvent[]>;
  readonly #shares = new WeakMap<TrueEvent, Map<string, Share | null>>();
  readonly #spans = new WeakMap<TrueEvent, Share>();

  constructor(site: Site, history: ReadonlyMap<string, readonly TrueEvent[]>, record: SeenRecord) {
    this.site = site;
    this.history = history;
    this.record = record;
  }

  /** The process ended: the next one does not know of the releases that were not recorded. */
  readonly processEnded = (): void => {
    for (const { charger } of this.unrecorded.values()) this.newest.delete(charger);
    this.unrecorded.clear();
  };

  /** As `shareOf`, worked out once. */
  readonly shareOf = (event: TrueEvent, vehicle: string): Share | null => {
    const known = this.#shares.get(event) ?? new Map<string, Share | null>();
    this.#shares.set(event, known);
    const share = known.get(vehicle);
    if (share !== undefined) return share;
    const fresh = shareOf(event, vehicle, this.site);
    known.set(vehicle, fresh);
    return fresh;
  };

  /** Whether any vehicle acts on this revision at a moment. */
  readonly isActing = (event: TrueEvent, at: number): boolean => {
    const span = this.#spans.get(event) ?? this.#spanOf(event);
    this.#spans.set(event, span);
    return span.from <= at && at < span.until;
  };

  /** From the first start to the last end. */
  #spanOf(event: TrueEvent): Share {
    const shares = this.site.vehicles.flatMap(({ id }) => this.shareOf(event, id) ?? []);
    return {
      from: Math.min(...shares.map(({ from }) => from)),
      until: Math.max(...shares.map(({ until }) => until)),
    };
  }
}

/** Null: it holds; else what is wrong, in words. */
type Rule = (publish: Publish, seen: Seen) => string | null;

/** The disk takes commits again for so long: whatever waited for that is recorded, ms. */
const RECORDED_WITHIN = 10_000;

/** S1: every command on the wire has its row on disk, for the same charger and event; a release may be recorded later. */
function isRecorded({ command, sinceRefusal }: Publish, seen: Seen): string | null {
  const row = seen.record.decisionOf(command);
  if (row === undefined) {
    if (command.desired.kind !== "release" || sinceRefusal > RECORDED_WITHIN)
      return "it is not in the record";
    seen.unrecorded.set(commandId(command), command);
    return null;
  }
  const isIt = row.charger === command.charger && row.event === command.event;
  return isIt ? null : "its row speaks of another charger or event";
}

/** S1: what went out while the disk refused is recorded once it does not; unless the process ended before. */
function catchesUp(
  { command: { epoch }, sinceRefusal }: Publish,
  { unrecorded, record }: Seen,
): string | null {
  if (sinceRefusal <= RECORDED_WITHIN) return null;
  for (const [id, command] of unrecorded) {
    if (command.epoch === epoch && record.decisionOf(command) === undefined)
      return `${id} is still not recorded`;
    unrecorded.delete(id);
  }
  return null;
}

/** S1, S2, S4: a level or a pause stands on a revision that the partner issued, in its window, within the limits. */
function isAskedFor({ command, at, holds }: Publish, seen: Seen): string | null {
  if (command.desired.kind === "release") return null;
  if (command.cause === "operator") return isHeld(command, holds, seen);
  if (command.cause === "held") return isWhatItWas(command, seen);
  if (groundsOf(command, seen).length === 0) return "no revision of its event ever asked for that";
  return command.until !== null && command.until <= at ? "its window is over" : null;
}

/** 5.8: a level without an event is that of an open hold, and no more than charger and vehicle allow. */
function isHeld(
  { charger, vehicle, desired }: Command,
  holds: readonly Hold[],
  { site }: Seen,
): string | null {
  const [bay, who] = [
    site.chargers.find(({ id }) => id === charger),
    site.vehicles.find(({ id }) => id === vehicle) ?? null,
  ];
  const isSo = holds.some(
    (hold) =>
      hold.level !== null &&
      bay !== undefined &&
      covers(hold, charger, vehicle) &&
      isSame(heldAt(hold, bay, who), standingUnder(desired)),
  );
  return isSo ? null : "no open hold asks for that";
}

/** A publish may wait so long for its turn: behind a stalled commit, or another message to the same charger, ms. */
const TURN = 30_000;

/**
 * F05: a pause carries no end of its own; it is not sent again once every revision of its event is over for its vehicle,
 * and for the one that is there now: while the disk refuses, a pause for the one before keeps its number. Refreshes go on
 * until it is noticed that the clock was set.
 */
function isNotPastItsEvent(
  { command, at, sinceSet, isHeldBack, occupant }: Publish,
  seen: Seen,
): string | null {
  const { desired, cause, event, vehicle } = command;
  if (desired.kind !== "pause" || cause !== "event" || event === null || vehicle === null) return null;
  const whom = occupant === null ? [vehicle] : [vehicle, occupant];
  const shares = (seen.history.get(event) ?? []).flatMap((revision) =>
    whom.map((one) => seen.shareOf(revision, one)),
  );
  const ends = Math.max(...shares.map((share) => share?.until ?? 0));
  return isHeldBack || at < ends + TURN || sinceSet < NAP ? null : "its event is over";
}

/** What is to come has to wait, so what it was told is made longer: that, and nothing else. */
function isWhatItWas({ charger, desired }: Command, { newest }: Seen): string | null {
  const before = newest.get(charger)?.desired;
  const isSo = before !== undefined && isSame(standingUnder(before), standingUnder(desired));
  return isSo ? null : "it is not what the charger was told before";
}

/** S4: a number, above zero, and no more than the charger can do. */
function isWithinLimits({ command }: Publish, { site }: Seen): string | null {
  const { desired } = command;
  if (desired.kind === "pause" || desired.kind === "release") return null;
  const charger = site.chargers.find(({ id }) => id === command.charger);
  if (charger === undefined) return "there is no such charger";
  const most = desired.kind === "current" ? charger.maxCurrent : charger.maxCurrent * charger.phases * 230;
  const level = desired.kind === "current" ? desired.amperes : desired.watts;
  return Number.isFinite(level) && level > 0 && level <= most ? null : "it is beyond the limits";
}

/** S3: the offset of an event and a vehicle is within its spread, and the same for ever. */
function keepsItsOffset({ command }: Publish, seen: Seen): string | null {
  const winner = winnerOf(seen.record.decisionOf(command)?.facts);
  // Where windows are clipped the spread is at most the duration: an edit of that moves the offset too.
  if (winner === null || seen.site.knobs.randomizedEnd === "clip") return null;
  const { offset, spread, start } = winner;
  if (!(offset >= 0 && offset <= spread)) return `its offset is ${offset} ms of ${spread} ms`;
  const key = JSON.stringify([command.event, command.vehicle, start, spread]);
  const before = seen.offsets.get(key) ?? offset;
  seen.offsets.set(key, before);
  return before === offset ? null : `its offset was ${before} ms and is ${offset} ms`;
}

interface Drawn {
  readonly offset: number;
  readonly spread: number;
  readonly start: number;
}

/** The part of a decision's reason that tells how its window came about; null: it has no winner. */
function winnerOf(facts: Json | undefined): Drawn | null {
  const winner = memberOf(facts, "winner");
  const [offset, spread] = [memberOf(winner, "offsetMs"), memberOf(winner, "spreadMs")].map(Number);
  const from = memberOf(winner, "from");
  if (offset === undefined || spread === undefined || typeof from !== "string") return null;
  return { offset, spread, start: Date.parse(from) - offset };
}

/**
 * S5: the commands of a charger for one vehicle never go back to an older revision of an event.
 * Another vehicle at the same charger has its own history: one that a newer revision left out keeps the level of the
 * older one until its own spread release (DESIGN 5.2), wherever it is plugged in meanwhile.
 */
function keepsToNewerRevisions({ command, isBehind }: Publish, seen: Seen): string | null {
  if (command.desired.kind === "release" || command.cause !== "event" || isBehind) return null;
  const grounds = groundsOf(command, seen);
  const key = JSON.stringify([command.charger, command.vehicle, command.event]);
  const before = seen.revisions.get(key) ?? 0;
  const [oldest, newest] = [Math.min(...grounds), Math.max(...grounds)];
  if (newest < before) return `it stands on revision ${newest + 1}, after one that stood on ${before + 1}`;
  seen.revisions.set(key, Math.max(before, oldest));
  return null;
}

/** S6: epoch and number of a charger's commands never go back. */
function neverGoesBack({ command }: Publish, { newest }: Seen): string | null {
  const before = newest.get(command.charger);
  if (before === undefined) return null;
  const isOlder =
    command.epoch < before.epoch || (command.epoch === before.epoch && command.seq < before.seq);
  return isOlder ? `it is older than ${commandId(before)}` : null;
}

/** S9: nothing is sent past its end, however long it waited. */
const isInTime = ({ command: { until }, at }: Publish): string | null =>
  until !== null && until <= at ? "its time has passed" : null;

/** One publish in flight per charger. */
const isAlone = ({ isBusy }: Publish): string | null => (isBusy ? "another is under way" : null);

/** Values of the charger's own are known from the first publish on. They are not sent. */
const sentOf = (command: Command): string => JSON.stringify({ ...command, own: undefined });

/** A refresh is the same command under the same id; a lease lasts three refreshes. */
function isTheSameAgain({ command, lease }: Publish, { byId }: Seen): string | null {
  if (lease !== 180_000) return `its lease is ${lease} ms`;
  const before = byId.get(commandId(command));
  return before === undefined || sentOf(before) === sentOf(command) ? null : "its id was another command";
}

/** Who was never limited is never released: a start leaves everyone alone whom no event ever touched. */
const wasLimited = ({ command }: Publish, { record }: Seen): string | null =>
  command.desired.kind !== "release" || record.limited.has(command.charger) ? null : "it was never limited";

const MOST_A_MINUTE = 30;

/** F59: whatever fails, a charger is not flooded. */
function isNotFlooded({ command: { charger }, elapsed }: Publish, { recent }: Seen): string | null {
  const times = [...(recent.get(charger) ?? []), elapsed].slice(-MOST_A_MINUTE - 1);
  recent.set(charger, times);
  const first = times.length > MOST_A_MINUTE ? times[0] : undefined;
  return first !== undefined && elapsed < first + 60_000 ? `message ${times.length} in a minute` : null;
}

/** Ten refreshes, and three tries of a command that is not followed, with room for the edges. */
const MOST_REPEATS = 16;
/** This make is refreshed every 30 s. */
const QUICKER = "shelly-gen2-switch";
const REPEATS_WITHIN = 10 * 60_000;

/** 5.6: an undisturbed charger is sent its command again at its refreshes, however often it says that it is online. */
function isNotRepeated({ command, elapsed, isDisturbed }: Publish, seen: Seen): string | null {
  const { charger } = command;
  const { newest, repeats, site } = seen;
  const isQuicker = site.chargers.some(({ id, make }) => id === charger && make?.profile === QUICKER);
  const before = newest.get(charger);
  const isAgain = before !== undefined && commandId(before) === commandId(command);
  const times = isAgain && !isDisturbed ? [...(repeats.get(charger) ?? []), elapsed] : [];
  const recent = times.filter((time) => time > elapsed - REPEATS_WITHIN);
  repeats.set(charger, recent);
  return recent.length > MOST_REPEATS * (isQuicker ? 2 : 1)
    ? `sent ${recent.length} times in ten minutes`
    : null;
}

/** What must hold of everything on the wire, by the sentence that a breach is told with. */
const RULES: readonly (readonly [sentence: string, rule: Rule])[] = [
  ["S1 a command is recorded before it is sent", isRecorded],
  ["S1 a release that the disk refused is recorded later", catchesUp],
  ["S1 S2 a command stands on what the partner asked, in its window", isAskedFor],
  ["F05 a pause is not said again past the end of its event", isNotPastItsEvent],
  ["S3 an offset is drawn once", keepsItsOffset],
  ["S4 a level is within the limits", isWithinLimits],
  ["S5 a charger never goes back to an older revision for the same vehicle", keepsToNewerRevisions],
  ["S6 a charger's commands never go back", neverGoesBack],
  ["S9 nothing is sent past its end", isInTime],
  ["one publish in flight per charger", isAlone],
  ["a refresh carries the same command under the same id", isTheSameAgain],
  ["F59 a charger is not flooded", isNotFlooded],
  ["an undisturbed charger gets its refreshes, and no more", isNotRepeated],
  ["nobody is released who was never limited", wasLimited],
];

export interface Breach {
  readonly invariant: string;
  readonly words: string;
}

/** Holds a message against every rule, and remembers it. */
export function breachOf(publish: Publish, seen: Seen): Breach | null {
  const { command } = publish;
  let breach: Breach | null = null;
  for (const [invariant, rule] of RULES) {
    const wrong: string | null = breach === null ? rule(publish, seen) : null;
    if (wrong !== null) breach = { invariant, words: `${spelled(command)}: ${wrong}` };
  }
  seen.newest.set(command.charger, command);
  seen.byId.set(commandId(command), command);
  return breach;
}

const spelled = (command: Command): string => {
  const { kind } = command.desired;
  const until = command.until === null ? "" : ` until ${new Date(command.until).toISOString().slice(11, 23)}`;
  return `${command.charger} ${commandId(command)} ${kind}${until} for ${command.event}`;
};

/** Numbers of the revisions of its event that a level or a pause can stand on; a release can come at any time before the end. */
function groundsOf(command: Command, seen: Seen): readonly number[] {
  const charger = seen.site.chargers.find(({ id }) => id === command.charger);
  const vehicle = seen.site.vehicles.find(({ id }) => id === command.vehicle);
  if (charger === undefined || vehicle === undefined || command.event === null) return [];
  return (seen.history.get(command.event) ?? []).flatMap((revision, number) =>
    isGround(command, revision, charger, vehicle, seen) ? [number] : [],
  );
}

function isGround(
  { desired, until, decidedAt }: Command,
  revision: TrueEvent,
  charger: PlannedCharger,
  vehicle: PlannedVehicle,
  seen: Seen,
): boolean {
  const share = seen.shareOf(revision, vehicle.id);
  if (share === null || decidedAt < share.from || decidedAt >= share.until) return false;
  if (until !== null && until > share.until) return false;
  // On one phase another current has the power that was asked for.
  return (
    charger.switchesPhases === true ||
    isSame(allowed(revision.plan.ask, charger, vehicle), standingUnder(desired))
  );
}
