import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";

import type { Charger } from "../../src/domain/charger.ts";
import { diskThatFillsUp } from "./fullDisk.ts";
import { configured } from "./aConfiguration.ts";
import { type Manner, ScriptedPartner } from "./scriptedPartner.ts";
import { TestDepot } from "./testDepot.ts";
import { settled, startVirtualTime } from "./virtualTime.ts";
import { DAY_ONE, type Wish } from "./wireEvent.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A depot to be described and then started: `await aDepot().withVehicle("v1", "bay-01").running()`. */
export const aDepot = (): DepotBuilder => new DepotBuilder();

/** Chargers and vehicles are those of a real configuration; the day is 2026-11-21, in UTC. */
class DepotBuilder {
  readonly #chargers = new Map<string, Fields>();
  readonly #vehicles: (Fields & { readonly id: string })[] = [];
  readonly #events: Wish[] = [];
  readonly #partner = new ScriptedPartner();
  readonly #brokers = new Map<string, Fields>();
  #control: Fields = {};
  #pollEvery = "60s";
  #from = "00:00";
  #random: () => number = () => 0.5;
  #silentChargers = false;
  #equip: (charger: Charger) => Charger = (charger) => charger;
  #publishesStates = false;
  #report: Fields | null = null;
  #retention: Fields | null = null;
  #departs = false;
  #guard: Fields = {};

  withCharger(id: string, fields: Fields = {}): this {
    this.#chargers.set(id, { id, current: { max: 32 }, ...fields });
    return this;
  }

  /** A further broker, for chargers that name it. */
  withBroker(name: string): this {
    this.#brokers.set(name, { url: `mqtt://${name}` });
    return this;
  }

  /** `charger` is the fixed binding, made if it is not there; null: only telemetry tells where it is. */
  withVehicle(id: string, charger: string | null, fields: Fields = {}): this {
    if (charger !== null && !this.#chargers.has(charger)) this.withCharger(charger);
    this.#vehicles.push({ id, ...(charger === null ? {} : { charger }), ...fields });
    return this;
  }

  /** v1 to vN on bay-01 to bay-0N. */
  withVehicles(count: number): this {
    for (let n = 1; n <= count; n += 1) this.withVehicle(`v${n}`, `bay-${String(n).padStart(2, "0")}`);
    return this;
  }

  /** Delivered by webhook once the depot runs, and in the partner's list from then on. */
  withEvent(wish: Wish): this {
    this.#events.push(wish);
    return this;
  }

  /** The section `control` of the configuration. */
  withControl(control: Fields): this {
    this.#control = { ...this.#control, ...control };
    return this;
  }

  pollingEvery(duration: string): this {
    this.#pollEvery = duration;
    return this;
  }

  startingAt(time: string): this {
    this.#from = time;
    return this;
  }

  withChance(random: () => number): this {
    this.#random = random;
    return this;
  }

  /** What their make brings along. */
  equippedWith(fields: Partial<Charger>): this {
    this.#equip = (charger) => ({ ...charger, ...fields });
    return this;
  }

  /** They do what they are told but never say so. */
  withSilentChargers(): this {
    this.#silentChargers = true;
    return this;
  }

  /** The section `retention` of the configuration; without this nothing is pruned. */
  withRetention(section: Fields): this {
    this.#retention = section;
    return this;
  }

  /** With the departures of its vehicles. */
  withDepartures(guard: Fields = {}): this {
    this.#departs = true;
    this.#guard = guard;
    return this;
  }

  publishingStates(): this {
    this.#publishesStates = true;
    return this;
  }

  /** With the section `report` of the configuration. */
  reporting(report: Fields = {}): this {
    this.#report = report;
    return this;
  }

  whosePartnerAnswers(manner: Manner): this {
    this.#partner.answers = manner;
    return this;
  }

  /** Up for a second, so that the partner was asked once, and with its events taken in. */
  async running(): Promise<TestDepot> {
    startVirtualTime(`${DAY_ONE}T${this.#from}Z`);
    const { chargers, vehicles, control, report, retention, vtn, departures, departureGuard } = configured({
      departureGuard: this.#guard,
      control: this.#control,
      brokers: Object.fromEntries(this.#brokers),
      chargers: [...this.#chargers.values()],
      vehicles: this.#vehicles,
      vtn: { pollEvery: this.#pollEvery },
      report: this.#report ?? {},
      retention: this.#retention ?? {},
    });
    const directory = mkdtempSync(join(tmpdir(), "depot-"));
    const disk = { full: false, doubtful: false };
    diskThatFillsUp(
      () => disk.full,
      () => disk.doubtful,
    );
    const depot = new TestDepot({
      directory,
      chargers: chargers.map(this.#equip),
      vehicles,
      control,
      pollEvery: vtn.pollEvery,
      random: this.#random,
      partner: this.#partner,
      publishesStates: this.#publishesStates,
      ...(this.#departs ? { departures: { departures, departureGuard } } : {}),
      ...(this.#report === null ? {} : { report }),
      ...(this.#retention === null ? {} : { retention }),
      disk,
    });
    onTestFinished(async () => {
      await depot.stop();
      vi.restoreAllMocks();
      vi.useRealTimers();
      rmSync(directory, { recursive: true, force: true });
      if (depot.floor.breaches.length > 0) throw new Error(depot.floor.breaches.join("\n"));
    });
    if (this.#silentChargers) depot.floor.answers = "silent";
    depot.start();
    await settled();
    await depot.passes(999);
    for (const event of this.#events) await depot.deliver(event);
    return depot;
  }

  /** As `running`, then stopped and started again. */
  async restarted(): Promise<TestDepot> {
    const depot = await this.running();
    await depot.restart();
    return depot;
  }
}
