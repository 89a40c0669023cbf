import { createHmac } from "node:crypto";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { stringify } from "yaml";

import { instant } from "../../src/domain/units.ts";
import { type EventPlan, type WireEvent, wireEvent } from "../../src/sim/events.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { Daemon } from "./aDaemon.ts";
import { Floor } from "./aFloor.ts";
import { Mosquitto } from "./mosquitto.ts";
import { waitFor } from "./waitFor.ts";

/** Sections of the configuration file, laid over those of the site; null leaves one out. */
export type Sections = Readonly<Record<string, unknown>>;

export interface SiteOptions {
  /** Instead of the site's own. */
  readonly over?: Sections;
  /** Of `vtn`; an hour unless told, so that only the first look and the webhook bring events. */
  readonly pollEvery?: string;
}

const CLIENT_SECRET = "client-secret-of-the-tests";
export const WEBHOOK_SECRET = "webhook-secret-of-the-tests";
/** Four chargers, each with one vehicle fixed to it: veh-1 at bay-01 and so on. */
const NUMBERS = [1, 2, 3, 4];

const now = () => instant(Date.now());

/** A partner, a broker, someone who hears everything at it, and a configuration for a daemon between them; all real. */
export class Site implements AsyncDisposable {
  readonly partner: SimulatedPartner;
  readonly broker: Mosquitto;
  readonly floor: Floor;
  readonly directory: string;
  readonly #stack: AsyncDisposableStack;
  readonly #options: SiteOptions;

  private constructor(
    parts: Pick<Site, "partner" | "broker" | "floor" | "directory">,
    stack: AsyncDisposableStack,
    options: SiteOptions,
  ) {
    this.partner = parts.partner;
    this.broker = parts.broker;
    this.floor = parts.floor;
    this.directory = parts.directory;
    this.#stack = stack;
    this.#options = options;
  }

  static async open(options: SiteOptions = {}): Promise<Site> {
    await using stack = new AsyncDisposableStack();
    const directory = mkdtempSync(join(tmpdir(), "setpointd-e2e-"));
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    const partner = stack.use(await aPartner());
    const broker = stack.use(await Mosquitto.start());
    const floor = stack.use(await Floor.at(broker.url));
    writeFileSync(join(directory, "client-secret"), `${CLIENT_SECRET}\n`, { mode: 0o600 });
    writeFileSync(join(directory, "webhook-secret"), `${WEBHOOK_SECRET}\n`, { mode: 0o600 });
    const site = new Site({ partner, broker, floor, directory }, stack.move(), options);
    site.configure();
    return site;
  }

  get config(): string {
    return join(this.directory, "site.yaml");
  }

  get state(): string {
    return join(this.directory, "state");
  }

  /** Writes the configuration anew, with further sections laid over it. */
  configure(over: Sections = {}): void {
    const sections = {
      site: { id: "depot", timezone: "UTC" },
      state: "./state",
      vtn: {
        baseUrl: this.partner.baseUrl,
        tokenUrl: this.partner.tokenUrl,
        clientId: "depot",
        clientSecret: { file: "client-secret" },
        pollEvery: this.#options.pollEvery ?? "1h",
      },
      webhook: { listen: "127.0.0.1:0", auth: { hmac: { secret: { file: "webhook-secret" } } } },
      operator: { listen: "127.0.0.1:0" },
      mqtt: { url: this.broker.url },
      chargers: NUMBERS.map((number) => ({ id: `bay-0${number}`, current: { min: 6, max: 32 } })),
      vehicles: NUMBERS.map((number) => ({ id: `veh-${number}`, charger: `bay-0${number}` })),
      ...this.#options.over,
      ...over,
    };
    const kept = Object.fromEntries(Object.entries(sections).filter(([, section]) => section !== null));
    writeFileSync(this.config, stringify(kept));
  }

  /** A daemon that is up, whatever its broker does. */
  async start(
    env: Readonly<Record<string, string>> = {},
    within: readonly string[] = [],
    timeoutMs?: number,
  ): Promise<Daemon> {
    return Daemon.start(this.config, WEBHOOK_SECRET, env, within, timeoutMs);
  }

  /** A second process on the database of the site, with keys in a folder of its own. */
  async standIn(name: string): Promise<Daemon> {
    const path = join(this.directory, `${name}.yaml`);
    const folder = join(this.directory, name);
    mkdirSync(folder, { mode: 0o700 });
    for (const key of ["site.key", "proof.key"]) copyFileSync(join(this.state, key), join(folder, key));
    writeFileSync(path, readFileSync(this.config, "utf8").replace("./state", `./${name}`));
    return Daemon.start(path, WEBHOOK_SECRET, {}, [], undefined, "standing by");
  }

  /** A daemon that is up and has its broker. */
  async run(env: Readonly<Record<string, string>> = {}, within: readonly string[] = []): Promise<Daemon> {
    const daemon = await this.start(env, within);
    await waitFor(() => daemon.hasBroker());
    return daemon;
  }

  /** The start offset of DESIGN 5.3, worked out here from the key that the program left. */
  offset(event: WireEvent, vehicle: string, randomizeStartMs: number): number {
    const message = JSON.stringify([event.ID, vehicle, event.intervalPeriod.start, randomizeStartMs]);
    const digest = createHmac("sha256", readFileSync(join(this.state, "site.key")))
      .update(message)
      .digest();
    return Math.floor((digest.readUIntBE(0, 6) / 2 ** 48) * (randomizeStartMs + 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

export const aSite = Site.open;

const aPartner = (): Promise<SimulatedPartner> =>
  SimulatedPartner.start({
    host: "127.0.0.1",
    port: 0,
    clientId: "depot",
    clientSecret: CLIENT_SECRET,
    webhook: null,
    now,
    log: pino({ level: "silent" }),
  });

type Wish = Omit<EventPlan, "start" | "durationMs" | "ask" | "id"> & {
  /** Milliseconds from now; at once unless told. */
  readonly startIn?: number;
  readonly lastsMs: number;
  readonly amperes?: number;
  readonly kilowatts?: number;
};

/** An event as the partner spells it, for veh-1 and 16 A unless told otherwise. */
export function anEvent(id: string, { startIn = 0, lastsMs, amperes, kilowatts, ...wish }: Wish): WireEvent {
  const ask = kilowatts === undefined ? { amperes: amperes ?? 16 } : { kilowatts };
  const start = instant(Date.now() + startIn);
  return wireEvent({ vehicles: ["veh-1"], ...wish, id, start, durationMs: lastsMs, ask }, now());
}

/** Milliseconds since the epoch. */
export const startOf = (event: WireEvent): number => Date.parse(event.intervalPeriod.start);
