import type { Config } from "../../src/config/schema.ts";
import type { ControlConfig } from "../../src/config/sections/control.ts";
import type { ReportConfig } from "../../src/config/sections/report.ts";
import type { ControlPorts } from "../../src/control/ports.ts";
import { type AuditRow, textOf } from "../../src/domain/audit.ts";
import type { Charger } from "../../src/domain/charger.ts";
import type { ReportRecord } from "../../src/domain/report.ts";
import type { Hold, ObservePeriod } from "../../src/domain/hold.ts";
import { chargerId, type Instant, type Millis } from "../../src/domain/units.ts";
import type { Vehicle } from "../../src/domain/vehicle.ts";
import type { ReportRow } from "../../src/operator/listViews.ts";
import type { Opened } from "../../src/domain/store.ts";
import type { Reception } from "../../src/vtn/reception.ts";
import { type Meddling, type PartnerSide, wired } from "../support/wiredDepot.ts";
import { FaultyDisk } from "./faultyDisk.ts";
import type { CrashPoint } from "./plan.ts";
import { simClients } from "./simClients.ts";
import type { Floor } from "./simFloor.ts";

/** What is planted in a run, for the simulation to find; `run` counts from 1. */
export type Plant = (run: number) => Meddling & {
  /** What becomes of a webhook body before it is read. */
  readonly post?: (body: unknown) => unknown;
  /** What becomes of a report on its way to the partner. */
  readonly report?: (post: Post) => Post;
};

type Post = NonNullable<PartnerSide["post"]>;

interface GatewayOptions {
  readonly directory: string;
  readonly chargers: readonly Charger[];
  readonly vehicles: readonly Vehicle[];
  readonly control: ControlConfig;
  /** Absent: no vehicle leaves. */
  readonly departures?: Pick<Config, "departures" | "departureGuard">;
  /** Null: nothing is reported. */
  readonly report: ReportConfig | null;
  readonly zone: string;
  readonly pollEvery: Millis;
  readonly maxSkew: Millis;
  readonly random: () => number;
  /** Its wall clock. */
  readonly wall: () => Instant;
  readonly monotonic: () => Millis;
  readonly floor: Floor;
  readonly disk: FaultyDisk;
  readonly plant: Plant;
  /** What a new run finds in its state. */
  readonly onOpened: (state: Opened & { ok: true }) => void;
  readonly onCrash: (downFor: number) => void;
  readonly stall: (ms: number) => void;
}

interface Run {
  readonly wiring: ReturnType<typeof wired>;
  readonly clients: Disposable;
  readonly life: { over: boolean };
  readonly spoil: (body: unknown) => unknown;
  /** Hang up on those who wait for an answer. */
  readonly callers: Set<() => void>;
}

const NEVER = new Promise<never>(() => {});

/** The daemon as a process: the real core, flow and store, which can end at any await and be started again. */
export class SimGateway {
  crashes = 0;
  /** Until then (monotonic ms) each commit holds everything up. */
  slowUntil = 0;
  readonly #options: GatewayOptions;
  #runs = 0;
  #run: Run | null = null;
  #armed: { readonly point: CrashPoint; readonly downFor: number; turns: number } | null = null;

  constructor(options: GatewayOptions) {
    this.#options = options;
    options.disk.beforeCommit = () => {
      this.#passes("before a commit");
      if (this.#run?.life.over === true) throw FaultyDisk.gone();
    };
    options.disk.afterCommit = () => {
      if (options.monotonic() < this.slowUntil) options.stall(Math.round(3_000 * options.random()));
      this.#passes("after a commit");
    };
  }

  get isUp(): boolean {
    return this.#run !== null && !this.#run.life.over;
  }

  /** What it takes the time to be. */
  now(): Instant {
    return this.#run?.wiring.now() ?? this.#options.wall();
  }

  start(): void {
    const { floor, random, wall, monotonic, maxSkew, report, plant, onOpened, ...setup } = this.#options;
    const life = { over: false };
    const alive = async <T>(answer: Promise<T>): Promise<T> => {
      const value = await answer;
      return life.over ? NEVER : value;
    };
    this.#runs += 1;
    const planted = plant(this.#runs);
    let clients: ReturnType<typeof simClients> | undefined;
    // It waits for a disk that can be opened, as whoever starts it again would.
    const { state } = setup.disk;
    setup.disk.state = "sound";
    const wiring = wired(
      { ...setup, ...(report === null ? {} : { report }), random, publishesStates: false },
      {
        now: wall,
        monotonic,
        maxSkew,
        partner: (now) => {
          clients = simClients({ report, now, monotonic, random, alive });
          return { ...clients, post: planted.report?.(clients.post) ?? clients.post };
        },
        floor,
        looked: () => {},
        warn: () => {},
        recorded: () => {},
        meddle: {
          opened: (opened) => {
            onOpened(opened);
            return planted.opened?.(opened) ?? opened;
          },
          ports: (honest) => this.#mortal(planted.ports?.(honest) ?? honest, life, alive),
          ...(planted.sources === undefined ? {} : { sources: planted.sources }),
        },
      },
    );
    setup.disk.state = state;
    if (clients === undefined) throw new Error("nobody asked for the partner");
    this.#run = { wiring, clients, life, spoil: planted.post ?? ((body) => body), callers: new Set() };
    floor.attach({
      hear: (message) => wiring.charger$.next(message),
      brokerUp: wiring.brokerUp,
    });
  }

  /** A webhook request; null: nobody answers. */
  async post(body: unknown): Promise<Reception | null> {
    const run = this.#run;
    if (run === null || run.life.over) return null;
    const bytes = Buffer.from(JSON.stringify(run.spoil(body)));
    const { promise, resolve } = Promise.withResolvers<Reception | null>();
    const hangUp = (): void => resolve(null);
    run.callers.add(hangUp);
    void run.wiring.receive({ authorization: "Bearer s" }, bytes, this.now()).then(resolve);
    const answer = await promise;
    run.callers.delete(hangUp);
    return answer;
  }

  /** An operator's request; null: nobody answers, or it is refused. The id of the hold. */
  async hold(body: object): Promise<string | null> {
    const run = this.#run;
    if (run === null || run.life.over) return null;
    const answer = await run.wiring.holds.open(body, "sim", null);
    return answer.ok && !run.life.over ? textOf(answer.value, "id") : null;
  }

  /** Ends a hold; whether that was acknowledged. */
  async endHold(id: string): Promise<boolean> {
    const run = this.#run;
    if (run === null || run.life.over) return false;
    const answer = await run.wiring.holds.end(id, { reason: "simulated" }, "sim");
    return answer.ok && !run.life.over;
  }

  /** An operator has the site observe until then; whether that was acknowledged. */
  observe = (until: Instant): Promise<boolean> =>
    this.#mode({ mode: "observe", until: new Date(until).toISOString(), reason: "simulated" });

  /** An operator has the site drive again; whether that was acknowledged. */
  drive = (): Promise<boolean> => this.#mode({ mode: "drive", reason: "simulated" });

  async #mode(body: object): Promise<boolean> {
    const run = this.#run;
    if (run === null || run.life.over) return false;
    const answer = await run.wiring.mode.put(body, "sim");
    return answer.ok && !run.life.over;
  }

  /** The period of observe that lasts; null: none, or it is down. */
  get period(): ObservePeriod | null {
    return this.isUp ? (this.#run?.wiring.depot.mode.period ?? null) : null;
  }

  /** All holds that it knows, the newest first; null: it is down. */
  holds(): readonly Hold[] | null {
    return this.isUp ? (this.#run?.wiring.depot.holds.all() ?? null) : null;
  }

  /** Rows of the record after one, as they are on disk. */
  rowsAfter(seq: number): readonly AuditRow[] {
    return this.#run?.wiring.store.reads.audit({ after: seq, limit: 1_000_000 }) ?? [];
  }

  /** Whether it says that it holds an increase back. */
  isHeldBack(charger: string): boolean {
    return this.#run?.wiring.depot.deferrals.has(chargerId(charger)) ?? false;
  }

  /** What became of each report descriptor, and the reports that were made; null: it is not there. */
  reports(): { readonly rows: readonly ReportRow[]; readonly records: readonly ReportRecord[] } | null {
    if (this.#run === null) return null;
    const { reports, store } = this.#run.wiring;
    return { rows: reports?.view() ?? [], records: store.reads.reports({ limit: 1_000_000 }) };
  }

  /** Follows the hash chain; null: it holds. */
  chainFault(): string | null {
    const verified = this.#run?.wiring.store.reads.verify();
    return verified === undefined || verified.ok ? null : verified.reason;
  }

  /** The process ends when it gets to that point. */
  crashAt(point: CrashPoint, downFor: number): void {
    const turns = typeof point === "object" ? point.turns : Infinity;
    this.#armed = { point, downFor, turns };
    this.#passes("at once");
  }

  disarm(): void {
    this.#armed = null;
  }

  /** After each turn of the loop: one that has ended leaves nothing behind but what it committed. */
  afterTurn(): void {
    if (this.#armed !== null && (this.#armed.turns -= 1) <= 0) this.#die(this.#armed.downFor);
    if (this.#run?.life.over === true) this.#bury(this.#run);
  }

  stop(): void {
    if (this.#run === null) return;
    this.#run.life.over = true;
    this.#bury(this.#run);
  }

  #mortal(
    ports: ControlPorts,
    life: { readonly over: boolean },
    alive: <T>(answer: Promise<T>) => Promise<T>,
  ): ControlPorts {
    return {
      ...ports,
      durable: (when) => alive(ports.durable(when)),
      send: async (...sending) => {
        this.#passes("before a publish");
        if (life.over) return NEVER;
        const sent = ports.send(...sending);
        this.#passes("after a publish");
        return alive(sent);
      },
    };
  }

  #passes(point: CrashPoint): void {
    if (this.#armed !== null && this.#armed.point === point && this.isUp) this.#die(this.#armed.downFor);
  }

  #die(downFor: number): void {
    this.#armed = null;
    if (this.#run === null || this.#run.life.over) return;
    this.#run.life.over = true;
    this.crashes += 1;
    this.#options.onCrash(downFor);
    setTimeout(() => this.start(), downFor + 500);
  }

  #bury({ wiring, clients, callers }: Run): void {
    this.#run = null;
    for (const hangUp of callers) hangUp();
    this.#options.floor.detach();
    wiring.flow.unsubscribe();
    clients[Symbol.dispose]();
    const { disk } = this.#options;
    const { beforeCommit } = disk;
    disk.beforeCommit = () => {
      throw FaultyDisk.gone();
    };
    wiring.store[Symbol.dispose]();
    disk.beforeCommit = beforeCommit;
  }
}
