import { join } from "node:path";
import { expect } from "vitest";

import type { AuditKind, Json } from "../../src/domain/audit.ts";
import { type Command, commandId, type CommandRecord } from "../../src/domain/command.ts";
import type { CommissioningLock } from "../../src/control/decide/commissioningLock.ts";
import type { Committed } from "../../src/domain/changes.ts";
import type { ChargerMessage, Telemetry } from "../../src/domain/telemetry.ts";
import { chargerId, type EventId, eventId, instant, iso, millis } from "../../src/domain/units.ts";
import { acquireCharger, endCommissioning } from "../../src/control/decide/commissioningAccess.ts";
import { explanationsOf } from "../../src/daemon/status.ts";
import { standDown } from "../../src/control/stop.ts";
import type { Answer } from "../../src/operator/answer.ts";
import { eventPlan } from "../../src/operator/eventPlan.ts";
import { chargerView } from "../../src/operator/views.ts";
import { handoverApi } from "../../src/operator/handover.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { timesOfDay } from "../../src/platform/clock.ts";
import type { Reception } from "../../src/vtn/reception.ts";
import { checkAnswer } from "./someAnswers.ts";
import { type Published, ScriptedFloor } from "./scriptedFloor.ts";
import type { ScriptedPartner } from "./scriptedPartner.ts";
import { advanceTo, settled, virtualNow } from "./virtualTime.ts";
import { type DepotSetup, SITE_KEY, wired } from "./wiredDepot.ts";
import { moment, revisionTime, type WireEvent, wireEvent, type Wish } from "./wireEvent.ts";

interface TestSetup extends DepotSetup {
  readonly partner: ScriptedPartner;
  /** While full, every commit fails. */
  readonly disk: { full: boolean; doubtful: boolean };
}

interface Restart {
  readonly after?: number;
  readonly mode?: "drive" | "observe";
  /** Whether reports are switched on. */
  readonly reports?: boolean;
  /** Null: the guard of departures is switched off. */
  readonly guard?: null;
  /** A vehicle that the configuration lacks from then on. */
  readonly without?: string;
}

/**
 * The real core, flow and store, wired by src/daemon, in virtual time. Only the other parties are scripted:
 * `partner`, and `floor` for the broker with its chargers.
 */
export class TestDepot {
  readonly floor: ScriptedFloor;
  readonly partner: ScriptedPartner;
  readonly disk: { full: boolean; doubtful: boolean };
  /** What a person should hear of. */
  readonly warnings: string[] = [];
  readonly siteKey = SITE_KEY;
  /** What became of the keepalives of chargers. */
  readonly keepalives: string[] = [];
  looks = 0;
  clockAgrees = true;
  /** So far our clock is known to be ahead of the partner's. */
  ahead = millis(0);
  #setup: TestSetup;
  readonly #recorded = new Set<string>();
  readonly #forgotten = new Set<string>();
  /** That ever came. */
  readonly #events = new Set<EventId>();
  #running: ReturnType<typeof wired> | null = null;

  constructor(setup: TestSetup) {
    this.#setup = setup;
    this.partner = setup.partner;
    this.disk = setup.disk;
    this.floor = new ScriptedFloor(
      (message) => this.#running?.charger$.next(message),
      (command) => this.#recorded.has(commandId(command)) || this.#isExempt(command),
    );
  }

  /** The file of its state, for who tampers with it while it stands still. */
  get database(): string {
    return join(this.#setup.directory, "setpointd.db");
  }

  start(): void {
    this.#running = wired(this.#setup, {
      now: virtualNow,
      monotonic: () => millis(performance.now()),
      partner: () => this.partner,
      floor: this.floor,
      looked: () => {
        this.looks += 1;
      },
      observe: (isObserving) => this.keepalives.push(isObserving ? "paused" : "resumed"),
      warn: (words) => this.warnings.push(words),
      clockAgrees: () => this.clockAgrees,
      ahead: () => this.ahead,
      recorded: (rows) => {
        for (const { command } of rows) if (command !== null) this.#recorded.add(command);
      },
    });
    this.brokerReturns();
  }

  /** `patience`: so long, ms, before what hangs at the broker is given up. */
  async stop({ full = false, patience = 10 } = {}): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    this.disk.full = full;
    running.flow.unsubscribe();
    await settled();
    let isOver = false;
    const stopping = standDown(running.depot, running.ports, this.#setup.control.onStop, {
      info: () => {},
      warn: (words) => this.warnings.push(words),
    });
    void stopping.then(() => (isOver = true));
    await this.passes(patience);
    if (!isOver) {
      // What hangs has its deadline.
      this.floor.failInFlight();
      await this.passes(20);
    }
    await stopping;
    this.#running = null;
    running.store[Symbol.dispose]();
  }

  /** Off and on again, within a second; in another mode, or with or without reports, where that is named. */
  async restart({
    after: pause = 0,
    mode = this.#setup.control.mode,
    reports: enabled = this.#setup.report?.enabled ?? false,
    guard,
    without,
  }: Restart = {}): Promise<void> {
    await this.stop();
    if (pause > 0) await this.passes(pause);
    const { control, report, departures } = this.#setup;
    this.#setup = {
      ...this.#setup,
      control: { ...control, mode },
      vehicles: this.#setup.vehicles.filter(({ id }) => id !== without),
      ...(report === undefined ? {} : { report: { ...report, enabled } }),
      ...(departures === undefined || guard === undefined
        ? {}
        : { departures: { ...departures, departureGuard: guard } }),
    };
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
    this.#events.add(eventId(event.ID));
    return event;
  }

  /** A webhook with an explicit delete of this event, which the partner does not have any more. */
  async withdraw(id: string, revision?: number): Promise<Reception> {
    this.partner.events.delete(id);
    this.#events.add(eventId(id));
    const object = {
      ID: id,
      ...(revision === undefined ? {} : { modificationDateTime: revisionTime(revision) }),
    };
    return this.post({ objectType: "EVENT", operation: "DELETE", object });
  }

  /** Any JSON by webhook; resolves with its answer. */
  async post(body: unknown): Promise<Reception> {
    const answered = this.#up.receive(
      { authorization: "Bearer s" },
      Buffer.from(JSON.stringify(body)),
      virtualNow(),
    );
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
    await this.hears({
      kind: "telemetry",
      charger: chargerId(charger),
      telemetry: { at: virtualNow(), ...telemetry },
    });
  }

  async online(charger: string, online: boolean, snapshot = false): Promise<void> {
    await this.hears({ kind: "online", charger: chargerId(charger), online, snapshot });
  }

  /** Heard, but no time passes. */
  says(message: ChargerMessage): void {
    this.#up.charger$.next(message);
  }

  async hears(message: ChargerMessage): Promise<void> {
    this.#up.charger$.next(message);
    await this.passes(10);
  }

  /** Answers whether that is on disk. */
  async free(...chargers: readonly string[]): Promise<Committed> {
    const { promise, resolve } = Promise.withResolvers<Committed>();
    this.#up.freed$.next({ chargers: chargers.map(chargerId), by: "operator", settle: resolve });
    await this.passes(10);
    return promise;
  }

  /** The answer of /api/v1/holds/preview. */
  async previewHold(body: unknown): Promise<Answer<Json>> {
    return described("POST", "/api/v1/holds/preview", await this.#up.holds.preview(body, "anna"));
  }

  /** Adds the costs of holds that are due. */
  async settleCosts(): Promise<void> {
    const settling = this.#up.costs();
    await this.passes(100);
    await settling;
  }

  /** The answer of /api/v1/explain. */
  async explain(query: Readonly<Record<string, string>>) {
    const { depot, store, now } = this.#up;
    const isLinked = (): boolean => this.floor.isUp ?? true;
    const answer = await explanationsOf(depot, store, now, () => null, isLinked)(query);
    return described("GET", "/api/v1/explain", answer);
  }

  /** The answer of /api/v1/events/ID/plan. */
  eventPlan(event: string): Answer<Json> {
    const { depot, now } = this.#up;
    return described("GET", `/api/v1/events/${event}/plan`, runToEnd(eventPlan(depot, event, now())));
  }

  /** The answer of /api/v1/events/ID/plan?start=now. */
  async dryRun(event: string): Promise<Answer<Json>> {
    const { depot, now } = this.#up;
    const recorded = (await depot.known.readWhole(eventId(event))) ?? null;
    return described(
      "GET",
      `/api/v1/events/${event}/plan`,
      runToEnd(eventPlan(depot, event, now(), recorded)),
    );
  }

  /** The answer of /api/v1/handover, without alarms and problems. */
  async handover(query: Readonly<Record<string, string>> = {}): Promise<Answer<Json>> {
    const { depot, store, now, mode, departures } = this.#up;
    const answer = await handoverApi({
      state: depot,
      store,
      site: "depot",
      timeOfDay: timesOfDay("UTC"),
      now,
      mode: mode.get,
      alarms: () => [],
      departures: () => departures?.api.list() ?? { ok: true, value: [] },
      problems: async () => [],
    })(query);
    return described("GET", "/api/v1/handover", answer);
  }

  /** Departures of this depot. */
  get departures() {
    const { departures } = this.#up;
    if (departures === null) throw new Error("the depot has no departures: withDepartures()");
    return departures;
  }

  /** The answer of GET /api/v1/departures. */
  departureList(): readonly Record<string, Json>[] {
    const answer = described("GET", "/api/v1/departures", this.departures.api.list());
    return answer.ok ? (answer.value as readonly Record<string, Json>[]) : [];
  }

  /** Sets a departure, as PUT /api/v1/departures/VEHICLE does. */
  async setDeparture(vehicle: string, body: unknown, by = "anna"): Promise<Answer<Json>> {
    const answer = this.departures.api.set(vehicle, body, by);
    await this.passes(10);
    return described("PUT", `/api/v1/departures/${vehicle}`, await answer);
  }

  /** Requests a hold, as POST /api/v1/holds does. */
  async hold(body: unknown, by = "anna", key: string | null = null): Promise<Answer<Json>> {
    const answer = this.#up.holds.open(body, by, key);
    await this.passes(10);
    return described("POST", "/api/v1/holds", await answer);
  }

  /** Changes the mode, as PUT /api/v1/mode does. */
  async mode(body: unknown, by = "anna"): Promise<Answer<Json>> {
    const answer = this.#up.mode.put(body, by);
    await this.passes(10);
    return described("PUT", "/api/v1/mode", await answer);
  }

  /** Sends the last command again, as POST /api/v1/chargers/ID/resend does. */
  async resendCommand(charger: string, body: unknown, by = "anna"): Promise<Answer<Json>> {
    const answer = this.#up.resend(charger, body, by);
    await this.passes(10);
    return answer;
  }

  /** Restarts a charger, as POST /api/v1/chargers/ID/reboot does. */
  async reboot(charger: string, body: unknown, by = "anna"): Promise<Answer<Json>> {
    const answer = this.#up.reboots.start(charger, body, by);
    await this.passes(10);
    return described("POST", `/api/v1/chargers/${charger}/reboot`, await answer);
  }

  /** The answer of GET /api/v1/chargers/ID/reboot. */
  rebootPreview(charger: string): Answer<Json> {
    return described("GET", `/api/v1/chargers/${charger}/reboot`, this.#up.reboots.get(charger));
  }

  /** A row of GET /api/v1/chargers. */
  chargerRow(charger: string): Readonly<Record<string, Json>> {
    const { depot, now } = this.#up;
    const found = depot.chargers.get(chargerId(charger));
    if (found === undefined) throw new Error(`no charger ${charger}`);
    return chargerView(depot, found, now()) as Readonly<Record<string, Json>>;
  }

  /** A person names the vehicle on a charger, as POST /api/v1/chargers/ID/vehicle does. */
  async bind(
    charger: string,
    vehicle: string,
    by = "anna",
    key: string | null = null,
  ): Promise<Answer<Json>> {
    const answer = this.#up.bindings.bind(charger, { vehicle, reason: "it stands there" }, by, key);
    await this.passes(10);
    return described("POST", "/api/v1/chargers/{id}/vehicle", await answer);
  }

  /** Takes it back, as DELETE /api/v1/chargers/ID/vehicle does. */
  async unbind(charger: string, by = "bert"): Promise<Answer<Json>> {
    const answer = this.#up.bindings.unbind(charger, { reason: "a mistake" }, by);
    await this.passes(10);
    return described("DELETE", "/api/v1/chargers/{id}/vehicle", await answer);
  }

  /** The answer of GET /api/v1/mode. */
  currentMode = (): Json => this.#up.mode.get();

  /** Ends a hold, as DELETE /api/v1/holds/ID does. */
  async endHold(id: string, reason: unknown = "done", by = "anna"): Promise<Answer<Json>> {
    const answer = this.#up.holds.end(id, { reason }, by);
    await this.passes(10);
    return described("DELETE", `/api/v1/holds/${id}`, await answer);
  }

  /** Ends the hold that applies, as a message on holds/set does. */
  async endHoldOver(scope: { readonly charger: string } | { readonly vehicle: string }, body: unknown) {
    const answer = this.#up.holds.endOver(scope, body, "mqtt");
    await this.passes(10);
    return answer;
  }

  /** The answer of GET /api/v1/holds. */
  holds = (query: Readonly<Record<string, string>> = {}): Answer<Json> =>
    described("GET", "/api/v1/holds", this.#up.holds.list(query));

  /** Lends a charger to commissioning. */
  lends(charger: string): CommissioningLock {
    const { depot, store } = this.#up;
    const configured = depot.chargers.get(chargerId(charger));
    if (configured === undefined) throw new Error(`no charger ${charger}`);
    const { lock, pendingRelease } = acquireCharger(depot, configured, virtualNow());
    store.write(pendingRelease);
    return lock;
  }

  /** A number as commissioning takes them. */
  nextId = () => this.#up.depot.nextId();

  /** Commissioning is over, and has left the charger as it was, or not. */
  async takesBack(charger: string, isLeft = true): Promise<void> {
    const { depot, store } = this.#up;
    store.write(endCommissioning(depot, chargerId(charger), isLeft, virtualNow()));
    await this.looksAtAgain(charger);
  }

  /** Commissioning has said its last word to a charger. */
  async looksAtAgain(charger: string): Promise<void> {
    this.#up.handedBack$.next(chargerId(charger));
    await this.passes(10);
  }

  brokerGoes(): void {
    this.floor.goDown();
  }

  brokerReturns(): void {
    this.floor.comeUp();
    this.#up.brokerUp();
  }

  /** What chargers were told, each command once: "bay-01 10 A". */
  commands = (): readonly string[] => this.fresh().map(({ words }) => words);

  /** The same with the moment: "08:00:00.000 bay-01 10 A". */
  timedCommands = (): readonly string[] => this.fresh().map(({ at, words }) => `${clockTime(at)} ${words}`);

  /** Every message, refreshes and re-assertions included, since `forget`. */
  messages = (): readonly string[] =>
    this.floor.published.map(({ at, words }) => `${clockTime(at)} ${words}`);

  /** From here on only what is new is shown: no command that went out before counts as one. */
  forget(): void {
    for (const { id } of this.floor.published) this.#forgotten.add(id);
    this.floor.published.length = 0;
    this.partner.asked.length = 0;
  }

  /** The record, in words. */
  audit = (...kinds: readonly AuditKind[]): readonly string[] =>
    this.#up.store.reads
      .audit({ limit: 100_000 })
      .filter(({ kind }) => kinds.length === 0 || kinds.includes(kind))
      .map(({ words }) => words);

  /** Bytes of text that each row of a kind takes in the record. */
  rowSizes = (kind: AuditKind): readonly number[] =>
    this.#up.store.reads
      .audit({ limit: 100_000 })
      .filter((row) => row.kind === kind)
      .map(({ words, facts }) => words.length + JSON.stringify(facts).length);

  /** Ids of the events that are known, in memory and on disk alike. */
  knownEvents = (): readonly string[] => {
    const { depot, store } = this.#up;
    const inMemory = new Set(depot.known.keys());
    // Also the events that memory should have, and has not: those that came in this test or stand in the record.
    const inRecord = store.reads.audit({ limit: 100_000 }).flatMap(({ event }) => event ?? []);
    const events = new Set([...inMemory, ...inRecord, ...this.#events]);
    const stored = store.reads
      .stored({ events, chargers: new Set(), holds: new Set(), mode: false })
      .events.map(({ id }) => id);
    expect(inMemory).toEqual(new Set(stored));
    return stored;
  };

  /** The commands that are on disk. */
  storedCommands = (): readonly CommandRecord[] => {
    const { depot, store } = this.#up;
    return store.reads.stored({
      events: new Set(),
      chargers: new Set(depot.chargers.keys()),
      holds: new Set(),
      mode: false,
    }).commands;
  };

  /** The departures that were set and are on disk. */
  storedDepartures = () => this.#up.store.reads.departures().departures;

  /** Each event in memory, and whether it is whole there. */
  inMemory = (): readonly string[] =>
    [...this.#up.depot.known.values()].map(({ id, kind }) => `${id} ${kind}`).toSorted();

  /** Chargers that fell silent. */
  unreachable = (): readonly string[] =>
    [...this.#up.depot.chargers.keys()].filter((id) => this.#up.depot.silence.has(id));

  /** Whether the record holds from its first row, or its checkpoint, to its head. */
  verified = () => this.#up.store.reads.verify();

  /** How many readings are kept of what a charger said in the minute from then on. */
  keptReadings(charger: string, since: string): number {
    const from = Date.parse(moment(since));
    return this.#up.store.reads.readings([chargerId(charger)], instant(from), instant(from + 60_000)).length;
  }

  /** How often the store has committed since the start. */
  commits = (): number => this.#up.store.stats().commits;

  /** What the partner is owed and has got: "sent EV-1/0/0 1 vehicle, 4.2 kWh". */
  reports = (): readonly string[] =>
    (this.#up.reports?.view() ?? []).map(({ state, name, summary, reason }) =>
      [state, name, summary, reason].filter((part) => part !== null).join(" "),
    );

  async resend(name: string): Promise<void> {
    this.#up.reports?.resend(name);
    await this.passes(10);
  }

  /** What each charger that is not its own master stands under: "bay-01 10 A until 09:00:00.000". */
  standing = (): readonly string[] =>
    [
      ...new Map(
        this.floor.published.map(({ command, words }) => [command.charger, { command, words }]),
      ).values(),
    ]
      .filter(({ command }) => command.desired.kind !== "release")
      .map(({ command, words }) =>
        command.until === null ? words : `${words} until ${clockTime(command.until)}`,
      )
      .toSorted();

  /** A release may go out while the disk refuses, and is recorded when it can be. */
  #isExempt({ desired, cause }: Command): boolean {
    const refuses = this.disk.full || this.disk.doubtful;
    return refuses && desired.kind === "release" && ["ended", "operator", "observe"].includes(cause);
  }

  get #up(): ReturnType<typeof wired> {
    if (this.#running === null) throw new Error("the depot is not running");
    return this.#running;
  }

  /** The first message of each command since `forget`. */
  fresh(): readonly Published[] {
    const seen = new Set(this.#forgotten);
    return this.floor.published.filter(({ id }) => !seen.has(id) && seen.add(id));
  }
}

/** An answer that is as docs/openapi.json describes it. */
function described<Value extends Json>(method: string, path: string, answer: Answer<Value>): Answer<Value> {
  if (answer.ok) checkAnswer(method, path, answer.value);
  return answer;
}

/** "08:00:00.000"; with the date where it is not the first day's. */
function clockTime(at: Published["at"]): string {
  const text = iso(at);
  return text.startsWith("2026-11-21") ? text.slice(11, 23) : text;
}
