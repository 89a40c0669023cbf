import pino from "pino";
import { filter, map, merge, mergeMap, share, Subject, take, tap, timer } from "rxjs";

import type { ControlConfig } from "../../src/config/control.ts";
import type { AuditKind } from "../../src/core/audit.ts";
import { Depot } from "../../src/core/depot.ts";
import type { Charger } from "../../src/core/site/charger.ts";
import type { ChargerMessage, Telemetry } from "../../src/core/site/telemetry.ts";
import type { Vehicle } from "../../src/core/site/vehicle.ts";
import { type ChargerId, chargerId, instant, iso, type Millis, seconds } from "../../src/core/units.ts";
import { control, states } from "../../src/flow/control.ts";
import { type Hint, polling } from "../../src/flow/polling.ts";
import type { Arrival, ControlPorts, Fetched } from "../../src/flow/ports.ts";
import { standDown } from "../../src/flow/stop.ts";
import { openState } from "../../src/store/open.ts";
import { receive, type Reception } from "../../src/vtn/reception.ts";
import { wallClock } from "../../src/wallClock.ts";
import { type Published, ScriptedFloor } from "./scriptedFloor.ts";
import type { ScriptedPartner } from "./scriptedPartner.ts";
import { advanceTo, settled, virtualNow } from "./virtualTime.ts";
import { moment, revisionTime, type WireEvent, wireEvent, type Wish } from "./wireEvent.ts";

export interface TestDepotSetup {
  readonly directory: string;
  readonly chargers: readonly Charger[];
  readonly vehicles: readonly Vehicle[];
  readonly control: ControlConfig;
  readonly pollEvery: Millis;
  readonly random: () => number;
  readonly partner: ScriptedPartner;
  readonly publishesStates: boolean;
  /** While full, every commit fails. */
  readonly disk: { full: boolean };
}

const SITE_KEY_BYTE = 7;
const log = pino({ level: "silent" });

/**
 * The real core, flow and store, wired as app.ts wires them, in virtual time. Only the other parties are scripted:
 * `partner`, and `floor` for the broker with its chargers.
 */
export class TestDepot {
  readonly floor: ScriptedFloor;
  readonly partner: ScriptedPartner;
  readonly disk: { full: boolean };
  /** What a person should hear of. */
  readonly warnings: string[] = [];
  readonly siteKey = Buffer.alloc(32, SITE_KEY_BYTE);
  looks = 0;
  readonly #setup: TestDepotSetup;
  readonly #recorded = new Set<string>();
  #running: ReturnType<TestDepot["wired"]> | null = null;

  constructor(setup: TestDepotSetup) {
    this.#setup = setup;
    this.partner = setup.partner;
    this.disk = setup.disk;
    this.floor = new ScriptedFloor(
      (message) => this.#running?.charger$.next(message),
      (command) => this.#recorded.has(command),
    );
  }

  start(): void {
    this.#running = this.wired();
    this.brokerReturns();
  }

  async stop(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    this.disk.full = false;
    running.flow.unsubscribe();
    this.floor.failInFlight();
    await settled();
    const stopping = standDown(running.depot, running.ports, this.#setup.control.onStop, {
      info: () => {},
      warn: (words) => this.warnings.push(words),
    });
    await this.passes(10);
    await stopping;
    this.#running = null;
    running.store[Symbol.dispose]();
  }

  /** Off and on again, within a second. */
  async restart({ after: pause = 0 }: { readonly after?: number } = {}): Promise<void> {
    await this.stop();
    if (pause > 0) await this.passes(pause);
    this.start();
    await this.passes(1000);
  }

  /** "08:30", "08:30:00.250", or ISO. */
  until = (time: string): Promise<void> => advanceTo(instant(Date.parse(moment(time))));

  passes = (ms: number): Promise<void> => advanceTo(instant(virtualNow() + ms - 1));

  /** The partner has this event now, and delivers it by webhook. */
  async deliver(wish: Wish): Promise<Reception> {
    return this.post(this.has(wish));
  }

  /** The partner has this event now; nothing is delivered. */
  has(wish: Wish): WireEvent {
    const event = wireEvent(
      wish,
      this.#setup.vehicles.map(({ id }) => id),
    );
    this.partner.events.set(event.ID, event);
    return event;
  }

  /** A webhook with an explicit delete of this event, which the partner does not have any more. */
  async withdraw(id: string, revision?: number): Promise<Reception> {
    this.partner.events.delete(id);
    const object = { ID: id, ...(revision === undefined ? {} : { modificationDateTime: revisionTime(revision) }) };
    return this.post({ objectType: "EVENT", operation: "DELETE", object });
  }

  /** Any JSON by webhook; resolves with its answer. */
  async post(body: unknown): Promise<Reception> {
    const answered = this.#up.receive({ authorization: "Bearer s" }, Buffer.from(JSON.stringify(body)), virtualNow());
    await this.passes(10);
    return answered;
  }

  /** Several bodies in one turn of the loop, in this order. */
  async postTogether(bodies: readonly unknown[]): Promise<readonly Reception[]> {
    const answers = bodies.map((body) =>
      this.#up.receive({ authorization: "Bearer s" }, Buffer.from(JSON.stringify(body)), virtualNow()),
    );
    await this.passes(10);
    return Promise.all(answers);
  }

  async telemetry(charger: string, telemetry: Omit<Telemetry, "at">): Promise<void> {
    await this.hears({ kind: "telemetry", charger: chargerId(charger), telemetry: { at: virtualNow(), ...telemetry } });
  }

  async online(charger: string, online: boolean, snapshot = false): Promise<void> {
    await this.hears({ kind: "online", charger: chargerId(charger), online, snapshot });
  }

  async hears(message: ChargerMessage): Promise<void> {
    this.#up.charger$.next(message);
    await this.passes(10);
  }

  async free(...chargers: readonly string[]): Promise<void> {
    this.#up.freed$.next(chargers.map(chargerId));
    await this.passes(10);
  }

  brokerGoes(): void {
    this.floor.goDown();
  }

  brokerReturns(): void {
    this.floor.comeUp();
    this.#up.broker$.next(true);
  }

  /** What chargers were told, each command once: "bay-01 10 A". */
  commands = (): readonly string[] => this.#firsts().map(({ words }) => words);

  /** The same with the moment: "08:00:00.000 bay-01 10 A". */
  timedCommands = (): readonly string[] => this.#firsts().map(({ at, words }) => `${clockTime(at)} ${words}`);

  /** Every message, refreshes and re-assertions included, since `forget`. */
  messages = (): readonly string[] => this.floor.published.map(({ at, words }) => `${clockTime(at)} ${words}`);

  /** From here on only what is new is shown. */
  forget(): void {
    this.floor.published.length = 0;
    this.partner.asked.length = 0;
  }

  /** The record, in words. */
  audit = (...kinds: readonly AuditKind[]): readonly string[] =>
    this.#up.store
      .audit({ limit: 100_000 })
      .filter(({ kind }) => kinds.length === 0 || kinds.includes(kind))
      .map(({ words }) => words);

  /** What each charger that is not its own master stands under: "bay-01 10 A until 09:00:00.000". */
  standing = (): readonly string[] =>
    [...new Map(this.floor.published.map(({ command, words }) => [command.charger, { command, words }])).values()]
      .filter(({ command }) => command.desired.kind !== "release")
      .map(({ command, words }) =>
        command.until === null ? words : `${words} until ${clockTime(command.until)}`,
      )
      .toSorted();

  get #up(): ReturnType<TestDepot["wired"]> {
    if (this.#running === null) throw new Error("the depot is not running");
    return this.#running;
  }

  #firsts(): readonly Published[] {
    const seen = new Set<string>();
    return this.floor.published.filter(({ id }) => !seen.has(id) && seen.add(id));
  }

  /** As in app.ts, but for the parties that are scripted. */
  private wired() {
    const { directory, chargers, vehicles, control: settings, pollEvery, random, publishesStates } = this.#setup;
    const { partner, floor } = this;
    const now = virtualNow;
    const opened = openState(directory, { now, random: () => this.siteKey, log });
    if (!opened.ok) throw new Error(opened.reason);
    const { store, remembered, epoch, siteKey, setAside } = opened;
    const record = ({ command }: { readonly command: string | null }): unknown =>
      command !== null && this.#recorded.add(command);
    store.onCommitted = (rows) => rows.forEach(record);

    const depot = new Depot({
      chargers,
      vehicles,
      settings,
      siteKey,
      epoch,
      wallClock: wallClock("UTC", now),
      unsure: setAside !== null,
    });
    depot.restore(remembered, now());
    const words = "setpointd started";
    const nobody = { charger: null, vehicle: null, event: null, command: null };
    store.write([{ kind: "audit", entry: { at: now(), kind: "daemon", ...nobody, words, facts: null } }]);

    const charger$ = new Subject<ChargerMessage>();
    const broker$ = new Subject<boolean>();
    const hint$ = new Subject<Hint>();
    const webhook$ = new Subject<Arrival>();
    const freed$ = new Subject<readonly ChargerId[]>();
    const asRead = (answer: Awaited<ReturnType<ScriptedPartner["list"]>>): Fetched =>
      answer.kind === "gone" ? { ...answer, kind: "read" } : answer;
    const fetched$ = polling(
      { now, random, list: async () => asRead(await partner.list()), event: async (id) => asRead(await partner.event(id)) },
      hint$,
      pollEvery,
    ).pipe(
      tap((fetched) => {
        if (fetched.kind !== "unchanged") return;
        const missing = depot.listed(null, fetched.at);
        if (missing.length > 0) hint$.next(missing);
      }),
      share(),
    );
    const polled$ = fetched$.pipe(
      mergeMap((fetched) => (fetched.kind === "read" ? [fetched.delivery] : [])),
      map((delivery): Arrival => ({
        delivery,
        settle: ({ ok }) => (ok ? partner.settled(delivery) : undefined),
      })),
    );
    const ports: ControlPorts = {
      now,
      random,
      write: (changes) => store.write(changes),
      durable: () => store.durable(),
      remembered: () => store.remembered(),
      send: (command, lease) => floor.send(command, lease),
      publishState: (charger, payload) => floor.publishState(charger, payload),
      ask: (ids) => hint$.next(ids),
      looked: () => {
        this.looks += 1;
      },
      warn: (words) => this.warnings.push(words),
    };
    const startsAllowed$ = merge(fetched$, timer(seconds(10))).pipe(take(1));
    const brokerUp$ = broker$.pipe(filter(Boolean));
    const controlled$ = control(
      depot,
      { webhook$, polled$, charger$, brokerUp$, startsAllowed$, freed$ },
      ports,
    );
    const flow = merge(controlled$, publishesStates ? states(depot, ports) : []).subscribe();
    const receiveBody = receive({
      scheme: { kind: "bearer", secrets: () => ["s"] },
      now,
      monotonic: now,
      hint: (ask) => hint$.next(ask),
      take: (delivery) => {
        const { promise, resolve } = Promise.withResolvers<Parameters<Arrival["settle"]>[0]>();
        webhook$.next({
          delivery,
          settle: (answer) => {
            if (answer.ok) partner.settled(delivery);
            resolve(answer);
          },
        });
        return promise;
      },
    });
    return { store, depot, ports, flow, charger$, broker$, freed$, hint$, receive: receiveBody };
  }
}

/** "08:00:00.000"; with the date where it is not the first day's. */
function clockTime(at: Published["at"]): string {
  const text = iso(at);
  return text.startsWith("2026-11-21") ? text.slice(11, 23) : text;
}
