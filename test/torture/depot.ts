import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { stringify } from "yaml";

import { amperes, chargerId, instant } from "../../src/domain/units.ts";
import { SimulatedChargers } from "../../src/sim/chargers.ts";
import type { SimulatedPartner } from "../../src/sim/partner.ts";
import { openState } from "../../src/store/sqlite/open.ts";
import { ask, signature } from "../support/aDaemon.ts";
import type { Floor } from "../support/aFloor.ts";
import type { Site } from "../simulate/oracle.ts";
import type { Delay } from "./delays.ts";
import { connectionsOf } from "./connections.ts";
import type { Kill } from "./kills.ts";
import { Life } from "./life.ts";
import type { Promised, Story, Told } from "./story.ts";

const CLIENT_SECRET = "client-secret-of-the-tests";
const log = pino({ level: "silent" });

export interface DepotSetup {
  /** Of its own: everything at the broker begins with it. */
  readonly id: string;
  readonly partner: SimulatedPartner;
  readonly floor: Floor;
  readonly brokerUrl: string;
  /** A folder with compiled code. */
  readonly codeCache: string;
  readonly site: Site;
}

/** The daemon with its state and its chargers, killed and started again as planned. */
export class TorturedDepot implements AsyncDisposable {
  readonly lives: Life[] = [];
  readonly promised: Promised[] = [];
  readonly #oddAnswers: string[] = [];
  readonly setup: DepotSetup;
  readonly #directory: string;
  readonly #chargers: SimulatedChargers;
  readonly #webhookSecret = randomBytes(16).toString("hex");

  private constructor(setup: DepotSetup) {
    this.setup = setup;
    this.#directory = mkdtempSync(join(tmpdir(), "torture-"));
    this.#configure();
    this.#chargers = SimulatedChargers.start({
      url: setup.brokerUrl,
      prefix: "setpointd",
      site: setup.id,
      chargers: setup.site.chargers.map(({ id, maxCurrent, phases }) => ({
        traits: {
          id: chargerId(id),
          phases,
          voltage: 230,
          minCurrent: amperes(6),
          maxCurrent: amperes(maxCurrent),
          ownDefault: amperes(maxCurrent),
          ramp: 8,
        },
        vehicle: null,
      })),
      now: () => instant(Date.now()),
      log,
    });
  }

  static async open(setup: DepotSetup): Promise<TorturedDepot> {
    const depot = new TorturedDepot(setup);
    await depot.#chargers.whenOnline();
    return depot;
  }

  /** One process after the other; the last one stays. */
  async suffer(kills: readonly Kill[]): Promise<void> {
    for (const kill of kills) {
      await this.#start(kill).die(kill);
      await sleep(kill.downFor);
    }
    this.#start(null);
  }

  /** The present process, once it has all that it needs. */
  get isReady(): boolean {
    return Number.isFinite(this.lives.at(-1)?.readyAt);
  }

  /** A webhook with the retries of openadr3.md 0, to whichever process is there. */
  async deliver(content: object, promise: Omit<Promised, "at">): Promise<void> {
    const body = JSON.stringify(content);
    const proof = { "x-payload-signature": signature(body, this.#webhookSecret) };
    const headers = { "content-type": "application/json", ...proof };
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const url = this.lives.at(-1)?.webhookUrl ?? null;
      const answer =
        url === null ? null : await ask(url, { method: "POST", headers, body }).catch(() => null);
      if (answer?.status === 202) {
        this.promised.push({ ...promise, at: Date.now() });
        return;
      }
      if (answer !== null && answer.status !== 503)
        this.#oddAnswers.push(`${promise.event}: ${answer.status} ${answer.text}`);
      await sleep(150 * 2 ** attempt);
    }
  }

  /** Plugs a vehicle in, which the charger does not know; null unplugs it. */
  plug(charger: string, isPlugged: boolean): void {
    const vehicle = { id: null, identity: null, maxCurrent: amperes(32), capacityWh: 500_000, soc: 10 };
    this.#chargers.at(chargerId(charger)).plug(isPlugged ? vehicle : null);
  }

  told(charger: string): readonly Told[] {
    const { floor, id } = this.setup;
    return floor.on(`/${id}/chargers/${charger}/set`).map(({ at, text }) => ({ at, set: JSON.parse(text) }));
  }

  /** Kills the last process, and reads what it left behind. `delays` are the judge's own. */
  async story(history: Story["history"], delays: readonly Delay[]): Promise<Story> {
    const { site, floor, id } = this.setup;
    await this.lives.at(-1)?.kill();
    const opened = openState(join(this.#directory, "state"), {
      now: () => instant(Date.now()),
      random: randomBytes,
      keys: { site: null, proof: null },
      log,
    });
    if (!opened.ok) throw new Error(opened.reason);
    using store = opened.store;
    const verified = store.reads.verify();
    const broken = verified.ok ? null : `row ${verified.seq}: ${verified.reason}`;
    const refusals = site.chargers
      .flatMap((charger) => floor.on(`/${id}/chargers/${charger.id}/ack`))
      .filter(({ text }) => JSON.parse(text).accepted !== true);
    const connections = connectionsOf(
      this.lives.map(({ startedAt }) => startedAt),
      floor.on(`/${id}/gateway/online`),
    );
    return {
      site,
      history,
      lives: this.lives.map(({ startedAt, readyAt, endedAt, crashed }, run) => ({
        startedAt,
        connectedAt: connections[run]?.[0] ?? Number.POSITIVE_INFINITY,
        readyAt,
        endedAt,
        crashed,
        reconnects: Math.max(0, (connections[run]?.length ?? 0) - 1),
      })),
      told: new Map(site.chargers.map((charger) => [charger.id, this.told(charger.id)])),
      refusals,
      promised: this.promised,
      rows: store.reads.audit({ limit: 1_000_000 }),
      damage: opened.setAside ?? broken,
      oddAnswers: this.#oddAnswers,
      delays: [...delays, ...this.lives.flatMap((life) => life.delays)],
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lives.at(-1)?.kill();
    await this.#chargers[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #start(kill: Kill | null): Life {
    const life = new Life(join(this.#directory, "site.yaml"), this.setup.codeCache, kill);
    this.lives.push(life);
    return life;
  }

  #configure(): void {
    const { id, partner, brokerUrl, site } = this.setup;
    const place = (name: string): string => join(this.#directory, name);
    mkdirSync(place("state"), { mode: 0o700 });
    writeFileSync(place("state/site.key"), site.siteKey, { mode: 0o600 });
    writeFileSync(place("client-secret"), CLIENT_SECRET, { mode: 0o600 });
    writeFileSync(place("webhook-secret"), this.#webhookSecret, { mode: 0o600 });
    const sections = {
      site: { id, timezone: "UTC" },
      state: "./state",
      vtn: {
        baseUrl: partner.baseUrl,
        tokenUrl: partner.tokenUrl,
        clientId: "depot",
        clientSecret: { file: "client-secret" },
        pollEvery: `${site.knobs.pollEvery}ms`,
      },
      webhook: { listen: "127.0.0.1:0", auth: { hmac: { secret: { file: "webhook-secret" } } } },
      operator: { listen: "127.0.0.1:0" },
      mqtt: { url: brokerUrl },
      chargers: site.chargers.map(({ id: charger, maxCurrent }) => ({
        id: charger,
        current: { min: 6, max: maxCurrent },
      })),
      vehicles: site.vehicles.map(({ id: vehicle, charger }) => ({ id: vehicle, charger })),
    };
    writeFileSync(place("site.yaml"), stringify(sections));
  }
}
