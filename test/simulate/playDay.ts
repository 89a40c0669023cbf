import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { TrackedEvent } from "../../src/domain/event.ts";
import type { Command } from "../../src/domain/command.ts";
import { endOf, type Hold } from "../../src/domain/hold.ts";
import type { Opened } from "../../src/domain/store.ts";
import { instant } from "../../src/domain/units.ts";
import { chance } from "../fuzz/chance.ts";
import { configured } from "../support/aConfiguration.ts";
import { SITE_KEY } from "../support/wiredDepot.ts";
import { Courier } from "./courier.ts";
import { FaultyDisk } from "./faultyDisk.ts";
import { type Breach, breachOf, Seen } from "./invariants.ts";
import {
  isSame,
  mayKeep,
  shouldHoldUnder,
  type Site,
  type Standing,
  standingInWords,
  standingUnder,
  type TrueEvent,
  vehicleOn,
} from "./oracle.ts";
import { HoldRules, type PlannedGuard } from "./holdRules.ts";
import { type KeepRule, KeptBays } from "./keptBays.ts";
import { equippedAs } from "./profiledBay.ts";
import { doesAsItShould } from "./mixedRules.ts";
import { GATE, Patience } from "./patience.ts";
import { type AcknowledgedHolds, perform, RECONNECT } from "./perform.ts";
import { CALM_FROM, DAY, type Day, MINUTE, type PlannedCharger, type PlannedVehicle } from "./plan.ts";
import { SeenRecord } from "./record.ts";
import { SeenReports, silenceOf } from "./reportRules.ts";
import type { FloorOptions } from "./brokeredFloor.ts";
import type { Floor } from "./simFloor.ts";
import { type Plant, SimGateway } from "./simGateway.ts";
import { SimPartner } from "./simPartner.ts";
import { floorOf } from "./twoKindsFloor.ts";
import { VirtualClock } from "./virtualClock.ts";
import { VirtualWire } from "./virtualWire.ts";
import { time } from "./aDay.ts";
import { timeOfDay } from "./words.ts";

/** What went wrong, and when (ms of the day). */
export interface Failure {
  readonly invariant: string;
  readonly words: string;
  readonly at: number;
}

/** Looks at a charger. All but the first are looks that nothing excused. */
interface Watched {
  readonly looks: number;
  readonly all: number;
  /** An event was to hold. */
  readonly held: number;
  /** Another charger named the vehicle, and the limit had to stay. */
  readonly keeps: number;
  /** The charger was empty then, and had to be free. */
  readonly free: number;
}

export interface Played {
  readonly failure: Failure | null;
  readonly publishes: number;
  readonly crashes: number;
  readonly turns: number;
  /** What was told to whom: "12:00:00.000 bay-01 1-3 10 A for E1", by true time of the day. */
  readonly told: readonly string[];
  /** "09:00:30 E1/0/0": each report that came to the partner, and each time, by true time of the day. */
  readonly reported: readonly string[];
  /** The most in any hour, over all starts. */
  readonly asked: { readonly requests: number; readonly tokens: number };
  /** "09:00:30 bay-01": each alarm that a charger does not do what it was told, by the gateway's clock. */
  readonly alarms: readonly string[];
  /** What was missed, by the gateway's clock. */
  readonly missed: readonly string[];
  readonly watched: Watched;
  /** Holds that were open at some look. */
  readonly holds: number;
  /** Holds by how they ended, those of the guard that ended, and periods of observe. */
  readonly ended: {
    readonly energy: number;
    readonly unplugged: number;
    readonly events: number;
    readonly guarded: number;
    readonly periods: number;
  };
}

const SECOND = 1_000;
/** What was under way when a period began is over after this, ms. */
const OBSERVES_WITHIN = 10 * SECOND;

const MOST_TURNS_PER_CHARGER = 500;
const MOST_REQUESTS = 360;
const MOST_TOKENS = 60;

/** Moments in order, ms. */
const mostInAnHour = (times: readonly number[]): number => {
  let first = 0;
  return times.reduce((most, time, index) => {
    while ((times[first] ?? time) <= time - 60 * MINUTE) first += 1;
    return Math.max(most, index - first + 1);
  }, 0);
};

export interface PlayOptions {
  readonly plant?: Plant;
  /** Called at each look. `at`: ms of the day. */
  readonly onLook?: (at: number, floor: Floor) => void;
}

/** On memory where there is such a thing: a sync of every commit to a real disk would be most of the time. */
const scratch = (): string => mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "simulated-"));

/** Plays a day from midnight to midnight, or to its first breach. */
export async function playDay(
  day: Day,
  { plant = () => ({}), onLook = () => {} }: PlayOptions = {},
): Promise<Played> {
  using stack = new DisposableStack();
  const directory = scratch();
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const clock = stack.use(new VirtualClock(instant(day.midnight)));
  const disk = stack.use(new FaultyDisk());
  const wire = stack.use(new VirtualWire());
  const stage = new Stage(day, { clock, disk, wire, directory, plant, onLook });
  stack.defer(() => stage.gateway.stop());
  try {
    await stage.play();
  } catch (error) {
    stage.fails("nothing throws", error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  return stage.outcome;
}

interface Props {
  readonly clock: VirtualClock;
  readonly disk: FaultyDisk;
  readonly wire: VirtualWire;
  readonly directory: string;
  readonly plant: Plant;
  readonly onLook: NonNullable<PlayOptions["onLook"]>;
}

/** What the chargers are held against at one look. */
interface View {
  /** True time. */
  readonly at: number;
  readonly told: Floor["told"];
  /** Those that any vehicle acts on now. */
  readonly events: readonly TrueEvent[];
  /** Those that are open. */
  readonly holds: readonly Hold[];
  readonly isObserving: boolean;
}

/** One day with everyone who takes part in it. */
class Stage {
  readonly gateway: SimGateway;
  readonly #day: Day;
  readonly #props: Props;
  readonly #site: Site;
  readonly #partner: SimPartner;
  readonly #floor: Floor;
  readonly #record: SeenRecord;
  readonly #seen: Seen;
  readonly #reports: SeenReports;
  readonly #patience: Patience;
  readonly #courier: Courier;
  /** The latest that the gateway's clock ever showed. */
  #latest = 0;
  /** When the disk last refused a commit, monotonic ms. */
  #refusedAt = -Infinity;
  readonly #told: string[] = [];
  readonly #reported: string[] = [];
  #checkedAt = 0;
  /** True time of the look before the last, ms. */
  #checkedBefore = 0;
  #publishes = 0;
  #turns = 0;
  #minute = { number: 0, turns: 0 };
  #watched = { looks: 0, all: 0, held: 0, keeps: 0, either: 0, free: 0 };
  readonly #kept = new KeptBays();
  readonly #held: AcknowledgedHolds = {
    opened: new Set(),
    ended: new Set(),
    observing: null,
    unanswered: new Set(),
  };
  /** Since when the gateway observes, monotonic ms; null: it does not. */
  #observesSince: number | null = null;
  readonly #holdRules: HoldRules;
  readonly #open = new Set<string>();
  /** As they were at the last look. */
  #lastHolds: readonly Hold[] | null = null;
  /** Until when each ended hold is known, by the gateway's clock (5.8). */
  readonly #knownUntil = new Map<string, number>();
  #failure: Failure | null = null;

  constructor(day: Day, props: Props) {
    this.#day = day;
    this.#props = props;
    const { clock, wire } = props;
    const random = chance(day.seed ^ 0x5eed);
    const { chargers, vehicles, knobs, midnight, zone, writtenIn } = day;
    this.#patience = new Patience(clock.monotonic, knobs.pollEvery);
    this.#site = { chargers, vehicles, knobs, siteKey: SITE_KEY, midnight, zone, writtenIn };
    this.#partner = new SimPartner({
      midnight,
      zone,
      writtenIn,
      truth: clock.truth,
      monotonic: clock.monotonic,
      random,
      onPosted: (posted) => {
        this.#reported.push(`${timeOfDay(this.#now).slice(0, 8)} ${posted.name}`);
        this.#breaks(this.#reports.breachOf(posted, this.#latest));
      },
    });
    this.#reports = new SeenReports(this.#partner.history);
    wire.answer = this.#partner.answer;
    const {
      chargers: configuredOutlets,
      vehicles: ours,
      control,
      vtn,
      report,
      clock: limits,
      departures,
      departureGuard,
    } = configured(sections(day));
    this.#holdRules = new HoldRules(midnight, guardOf(day));
    const outlets = configuredOutlets.map((outlet, index) => equippedAs(outlet, chargers[index]?.make));
    const floor: FloorOptions = {
      chargers,
      vehicles,
      truth: clock.truth,
      gateway: () => this.gateway.now(),
      random,
      onNewGuest: () => this.#patience.disturbed("*", 0),
      onPublish: (command, lease, isBusy) => {
        this.#publishes += 1;
        const publish = {
          command,
          lease,
          at: this.gateway.now(),
          elapsed: clock.monotonic(),
          sinceSet: clock.sinceSet,
          isBehind: this.gateway.now() < clock.truth() - SECOND,
          isBusy,
          isDisturbed: this.#patience.isExcused(command.charger, null),
          isHeldBack: this.gateway.isHeldBack(command.charger),
          sinceRefusal: clock.monotonic() - this.#refusedAt,
          occupant: this.#occupantOf(command.charger),
          holds: this.#holdsBy(this.gateway.now() - MINUTE),
        };
        this.#note(command);
        this.#breaks(breachOf(publish, this.#seen));
        this.#breaksRecord();
        if (command.desired.kind !== "release" && this.#hasObservedFor(OBSERVES_WITHIN))
          this.fails("while it observes, nothing but releases goes out", `${command.charger} is limited`);
      },
    };
    this.#floor = floorOf(floor, outlets);
    this.gateway = new SimGateway({
      ...props,
      chargers: outlets,
      vehicles: ours,
      control,
      ...(day.guardMost === undefined ? {} : { departures: { departures, departureGuard } }),
      report: knobs.reports ? report : null,
      zone,
      pollEvery: vtn.pollEvery,
      maxSkew: limits.maxSkew,
      random,
      wall: clock.gateway,
      monotonic: clock.monotonic,
      floor: this.#floor,
      stall: (ms) => clock.stall(ms),
      onOpened: (state) => this.#remembersAll(state),
      onCrash: (downFor) => {
        const takes = downFor + SECOND + GATE + RECONNECT;
        this.#seen.processEnded();
        this.#patience.disturbed("*", takes);
        this.#patience.newsDelayed(takes);
      },
    });
    this.#courier = new Courier(this.gateway, this.#partner, this.#patience);
    this.#record = new SeenRecord((seq) => this.gateway.rowsAfter(seq));
    this.#seen = new Seen(this.#site, this.#partner.history, this.#record);
    clock.onTurn = () => {
      this.#latest = Math.max(this.#latest, this.gateway.now());
      if (props.disk.state !== "sound") this.#refusedAt = clock.monotonic();
      this.#countTurn();
      this.gateway.afterTurn();
      this.#look();
    };
  }

  get outcome(): Played {
    const { crashes } = this.gateway;
    return {
      failure: this.#failure,
      publishes: this.#publishes,
      crashes,
      turns: this.#turns,
      told: this.#told,
      reported: this.#reported,
      asked: this.#asked,
      alarms: this.#record.alarms,
      missed: this.#record.missed,
      watched: this.#watched,
      holds: this.#open.size,
      ended: { ...this.#holdRules.seen, periods: this.#holdRules.seen.periods.size },
    };
  }

  async play(): Promise<void> {
    const { clock, disk } = this.#props;
    const cast = {
      clock,
      disk,
      gateway: this.gateway,
      partner: this.#partner,
      floor: this.#floor,
      courier: this.#courier,
      patience: this.#patience,
      held: this.#held,
    };
    const isOver = (): boolean => this.#failure !== null;
    this.#patience.disturbed("*", GATE + RECONNECT);
    this.gateway.start();
    for (const action of this.#day.actions) {
      await clock.advanceTo(action.at, isOver);
      if (isOver()) return;
      perform(action, cast);
    }
    const { ends = DAY } = this.#day;
    await clock.advanceTo(ends, isOver);
    if (isOver()) return;
    if (this.#patience.isNeeded && this.#day.actions.every(({ at }) => at < CALM_FROM))
      this.fails("the night is calm", "somebody is still excused at midnight");
    const fault = this.gateway.chainFault();
    if (fault !== null) this.fails("S8 the record holds", fault);
    this.#record.read();
    this.#breaksRecord();
    this.#countRequests();
    this.#hearOfReports();
  }

  /** L4: beside the polling, in any hour and over all starts. */
  #countRequests(): void {
    const polls = (60 * MINUTE) / (0.9 * this.#day.knobs.pollEvery);
    const { requests, tokens } = this.#asked;
    if (requests > MOST_REQUESTS + polls || tokens > MOST_TOKENS)
      this.fails("L4 requests are bounded", `${requests} requests and ${tokens} for a token in an hour`);
  }

  get #asked(): Played["asked"] {
    const { askedAt, identity } = this.#partner;
    return { requests: mostInAnHour(askedAt), tokens: mostInAnHour(identity.askedAt) };
  }

  #hearOfReports(): void {
    const reports = this.gateway.reports();
    if (!this.#day.knobs.reports) return;
    if (reports === null) return this.fails("the night is calm", "the gateway is down at midnight");
    const { events, history, tray } = this.#partner;
    const { midnight } = this.#day;
    const { accepted } = this.#record;
    const at = this.#props.clock.truth();
    this.#breaks(silenceOf({ at, midnight, history, events, accepted, ...reports, taken: tray.taken }));
  }

  /** Also during the day: what follows takes no part when it is cut down. */
  #breaksRecord(): void {
    const { wrong } = this.#record;
    if (wrong !== null) this.fails("a window is missed once, and not after it was acted on", wrong);
  }

  #breaks(breach: Breach | null): void {
    if (breach !== null) this.fails(breach.invariant, breach.words);
  }

  fails(invariant: string, words: string): void {
    this.#failure ??= { invariant, words, at: this.#now };
  }

  /** Of the day. */
  get #now(): number {
    return this.#props.clock.day();
  }

  #note({ charger, epoch, seq, desired, event }: Command): void {
    const what = standingInWords(standingUnder(desired));
    this.#told.push(`${timeOfDay(this.#now)} ${charger} ${epoch}-${seq} ${what} for ${event ?? "nothing"}`);
  }

  /** S10: whatever fails, there is not much to do in a minute. */
  #countTurn(): void {
    this.#turns += 1;
    const minute = Math.floor(this.#now / MINUTE);
    if (minute > this.#minute.number) this.#minute = { number: minute, turns: 0 };
    this.#minute.turns += 1;
    const most = MOST_TURNS_PER_CHARGER * (1 + this.#day.chargers.length);
    if (this.#minute.turns > most)
      this.fails("S10 it does not turn in circles", `${this.#minute.turns} turns within a minute`);
  }

  #occupantOf(charger: string): string | null {
    const planned = this.#day.chargers.find(({ id }) => id === charger);
    return planned === undefined ? null : (vehicleOn(planned, this.#floor.told, this.#site)?.id ?? null);
  }

  /** L1, at most once a second: does everyone what the oracle says? */
  #look(): void {
    const now = this.#now;
    if (now < this.#checkedAt + SECOND) return;
    this.#checkedBefore = this.#day.midnight + this.#checkedAt;
    this.#checkedAt = now;
    // Only telemetry tells who is where, and that cannot be hurried.
    if (!this.#floor.isTold) this.#patience.disturbed("*", 0);
    const unsure = new Set(this.#floor.unsure);
    for (const charger of unsure) this.#patience.disturbed(charger, 0);
    const { told } = this.#floor;
    const at = this.#day.midnight + now;
    const view = {
      at,
      told,
      events: [...this.#partner.events.values()].filter((event) => this.#seen.isActing(event, at)),
      holds: this.#holdsBy(Infinity),
      isObserving: this.gateway.period !== null,
    };
    for (const charger of this.#day.chargers)
      if (charger.switchesPhases !== true) this.#lookAt(charger, view, unsure.has(charger.id));
    this.#props.onLook(now, this.#floor);
    this.#lookAtHolds(view);
  }

  #lookAt(charger: PlannedCharger, view: View, isUnsure: boolean): void {
    const { at, told, events, holds, isObserving } = view;
    const vehicle = vehicleOn(charger, told, this.#site);
    const kept = mayKeep(charger, told, this.#site);
    // A limit that is kept for a vehicle elsewhere is none of a hold's business.
    if (kept !== null && (holds.length > 0 || isObserving)) return;
    const asked = (whom: PlannedVehicle | null): Standing =>
      isObserving
        ? { kind: "free" }
        : shouldHoldUnder(holds, charger, whom, events, this.#site, at, this.#seen.shareOf);
    const should = asked(vehicle);
    const mayHold = kept === null ? should : asked(kept);
    // The claim of a silent charger does not count. Once it speaks, its claim is a new one. A charger that was offline
    // for a moment between two looks makes a new one, too.
    const isClaimed =
      kept !== null && !isUnsure && !this.#floor.wasUnclaimed(charger.id, this.#checkedBefore);
    const rule = this.#ruleFor(charger, mayHold, isClaimed);
    if (!this.#floor.isWatched(charger.id) && rule !== "free") return;
    const does = this.#floor.standing(charger.id);
    // What excuses the vehicle that it may be limited for excuses it, too.
    const whom = (vehicle ?? kept)?.id ?? null;
    this.#watched.looks += 1;
    if (!this.#patience.isExcused(charger.id, whom)) {
      this.#watched.all += 1;
      if (should.kind !== "free") this.#watched.held += 1;
      this.#watched[rule] += 1;
    }
    const isRight =
      (rule !== "keeps" && this.#isAsItShould(charger, does, should)) ||
      (rule !== "free" && this.#isAsItShould(charger, does, mayHold));
    const words = (): string => {
      const who = rule === "keeps" ? `${whom}, named elsewhere,` : (vehicle?.id ?? "nobody");
      const what = standingInWords(rule === "keeps" ? mayHold : should);
      return `${charger.id} with ${who} does ${standingInWords(does)}, should ${what}`;
    };
    const isLetGo = should.kind !== "free" || mayHold.kind !== "free" || isRight;
    const isOverdue = this.#patience.isOverdue(charger.id, whom, isLetGo);
    if (this.#patience.isOver(charger.id, whom, isRight))
      this.fails("L1 undisturbed, nobody is wrong for over 30 s", words());
    else if (isOverdue)
      this.fails("F05 a charger is released within 30 s although the disk refuses", words());
  }

  /** Holds that are open, or ended after a moment of the gateway's; the newest first. */
  #holdsBy(moment: number): readonly Hold[] {
    return (this.gateway.holds() ?? []).filter(({ ended }) => ended === null || ended.at > moment);
  }

  /** 5.8: every hold ends, and none lasts longer than a day. */
  #lookAtHolds({ at, told, holds: open }: View): void {
    const now = this.gateway.now();
    const all = this.gateway.holds();
    for (const hold of open) {
      const until = endOf(hold);
      this.#open.add(hold.id);
      if (this.#patience.isExcused("*", null)) continue;
      if (until > now + DAY + SECOND) this.fails("5.8 no hold lasts longer than a day", hold.id);
      if (until < now - 30 * SECOND)
        this.fails("5.8 every hold ends", `${hold.id} until ${new Date(until).toISOString()}`);
    }
    if (all !== this.#lastHolds)
      for (const { id, since, ended } of all ?? [])
        if (ended !== null) this.#knownUntil.set(id, Math.max(since, ended.at) + DAY);
    this.#lastHolds = all;
    const { vehicles } = this.#day;
    if (this.gateway.period === null) this.#observesSince = null;
    else this.#observesSince ??= this.#props.clock.monotonic();
    this.#breaks(
      this.#holdRules.look({
        elapsed: this.#props.clock.monotonic(),
        now,
        at,
        holds: all,
        period: this.gateway.period,
        reported: (charger) => this.#floor.reported(charger),
        guest: (charger) =>
          this.#floor.wasEmpty(charger, this.#checkedBefore) ? null : this.#floor.guest(charger),
        namedAt: (vehicle) => [...told].flatMap(([charger, named]) => (named === vehicle ? [charger] : [])),
        isExcused: [...vehicles.map(({ id }) => id), null].some((id) => this.#patience.isExcused("*", id)),
        events: [...this.#partner.events.values()],
        shareOf: this.#seen.shareOf,
        vehicles: vehicles.map(({ id }) => id),
      }),
    );
  }

  #hasObservedFor(ms: number): boolean {
    const since = this.gateway.period === null ? null : this.#observesSince;
    return since !== null && this.#props.clock.monotonic() - since > ms;
  }

  #isAsItShould(charger: PlannedCharger, does: Standing, should: Standing): boolean {
    if (charger.make === undefined) return isSame(does, should);
    const isHeldBack = this.gateway.isHeldBack(charger.id) || this.#floor.pretends(charger.id);
    return doesAsItShould(does, should, charger, isHeldBack);
  }

  #ruleFor(charger: PlannedCharger, own: Standing, isClaimed: boolean): KeepRule {
    const { id } = charger;
    return this.#kept.ruleFor({
      at: this.#now,
      charger: id,
      isClaimed,
      isLimited: own.kind !== "free",
      isPaused: own.kind === "pause",
      obeys: this.#isAsItShould(charger, this.#floor.standing(id), own),
      isEmpty: this.#floor.isEmpty(id),
      wasEmpty: this.#floor.wasEmpty(id, this.#checkedBefore),
      isDrawing: this.#floor.isDrawing(id),
      isReachable: this.#floor.isReachable(id),
    });
  }

  /** S7: what a webhook was thanked for is there after any restart, and so are holds, and their early ends. */
  #remembersAll({ storedState: remembered }: Opened & { ok: true }): void {
    const stored = new Map(remembered.holds.map((hold) => [hold.id, hold]));
    for (const id of this.#held.opened)
      if (!stored.has(id) && this.#latest < (this.#knownUntil.get(id) ?? Infinity))
        this.fails("S7 what was acknowledged survives", `${id} is lost`);
    for (const id of this.#held.ended)
      if (stored.get(id)?.ended === null) this.fails("S7 what was acknowledged survives", `${id} is back`);
    const { observing, unanswered } = this.#held;
    const period = remembered.observePeriod?.until ?? null;
    const hasEnded = period === null && observing !== null && observing <= this.#latest;
    if (period !== observing && !hasEnded && !unanswered.has(period))
      this.fails("S7 what was acknowledged survives", `observe until ${period}, not until ${observing}`);
    this.#held.observing = period;
    unanswered.clear();
    const known = new Map(remembered.events.map((event) => [String(event.id), event]));
    for (const [id, revised] of this.#courier.thanked) {
      const event = known.get(id);
      const isWithdrawn =
        event?.kind === "withdrawn" || (event?.kind === "over" && event.was === "withdrawn");
      const isThere = isWithdrawn || revisionOf(event) >= revised;
      if (!isThere) this.fails("S7 what was acknowledged survives", `${id} is lost`);
    }
  }
}

function revisionOf(event: TrackedEvent | undefined): number {
  if (event?.kind === "live") return event.revision.event.revision;
  return event?.kind === "over" ? event.revision : 0;
}

/** Null: nobody leaves. */
const guardOf = ({ guardMost, vehicles }: Day): PlannedGuard | null =>
  guardMost === undefined
    ? null
    : {
        most: guardMost,
        leaves: new Map(
          vehicles.flatMap(({ id, leaves }) => (leaves === undefined ? [] : [[id, time(leaves.at)]])),
        ),
      };

const sections = ({ chargers, vehicles, knobs, guardMost }: Day): Readonly<Record<string, unknown>> => {
  const { pollEvery, reports: _, ...control } = knobs;
  return {
    control,
    vtn: { pollEvery: `${pollEvery / 1000}s` },
    chargers: chargers.map(({ id, maxCurrent, belowMinimum, phases, switchesPhases }) => ({
      id,
      belowMinimum,
      phases,
      ...(switchesPhases === undefined ? {} : { phaseSwitching: {} }),
      current: { max: maxCurrent },
    })),
    ...(guardMost === undefined ? {} : { departureGuard: { on: true, most: guardMost } }),
    vehicles: vehicles.map(({ id, charger, maxCurrent, leaves }) => ({
      id,
      ...(leaves === undefined ? {} : { departures: [{ at: leaves.at, energy: leaves.energyKwh }] }),
      ...(charger === null ? {} : { charger }),
      ...(maxCurrent === null ? {} : { current: { max: maxCurrent } }),
    })),
  };
};
