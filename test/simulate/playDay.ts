import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Opened } from "../../src/store/open.ts";
import { instant } from "../../src/core/units.ts";
import { chance } from "../fuzz/chance.ts";
import { configured } from "../support/aConfiguration.ts";
import { SITE_KEY } from "../support/wiredDepot.ts";
import { Courier } from "./courier.ts";
import { FaultyDisk } from "./faultyDisk.ts";
import { breachOf, Seen } from "./invariants.ts";
import { shouldHold, type Site, standingInWords, vehicleOn } from "./oracle.ts";
import { GATE, Patience } from "./patience.ts";
import { perform, RECONNECT } from "./perform.ts";
import { CALM_FROM, DAY, type Day, MINUTE, type PlannedCharger } from "./plan.ts";
import { SimFloor } from "./simFloor.ts";
import { type Plant, SimGateway } from "./simGateway.ts";
import { SimPartner } from "./simPartner.ts";
import { VirtualClock } from "./virtualClock.ts";

/** What went wrong, and when (ms of the day). */
export interface Failure {
  readonly invariant: string;
  readonly words: string;
  readonly at: number;
}

export interface Played {
  readonly failure: Failure | null;
  readonly publishes: number;
  readonly crashes: number;
  readonly turns: number;
  /** Looks at a charger; those that nothing excused; and those of them at which an event was to hold. */
  readonly watched: { readonly looks: number; readonly all: number; readonly held: number };
}

const MIDNIGHT = Date.parse("2026-11-21T00:00:00Z");
const SECOND = 1_000;

const MOST_TURNS_PER_CHARGER = 500;

export interface PlayOptions {
  readonly plant?: Plant;
}

/** On memory where there is such a thing: a sync of every commit to a real disk would be most of the time. */
const scratch = (): string => mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "simulated-"));

/** Plays a day from midnight to midnight, or to its first breach. */
export async function playDay(day: Day, { plant = () => ({}) }: PlayOptions = {}): Promise<Played> {
  using stack = new DisposableStack();
  const directory = scratch();
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const clock = stack.use(new VirtualClock(instant(MIDNIGHT)));
  const disk = stack.use(new FaultyDisk());
  const stage = new Stage(day, { clock, disk, directory, plant });
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
  readonly directory: string;
  readonly plant: Plant;
}

/** One day with everyone who takes part in it. */
class Stage {
  readonly gateway: SimGateway;
  readonly #day: Day;
  readonly #props: Props;
  readonly #site: Site;
  readonly #partner: SimPartner;
  readonly #floor: SimFloor;
  readonly #seen: Seen;
  readonly #patience: Patience;
  readonly #courier: Courier;
  #checkedAt = 0;
  #publishes = 0;
  #turns = 0;
  #minute = { number: 0, turns: 0 };
  #watched = { looks: 0, all: 0, held: 0 };
  #failure: Failure | null = null;

  constructor(day: Day, props: Props) {
    this.#day = day;
    this.#props = props;
    const { clock } = props;
    const random = chance(day.seed ^ 0x5eed);
    const { chargers, vehicles, knobs } = day;
    this.#patience = new Patience(clock.monotonic, knobs.pollEvery);
    this.#site = { chargers, vehicles, knobs, siteKey: SITE_KEY, midnight: MIDNIGHT };
    this.#partner = new SimPartner({
      midnight: MIDNIGHT,
      truth: clock.truth,
      gateway: clock.gateway,
      random,
    });
    this.#floor = new SimFloor({
      chargers,
      vehicles,
      truth: clock.truth,
      gateway: clock.gateway,
      random,
      onNewGuest: () => this.#patience.disturbed("*", 0),
      onPublish: (command, lease, isBusy) => {
        this.#publishes += 1;
        const publish = {
          command,
          lease,
          at: clock.gateway(),
          elapsed: clock.monotonic(),
          isBehind: clock.aheadBy < 0,
          isBusy,
        };
        const breach = breachOf(publish, this.#seen);
        if (breach !== null) this.fails(breach.invariant, breach.words);
      },
    });
    const { chargers: outlets, vehicles: ours, control, vtn } = configured(sections(day));
    this.gateway = new SimGateway({
      ...props,
      chargers: outlets,
      vehicles: ours,
      control,
      pollEvery: vtn.pollEvery,
      random,
      now: clock.gateway,
      monotonic: clock.monotonic,
      partner: this.#partner,
      floor: this.#floor,
      stall: (ms) => clock.stall(ms),
      onOpened: (state) => this.#remembersAll(state),
      onCrash: (downFor) => {
        const takes = downFor + SECOND + GATE + RECONNECT;
        this.#patience.disturbed("*", takes);
        this.#patience.newsDelayed(takes);
      },
    });
    this.#courier = new Courier(this.gateway, this.#partner, this.#patience);
    this.#seen = new Seen(this.#site, this.#partner.history, (seq) => this.gateway.rowsAfter(seq));
    clock.onTurn = () => {
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
      watched: this.#watched,
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
    };
    const isOver = (): boolean => this.#failure !== null;
    this.#patience.disturbed("*", GATE + RECONNECT);
    this.gateway.start();
    for (const action of this.#day.actions) {
      await clock.advanceTo(action.at, isOver);
      if (isOver()) return;
      perform(action, cast);
    }
    await clock.advanceTo(DAY, isOver);
    if (isOver()) return;
    if (this.#patience.isNeeded && this.#day.actions.every(({ at }) => at < CALM_FROM))
      this.fails("the night is calm", "somebody is still excused at midnight");
    const fault = this.gateway.chainFault();
    if (fault !== null) this.fails("S8 the record holds", fault);
    const hours = DAY / (60 * MINUTE);
    const most = DAY / (0.9 * this.#day.knobs.pollEvery) + 360 * hours;
    if (this.#partner.requests > most)
      this.fails("L4 requests are bounded", `${this.#partner.requests} requests in a day`);
  }

  fails(invariant: string, words: string): void {
    this.#failure ??= { invariant, words, at: this.#now };
  }

  get #now(): number {
    return this.#props.clock.monotonic();
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

  /** L1, at most once a second: does everyone what the oracle says? */
  #look(): void {
    const now = this.#now;
    if (now < this.#checkedAt + SECOND) return;
    this.#checkedAt = now;
    // Only telemetry tells who is where, and that cannot be hurried.
    if (!this.#floor.isTold) this.#patience.disturbed("*", 0);
    const { told } = this.#floor;
    for (const charger of this.#day.chargers) this.#lookAt(charger, told);
  }

  #lookAt(charger: PlannedCharger, told: ReadonlyMap<string, string | null>): void {
    const now = this.#now;
    const vehicle = vehicleOn(charger, told, this.#site);
    const events = this.#partner.events.values();
    const at = MIDNIGHT + now;
    const should = shouldHold(charger, vehicle, events, this.#site, at, this.#seen.shareOf);
    const does = this.#floor.standing(charger.id);
    this.#watched.looks += 1;
    if (!this.#patience.isExcused(charger.id, vehicle?.id ?? null)) {
      this.#watched.all += 1;
      if (should.kind !== "free") this.#watched.held += 1;
    }
    if (!this.#patience.isOver(charger.id, vehicle?.id ?? null, does, should)) return;
    const words = `${charger.id} with ${vehicle?.id ?? "nobody"} does ${standingInWords(does)}, should ${standingInWords(should)}`;
    this.fails("L1 undisturbed, nobody is wrong for over 30 s", words);
  }

  /** S7: what a webhook was thanked for is there after any restart. */
  #remembersAll({ remembered }: Opened & { ok: true }): void {
    const known = new Map(remembered.events.map((event) => [String(event.id), event]));
    for (const [id, revised] of this.#courier.thanked) {
      const event = known.get(id);
      const isThere = event?.kind === "withdrawn" || (event?.revision.event.revision ?? 0) >= revised;
      if (!isThere) this.fails("S7 what was acknowledged survives", `${id} is lost`);
    }
  }
}

const sections = ({ chargers, vehicles, knobs }: Day): Readonly<Record<string, unknown>> => {
  const { pollEvery, ...control } = knobs;
  return {
    control,
    vtn: { pollEvery: `${pollEvery / 1000}s` },
    chargers: chargers.map(({ id, maxCurrent, belowMinimum, phases }) => ({
      id,
      belowMinimum,
      phases,
      current: { max: maxCurrent },
    })),
    vehicles: vehicles.map(({ id, charger, maxCurrent }) => ({
      id,
      ...(charger === null ? {} : { charger }),
      ...(maxCurrent === null ? {} : { current: { max: maxCurrent } }),
    })),
  };
};
