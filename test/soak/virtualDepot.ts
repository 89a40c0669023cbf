import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { after, type Instant, instant, millis } from "../../src/domain/units.ts";
import type { EventPlan } from "../../src/sim/events.ts";
import { below, chance, oneOf } from "../fuzz/chance.ts";
import { HOUR, MINUTE } from "../simulate/plan.ts";
import { SimFloor } from "../simulate/simFloor.ts";
import { VirtualClock } from "../simulate/virtualClock.ts";
import { configured } from "../support/aConfiguration.ts";
import { wired } from "../support/wiredDepot.ts";
import { QuietPartner } from "./quietPartner.ts";
import { REPORTED } from "./traffic.ts";

export interface VirtualPlan {
  readonly chargers: number;
  /** Milliseconds. */
  readonly telemetryEvery: number;
  /** From one event to the next, ms. */
  readonly eventEvery: number;
  /** Everything that is kept for a time is kept for so long, ms. */
  readonly keep: number;
  readonly seed: number;
  /** Its first moment. Absent: a day of 2026. */
  readonly from?: Instant;
  /** Folder of the state, which outlives the depot. Absent: one of its own. */
  readonly folder?: string;
}

const MIDNIGHT = instant(Date.parse("2026-11-21T00:00:00Z"));
/** Of each kind, one in so many. */
const [EDITED, WITHDRAWN, SILENT] = [3, 7, 5];
/** The partner's list forgets an event this long after it was put. */
const LISTED = 6 * HOUR;
const TABLES = ["event", "audit", "report", "reading", "duty", "seat"] as const;

/** Rows of each table that grows. */
export type Rows = Readonly<Record<(typeof TABLES)[number], number>>;

/** The real core, flow and store of a depot where nothing fails, in virtual time: telemetry, events, reports, retention. */
export class VirtualDepot implements Disposable {
  readonly #plan: VirtualPlan;
  readonly #stack = new DisposableStack();
  readonly #clock: VirtualClock;
  readonly #partner: QuietPartner;
  readonly #vehicles: readonly string[];
  readonly #random: () => number;
  readonly #floor: SimFloor;
  readonly #start: () => ReturnType<typeof wired>;
  #wiring: ReturnType<typeof wired>;
  #wholeEventsRead = 0;
  #database: DatabaseSync | null = null;
  #events = 0;
  #publishes = 0;
  #posted = 0;

  constructor(plan: VirtualPlan) {
    this.#plan = plan;
    const directory = plan.folder ?? this.#stack.use(folderInMemory()).path;
    this.#clock = this.#stack.use(new VirtualClock(plan.from ?? MIDNIGHT));
    this.#stack.defer(this.#watchDatabase());
    this.#random = chance(plan.seed);
    const { truth, gateway, monotonic } = this.#clock;
    const random = chance(plan.seed + 1);
    const numbers = Array.from({ length: plan.chargers }, (_, index) => index + 1);
    this.#vehicles = numbers.map((number) => `veh-${number}`);
    this.#partner = new QuietPartner(truth);
    const floor = new SimFloor({
      chargers: numbers.map((number) => ({
        id: `bay-${number}`,
        maxCurrent: 32,
        belowMinimum: "pause",
        phases: 3,
        tells: false,
      })),
      vehicles: numbers.map((number) => ({
        id: `veh-${number}`,
        charger: `bay-${number}`,
        maxCurrent: null,
      })),
      truth,
      gateway,
      random,
      telemetryEvery: plan.telemetryEvery,
      onPublish: () => (this.#publishes += 1),
      onNewGuest: () => undefined,
    });
    const { chargers, vehicles, control, report, retention, vtn } = configured({
      chargers: numbers.map((number) => ({ id: `bay-${number}`, current: { max: 32 } })),
      vehicles: numbers.map((number) => ({ id: `veh-${number}`, charger: `bay-${number}` })),
    });
    const kept = millis(plan.keep);
    const keeping = { ...retention, events: kept, withdrawn: kept, reports: kept, audit: kept };
    this.#floor = floor;
    this.#start = () =>
      wired(
        {
          directory,
          chargers,
          vehicles,
          control,
          pollEvery: vtn.pollEvery,
          random,
          publishesStates: false,
          report: { ...report, keepReadings: kept },
          retention: keeping,
        },
        {
          now: gateway,
          monotonic,
          partner: () => ({
            list: () => this.#partner.list(),
            event: (id) => this.#partner.event(id),
            settled: (delivery) => this.#partner.settled(delivery),
            post: async () => {
              this.#posted += 1;
              return { kind: "answered", status: 201, text: "", retryAfter: null };
            },
          }),
          floor,
          looked: () => undefined,
          warn: () => undefined,
          recorded: () => undefined,
          clockAgrees: () => true,
        },
      );
    this.#stack.defer(() => {
      this.#wiring.flow.unsubscribe();
      this.#wiring.store[Symbol.dispose]();
    });
    this.#wiring = this.#start();
    this.#attach();
    setTimeout(() => void this.#eventLife(), MINUTE);
    setInterval(() => void this.#eventLife(), plan.eventEvery);
  }

  /** Milliseconds of virtual time. */
  async passes(ms: number): Promise<void> {
    await this.#clock.advanceTo(this.#clock.monotonic() + ms, () => false);
  }

  /** The daemon stops and starts again. Answers how long it took to start and how many whole events it read for that. */
  restart(): { readonly tookMs: number; readonly wholeEventsRead: number } {
    this.#floor.detach();
    this.#wiring.flow.unsubscribe();
    this.#wiring.store[Symbol.dispose]();
    const [began, read] = [process.hrtime.bigint(), this.#wholeEventsRead];
    this.#wiring = this.#start();
    const tookMs = Number(process.hrtime.bigint() - began) / 1e6;
    this.#attach();
    return { tookMs, wholeEventsRead: this.#wholeEventsRead - read };
  }

  /** Events in memory: whole ones, and summaries of what is over. */
  get inMemory(): { readonly whole: number; readonly over: number } {
    const known = [...this.#wiring.depot.known.values()];
    const over = known.filter(({ kind }) => kind === "over").length;
    return { whole: known.length - over, over };
  }

  /** Since the start: commits of all kinds, setpoints that went out, reports that the partner has. */
  get count() {
    const { commits, bytes } = this.#wiring.store.stats();
    return { commits, bytes, events: this.#events, publishes: this.#publishes, reports: this.#posted };
  }

  get rows(): Rows {
    const count = (table: string): number =>
      Number(this.#database?.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.["n"]);
    return Object.fromEntries(TABLES.map((table) => [table, count(table)])) as Rows;
  }

  [Symbol.dispose](): void {
    this.#stack[Symbol.dispose]();
  }

  #attach(): void {
    const { charger$, brokerUp } = this.#wiring;
    this.#floor.attach({ hear: (message) => charger$.next(message), brokerUp });
  }

  /** Half of the fleet at 6 to 31 A for half of the time from one event to the next, starts spread over a sixth of it. */
  async #eventLife(): Promise<void> {
    this.#events += 1;
    const number = this.#events;
    const { eventEvery } = this.#plan;
    const half = this.#vehicles.filter(() => this.#random() < 0.5);
    const event: EventPlan = {
      id: `EV-${number}`,
      start: after(this.#clock.truth(), millis(5 * MINUTE)),
      durationMs: eventEvery / 2,
      randomizeStartMs: eventEvery / 6,
      priority: oneOf([1, 2, 3], this.#random),
      ask: this.#anAsk(),
      vehicles: half.length === 0 ? this.#vehicles.slice(0, 1) : half,
      reportDescriptors: REPORTED,
    };
    await this.#say(this.#partner.put(event), number);
    await passing(eventEvery / 3);
    if (number % EDITED === 0) await this.#say(this.#partner.put({ ...event, ask: this.#anAsk() }), number);
    if (number % WITHDRAWN === 0) await this.#say(this.#partner.withdraw(event.id), number);
    await passing(LISTED);
    this.#partner.forget(event.id);
  }

  #anAsk = (): EventPlan["ask"] => ({ amperes: 6 + below(26, this.#random) });

  /** By webhook; of some only the list tells. */
  async #say(body: unknown, number: number): Promise<void> {
    if (number % SILENT === 0) return;
    const bytes = Buffer.from(JSON.stringify(body));
    await this.#wiring.receive({ authorization: "Bearer s" }, bytes, this.#clock.gateway());
  }

  /** Nobody else may open the file: rows are counted over the connection that is there. Answers how to stop. */
  #watchDatabase(): () => void {
    const { exec, prepare } = DatabaseSync.prototype;
    const sawRead = (): void => void (this.#wholeEventsRead += 1);
    const saw = (database: DatabaseSync): void => void (this.#database = database);
    DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
      if (sql === "COMMIT") saw(this);
      exec.call(this, sql);
    };
    DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string) {
      const statement = prepare.call(this, sql);
      if (!/ FROM event WHERE id = \?/.test(sql)) return statement;
      const get = statement.get.bind(statement);
      const counted = (id: string): ReturnType<typeof get> => {
        sawRead();
        return get(id);
      };
      Object.assign(statement, { get: counted });
      return statement;
    };
    return () => {
      Object.assign(DatabaseSync.prototype, { exec, prepare });
    };
  }
}

/** A folder that is gone when it is disposed of, in memory where there is such a thing: a year of syncs takes hours. */
export function folderInMemory(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "soak-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** In virtual time. */
const passing = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
