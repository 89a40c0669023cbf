import type { StoredState } from "../domain/changes.ts";
import type { Charger } from "../domain/charger.ts";
import { commandId, type CommandRecord, reallySent, type Hold } from "../domain/command.ts";
import { clampToNow, type EventArchive, type KnownEvent, overSince } from "../domain/event.ts";
import type { Reason } from "../domain/reason.ts";
import {
  type ChargerId,
  after,
  earlier,
  type EventId,
  type Instant,
  later,
  type VehicleId,
} from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import { DueQueue } from "../platform/dueQueue.ts";
import type { WallClock } from "../platform/localTime.ts";
import type { CommissioningLock } from "./decide/commissioningLock.ts";
import { type Reach, reachOf } from "./decide/describe.ts";
import { whileHeld } from "./decide/explain.ts";
import { type Bar, barTo, type GatedStep, type StartsBlocked } from "./decide/gate.ts";
import type { Held } from "./decide/pace.ts";
import { Ramp } from "./decide/ramp.ts";
import type { ControlSettings } from "./decide/settings.ts";
import { type Verdict, verdict } from "./decide/verdict.ts";
import { Absences, DeleteClaims } from "./ingest/absence.ts";
import { KnownEvents, Rejections } from "./ingest/knownEvents.ts";
import { Occupancy } from "./observe/occupancy.ts";
import { ABSENT, freshPhases, freshVoltage, type Presence, Silence } from "./observe/presence.ts";
import { Agenda, WakeTimes } from "./schedule/agenda.ts";
import { carryOver, Revised, Expansions } from "./schedule/carryOver.ts";
import type { Dispatch, ExpandContext } from "./schedule/expand.ts";
import { NOTHING_IN_FORCE } from "./schedule/inForce.ts";
import { SendQueue, Writes } from "./send/sendQueue.ts";

export interface ControlSetup {
  readonly chargers: readonly Charger[];
  readonly vehicles: readonly Vehicle[];
  readonly settings: ControlSettings;
  readonly siteKey: Uint8Array;
  /** Greater at each start: a command of an older run can never pass for a newer one. */
  readonly epoch: number;
  readonly archive: EventArchive;
  readonly wallClock: WallClock;
  /** The state was lost: every charger is asserted once, release included. */
  readonly assertAll: boolean;
}

export interface PublishFailure {
  readonly since: Instant;
  readonly reason: string;
}

/**
 * The picture of the depot in memory: what is stored, indexed, and what was heard since the start. The stages of
 * the flow change it and write the same to the ledger; after a failed commit it is restored from what is stored.
 */
export class ControlState {
  readonly chargers: ReadonlyMap<ChargerId, Charger>;
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly settings: ControlSettings;
  readonly wallClock: WallClock;
  readonly reach: Reach;
  readonly occupancy: Occupancy;
  readonly known: KnownEvents;
  /** When each event that is whole in memory is over. */
  readonly over = new DueQueue<EventId>();
  readonly absences = new Absences();
  readonly rejections = new Rejections();
  readonly deleteClaims = new DeleteClaims();
  readonly commands = new Map<ChargerId, CommandRecord>();
  readonly holds = new Map<ChargerId, Hold>();
  readonly presence = new Map<ChargerId, Presence>();
  readonly silence = new Silence();
  /** Chargers whose broker was away and came back: their next live "online" is a return. */
  readonly mayReturn = new Set<ChargerId>();
  /** Why each charger was last told what it was told. */
  readonly why = new Map<ChargerId, Reason>();
  /** Chargers whose increase has to wait, and for what. */
  readonly held = new Map<ChargerId, Held>();
  readonly writes = new Writes();
  /** Chargers that commissioning has. */
  readonly locks = new Map<ChargerId, CommissioningLock>();
  /** Null: the site may rise at once. */
  readonly ramp: Ramp | null;
  /** Dispatches whose vehicle was found to be at no charger: said once. */
  readonly nowhere = new WeakSet<Dispatch>();
  /** Vehicles of whom that is not on disk yet. */
  readonly unreported = new Set<VehicleId>();
  /** Dispatches that a look has weighed, won or lost: they are not missed. */
  readonly seen = new WeakSet<Dispatch>();
  /** Command of an earlier start that a charger refuses, by charger. */
  readonly outnumbered = new Map<ChargerId, string>();
  /** Chargers that were told nothing yet since the state was lost. */
  readonly assertAll: Set<ChargerId>;
  /** Chargers that wait for their turn to be sent what holds then. */
  readonly toSend = new SendQueue();
  /** Chargers with a publish on its way, and the number of the look after which it left. */
  readonly inFlight = new Map<ChargerId, number>();
  /** Chargers whose newest decision is not committed yet: it must not go out. */
  readonly awaitingCommit = new Set<ChargerId>();
  /** Chargers whose last publish failed: since when, and why. */
  readonly publishFailures = new Map<ChargerId, PublishFailure>();
  /** Chargers whose published state is no longer what it should be. */
  readonly dirty = new Set<ChargerId>();
  agenda: Agenda;
  evaluatedAt: Instant | null = null;
  readonly #revised = new Revised(this.seen);
  readonly #expansions = new Expansions();
  readonly epoch: number;
  readonly #setup: ControlSetup;
  readonly #wakes = new WakeTimes();
  #startsBlockedBy: StartsBlocked | null = "starting up";
  #seq = 0;

  constructor(setup: ControlSetup) {
    this.#setup = setup;
    this.epoch = setup.epoch;
    this.known = new KnownEvents(setup.archive);
    this.chargers = new Map(setup.chargers.map((charger) => [charger.id, charger]));
    this.vehicles = new Map(setup.vehicles.map((vehicle) => [vehicle.id, vehicle]));
    this.settings = setup.settings;
    this.agenda = new Agenda(setup.settings);
    this.wallClock = setup.wallClock;
    this.reach = reachOf(setup.chargers);
    this.occupancy = new Occupancy(setup.vehicles);
    const { releaseRamp } = setup.settings;
    this.ramp = releaseRamp === null ? null : new Ramp(releaseRamp);
    this.assertAll = new Set(setup.assertAll ? this.chargers.keys() : []);
  }

  /** Starts over from what is stored; windows that passed since the last row will be found by the first look. */
  restore(remembered: StoredState, now: Instant): void {
    this.known.clear();
    this.commands.clear();
    this.why.clear();
    this.holds.clear();
    this.awaitingCommit.clear();
    this.rejections.clear();
    const before = this.agenda;
    for (const vehicle of this.unreported)
      for (const dispatch of before.of(vehicle)) this.nowhere.delete(dispatch);
    this.agenda = new Agenda(this.settings);
    // A clock that was set back since: what it has still ahead of it was not looked at.
    this.evaluatedAt = earlier(this.evaluatedAt ?? remembered.evaluatedAt ?? now, now);
    for (const known of remembered.events) {
      if (known.kind === "over") this.known.set(known.id, known);
      else this.putEvent(clampToNow(known, now), this.evaluatedAt);
    }
    this.#carryOver(before, later(this.evaluatedAt, remembered.evaluatedAt ?? this.evaluatedAt));
    this.putCommands(remembered);
    for (const { command } of this.commands.values()) {
      const { charger, vehicle, desired, decidedAt } = command;
      if (vehicle !== null && desired.kind !== "release") this.occupancy.recall(charger, vehicle, decidedAt);
    }
    for (const hold of remembered.holds) this.holds.set(hold.charger, hold);
    this.assertAgain(this.chargers.keys());
    this.ramp?.recall(this.commands.values(), this.chargers);
  }

  /** Takes in stored commands, and why they were decided. */
  putCommands({ commands, reasons }: Pick<StoredState, "commands" | "reasons">): void {
    for (const stored of commands) {
      const record = this.barTo("plan", null) === null ? reallySent(stored) : stored;
      if (record === null) continue;
      const { sentAt } = record;
      const judgeAt = record.judgeAt ?? (sentAt === null ? null : after(sentAt, this.settings.verdict.ramp));
      this.commands.set(record.command.charger, { ...record, judgeAt });
      const why = reasons.get(commandId(record.command));
      if (why !== undefined) this.why.set(record.command.charger, why);
    }
  }

  /** After a failed commit: a charger without a command was not asserted yet since the state was lost. */
  assertAgain(chargers: Iterable<ChargerId>): void {
    if (!this.#setup.assertAll) return;
    for (const charger of chargers)
      if (this.chargers.has(charger) && !this.commands.has(charger)) this.assertAll.add(charger);
  }

  allowStarts(): void {
    this.#startsBlockedBy = null;
  }

  blockStarts(by: StartsBlocked): void {
    this.#startsBlockedBy = by;
  }

  /** Why this step is not taken now (gate.ts); null: it may be. Charger null: the site as a whole. */
  barTo(step: GatedStep, charger: ChargerId | null): Bar | null {
    return barTo(step, {
      mode: this.settings.mode,
      startsBlockedBy: this.#startsBlockedBy,
      online: charger === null ? null : this.presenceOf(charger).online,
      isLocked: charger !== null && this.locks.has(charger),
    });
  }

  get expansion(): ExpandContext {
    return { siteKey: this.#setup.siteKey, vehicles: this.vehicles, settings: this.settings };
  }

  /** Takes in what is known of an event; answers the vehicles for whom something holds, or held, now. */
  putEvent(known: KnownEvent, now: Instant): ReadonlySet<VehicleId> {
    this.known.set(known.id, known);
    const dispatches = this.#expansions.expand(known, this.expansion);
    this.#revised.mark(known.id, this.agenda.ofEvent(known.id), dispatches, now);
    this.over.push(overSince(known), known.id);
    return this.agenda.replace(known.id, dispatches, now);
  }

  /** Plans everything anew after the clock was set back: what had ended by it may be open again. Answers what changed. */
  replan(now: Instant): readonly KnownEvent[] {
    const { agenda, evaluatedAt: lookedAt } = this;
    this.agenda = new Agenda(this.settings);
    this.evaluatedAt = now;
    const changed: KnownEvent[] = [];
    for (const tracked of this.known.values()) {
      const known = this.known.openAt(tracked, now);
      if (known === null) continue;
      const planned = clampToNow(known, now);
      this.putEvent(planned, now);
      if (planned !== known) changed.push(planned);
    }
    this.#carryOver(agenda, lookedAt ?? now);
    return changed;
  }

  #carryOver(before: Agenda, lookedAt: Instant): void {
    carryOver({ before, after: this.agenda, vehicles: this.vehicles.keys(), evaluatedAt: lookedAt }, this);
  }

  /** Number of the next command. */
  nextId(): { readonly epoch: number; readonly seq: number } {
    this.#seq += 1;
    return { epoch: this.epoch, seq: this.#seq };
  }

  verdictOn(charger: Charger, now: Instant): Verdict {
    const occupant = this.occupancy.at(charger.id);
    const vehicle = occupant.kind === "vehicle" ? this.vehicles.get(occupant.vehicle) : undefined;
    const presence = this.presenceOf(charger.id);
    return verdict({
      charger,
      occupant,
      vehicle: vehicle ?? null,
      holding: vehicle === undefined ? NOTHING_IN_FORCE : this.agenda.inForce(vehicle.id, now),
      hold: this.holds.get(charger.id) ?? null,
      measuredVoltage: freshVoltage(presence, now),
      measuredPhases: freshPhases(presence, now),
    });
  }

  /** Why a charger was told what it was told last, and what holds back what is to come; null: not known. */
  whyOf(charger: Charger): Reason | null {
    const [why, held] = [this.why.get(charger.id) ?? null, this.held.get(charger.id)];
    return why === null || held === undefined ? why : whileHeld(why, held, charger, this.wallClock);
  }

  presenceOf(charger: ChargerId): Presence {
    return this.presence.get(charger) ?? ABSENT;
  }

  /** Asks for an evaluation at a moment. */
  wake(charger: ChargerId, at: Instant): void {
    this.#wakes.wake(charger, at);
  }

  /** The chargers that asked to be evaluated by now. */
  woken(now: Instant): ReadonlySet<ChargerId> {
    return this.#wakes.woken(now);
  }

  /** The next moment at which anything has to be looked at. */
  next(): Instant | undefined {
    const [boundary, wake] = [this.agenda.next(), this.#wakes.next()];
    if (boundary === undefined || wake === undefined) return boundary ?? wake;
    return boundary < wake ? boundary : wake;
  }

  /** It is over, and will not be asked for any more. Returns the vehicles for which something held. */
  forget(id: EventId, now: Instant): ReadonlySet<VehicleId> {
    this.known.delete(id);
    this.#revised.forget(id);
    return this.agenda.replace(id, [], now);
  }
}
