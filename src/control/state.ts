import type { StoredState } from "../domain/changes.ts";
import type { Charger } from "../domain/charger.ts";
import { type Command, commandId, type CommandRecord, reallySent } from "../domain/command.ts";
import type { EventArchive, KnownEvent } from "../domain/event.ts";
import type { Reason } from "../domain/reason.ts";
import { type ChargerId, earlier, instant, type Instant, type VehicleId } from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import type { WallClock } from "../platform/clock.ts";
import { inSteps, type ResumableTask, type RoomPart } from "../platform/cooperative.ts";
import { ChangeFeed } from "./changeFeed.ts";
import type { CommissioningLock } from "./decide/commissioningLock.ts";
import { type LevelRange, levelRangeOf } from "./decide/describe.ts";
import { reasonWhileDeferred } from "./decide/reason.ts";
import { type Bar, barTo, type GatedStep, type StartsBlocked, SiteMode } from "./decide/gate.ts";
import type { Deferral } from "./decide/pace.ts";
import { Ramp } from "./decide/ramp.ts";
import type { ControlSettings } from "./ports.ts";
import { type Verdict, verdict } from "./decide/verdict.ts";
import { applyingHold, Holds, restoredHold } from "./holds/holds.ts";
import { Absences, DeleteClaims } from "./ingest/absence.ts";
import type { ReadonlyKnownEvents } from "./ingest/knownEvents.ts";
import { Rejections } from "./ingest/quarantine.ts";
import { Occupancy } from "./observe/occupancy.ts";
import { freshPhases, freshVoltage, Presences, Silence } from "./observe/presence.ts";
import { Reboots } from "./observe/reboots.ts";
import { type Agenda, WakeTimes } from "./schedule/agenda.ts";
import type { Dispatch, ExpandContext } from "./schedule/expand.ts";
import { Schedule } from "./schedule/schedule.ts";
import { NOTHING_IN_FORCE } from "./schedule/vehiclePlan.ts";
import { Commands, loadedAt, restored } from "./send/commands.ts";
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
  /** False: the lease on the site is in doubt. Absent: no other process can lead it. */
  readonly leads?: () => boolean;
  /** The state was lost: every charger is asserted once, release included. */
  readonly assertAll: boolean;
  /** Room for dispatches. Absent: for any number. */
  readonly room?: RoomPart;
}

/**
 * All that control knows, in memory: the stored state, indexed, and what chargers reported since the start. The parts
 * are objects of their own. Each changes by its own verbs, or by a verb of this class where several change together.
 * A start restores it from what is stored; after a failed commit `rollBack` (recovery.ts) does so for what that commit changed.
 */
export class ControlState {
  readonly chargers: ReadonlyMap<ChargerId, Charger>;
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly settings: ControlSettings;
  readonly wallClock: WallClock;
  readonly levelRange: LevelRange;
  readonly schedule: Schedule;
  readonly occupancy: Occupancy;
  readonly absences = new Absences();
  readonly rejections = new Rejections();
  readonly deleteClaims = new DeleteClaims();
  readonly commands = new Commands();
  readonly presence = new Presences();
  readonly silence = new Silence();
  readonly reboots = new Reboots();
  readonly writes = new Writes();
  readonly sendQueue = new SendQueue();
  readonly feed = new ChangeFeed();
  readonly holds = new Holds((id) => this.feed.announce("hold", id));
  readonly mode: SiteMode;
  /** Null: the site may rise at once. */
  readonly ramp: Ramp | null;
  readonly epoch: number;
  readonly #deferrals = new Map<ChargerId, Deferral>();
  readonly #locks = new Map<ChargerId, CommissioningLock>();
  readonly #unasserted: Set<ChargerId>;
  readonly #setup: ControlSetup;
  readonly #wakes = new WakeTimes<ChargerId>();
  #startsBlockedBy: StartsBlocked | null = "starting up";
  #seq = 0;
  #holdNumber = 0;
  #rebootNumber = 0;

  constructor(setup: ControlSetup) {
    this.#setup = setup;
    this.epoch = setup.epoch;
    this.chargers = new Map(setup.chargers.map((charger) => [charger.id, charger]));
    this.vehicles = new Map(setup.vehicles.map((vehicle) => [vehicle.id, vehicle]));
    const { siteKey, settings, archive, room } = setup;
    this.settings = settings;
    this.mode = new SiteMode(settings.mode);
    this.schedule = new Schedule({ siteKey, vehicles: this.vehicles, settings }, archive, this.feed, room);
    this.wallClock = setup.wallClock;
    this.levelRange = levelRangeOf(setup.chargers);
    this.occupancy = new Occupancy(this.vehicles, (vehicle) => this.feed.announce("vehicle", vehicle));
    this.ramp = settings.releaseRamp === null ? null : new Ramp(settings.releaseRamp);
    this.#unasserted = new Set(setup.assertAll ? this.chargers.keys() : []);
  }

  /** Starts from what is stored, but the events returned. The first evaluation finds windows that passed since the last row. */
  *restoring(stored: StoredState, now: Instant): ResumableTask<readonly KnownEvent[]> {
    this.commands.clear();
    this.holds.clear();
    this.sendQueue.committed(Infinity);
    this.rejections.clear();
    this.mode.restore(stored.observePeriod, now);
    const excess = yield* this.schedule.restoring(stored.events, stored.evaluatedAt, now);
    this.putCommands(stored, now);
    for (const binding of stored.bindings) {
      const { charger, vehicle, since } = binding;
      if (this.chargers.has(charger)) this.occupancy.recall(charger, vehicle, earlier(since, now), binding);
    }
    yield* inSteps(this.commands.values(), ({ command, limitedAt }) => {
      const { charger, vehicle, desired, decidedAt } = command;
      if (vehicle === null) return;
      // A limit found by a clock that was ahead of this one is due again once this clock is right.
      const mayBeKept = desired.kind !== "release" || limitedAt !== undefined;
      if (mayBeKept && this.vehicles.has(vehicle))
        this.occupancy.kept.keep(charger, vehicle, limitedAt ?? decidedAt);
      if (desired.kind !== "release") this.occupancy.recall(charger, vehicle, earlier(decidedAt, now));
      for (const dispatch of this.agenda.of(vehicle))
        if (this.#covers(command, dispatch)) this.schedule.markEvaluated(dispatch);
    });
    for (const hold of stored.holds) this.holds.put(restoredHold(hold, now));
    this.assertAgain(this.chargers.keys());
    this.ramp?.recall(this.commands.values(), this.chargers, now);
    return excess;
  }

  /** True: a decision acted on a dispatch, or a hold that it is for overruled the dispatch. */
  #covers({ cause, event, decidedAt }: Command, dispatch: Dispatch): boolean {
    if (dispatch.from > decidedAt) return false;
    const known = this.known.get(dispatch.event.id);
    const isKnown = known !== undefined && known.receivedAt <= decidedAt;
    return dispatch.event.id === event || (cause === "operator" && isKnown && decidedAt < dispatch.until);
  }

  /** Adds stored commands with their reasons. */
  putCommands({ commands, reasons }: Pick<StoredState, "commands" | "reasons">, now: Instant): void {
    for (const stored of commands) {
      const record = this.barTo("plan", null) === null ? reallySent(stored) : stored;
      if (record === null) continue;
      const { ramp } = this.settings.verdict;
      this.commands.record(loadedAt(restored(record, ramp), ramp, now));
      const why = reasons.get(commandId(record.command));
      if (why !== undefined) this.commands.explain(record.command.charger, why);
    }
  }

  /** Chargers without a command were not asserted yet since the state was lost: at a start, and after a failed commit. */
  assertAgain(chargers: Iterable<ChargerId>): void {
    if (!this.#setup.assertAll) return;
    for (const charger of chargers)
      if (this.chargers.has(charger) && this.commands.get(charger) === undefined)
        this.#unasserted.add(charger);
  }

  /** A new decision for a charger. It may go out after its commit. */
  recordDecision(record: CommandRecord, reason: Reason): void {
    const { charger, vehicle } = record.command;
    this.commands.record(record);
    this.commands.explain(charger, reason);
    if (vehicle !== null) this.feed.announce("vehicle", vehicle);
    this.sendQueue.awaitCommit(charger);
    this.#unasserted.delete(charger);
  }

  /** Chargers without a command since the state was lost. */
  get unasserted(): ReadonlySet<ChargerId> {
    return this.#unasserted;
  }

  /** Chargers whose increase has to wait, and for what. */
  get deferrals(): ReadonlyMap<ChargerId, Deferral> {
    return this.#deferrals;
  }

  /** An increase waits. The charger is evaluated again when it may go out. */
  defer(charger: ChargerId, deferral: Deferral): void {
    this.#deferrals.set(charger, deferral);
    this.wake(charger, deferral.until);
  }

  endDeferral(charger: ChargerId): void {
    this.#deferrals.delete(charger);
  }

  /** Chargers that commissioning uses. */
  get locks(): ReadonlyMap<ChargerId, CommissioningLock> {
    return this.#locks;
  }

  lock(charger: ChargerId, lock: CommissioningLock): void {
    this.#locks.set(charger, lock);
  }

  unlock(charger: ChargerId): void {
    this.#locks.delete(charger);
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
      leads: this.#setup.leads?.() ?? true,
      mode: this.mode.current,
      startsBlockedBy: this.#startsBlockedBy,
      online: charger === null ? null : this.presence.of(charger).online,
      isLocked: charger !== null && this.#locks.has(charger),
    });
  }

  get expansion(): ExpandContext {
    return this.schedule.context;
  }

  get known(): ReadonlyKnownEvents {
    return this.schedule.known;
  }

  get agenda(): Agenda {
    return this.schedule.agenda;
  }

  /** Number of the next command. */
  nextId(): { readonly epoch: number; readonly seq: number } {
    this.#seq += 1;
    return { epoch: this.epoch, seq: this.#seq };
  }

  /** Id of the next hold. */
  nextHoldId(): string {
    this.#holdNumber += 1;
    return `hold-${this.epoch}-${this.#holdNumber}`;
  }

  /** Id of the next reboot. */
  nextRebootId(): string {
    this.#rebootNumber += 1;
    return `reboot-${this.epoch}-${this.#rebootNumber}`;
  }

  verdictOn(charger: Charger, now: Instant): Verdict {
    const occupant = this.occupancy.at(charger.id);
    const vehicle = occupant.kind === "vehicle" ? this.vehicles.get(occupant.vehicle) : undefined;
    const presence = this.presence.of(charger.id);
    const inForce = vehicle === undefined ? NOTHING_IN_FORCE : this.agenda.inForce(vehicle.id, now);
    return verdict({
      charger,
      occupant,
      vehicle: vehicle ?? null,
      inForce,
      hold: applyingHold(this.holds.over(charger.id, vehicle?.id ?? null, now), inForce),
      measuredVoltage: freshVoltage(presence, now),
      measuredPhases: freshPhases(presence, now),
    });
  }

  /** Reason of the last command, and of a higher setpoint that is deferred. Null: not known. */
  whyOf(charger: Charger): Reason | null {
    const [why, deferral] = [this.commands.reasonOf(charger.id), this.#deferrals.get(charger.id)];
    return why === null || deferral === undefined
      ? why
      : reasonWhileDeferred(why, deferral, charger, this.wallClock);
  }

  /** Asks for an evaluation at a moment. */
  wake(charger: ChargerId, at: Instant): void {
    this.#wakes.wake(charger, at);
  }

  /** The chargers that asked to be evaluated by now. */
  woken(now: Instant): ReadonlySet<ChargerId> {
    return this.#wakes.woken(now);
  }

  /** The next moment at which anything needs an evaluation. */
  next(): Instant | undefined {
    // Called after each publish, so it creates no list.
    const first = Math.min(
      this.agenda.next() ?? Infinity,
      this.#wakes.next() ?? Infinity,
      this.holds.next() ?? Infinity,
      this.mode.next() ?? Infinity,
      this.reboots.next() ?? Infinity,
    );
    return first === Infinity ? undefined : instant(first);
  }
}
