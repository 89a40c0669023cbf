import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import pino from "pino";
import { stringify } from "yaml";

import { instant } from "../../src/domain/units.ts";
import type { WireEvent } from "../../src/sim/events.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { Gate } from "../support/aGate.ts";
import { anEvent, WEBHOOK_SECRET } from "../support/aSite.ts";
import { freePort } from "../support/freePort.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { Postgres } from "../support/postgres.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";
import { Chargers, type Decided, type Led, staleIn, tooLateIn } from "./oracle.ts";
import { lateIn, Stalls } from "./stalls.ts";
import { Twin } from "./twin.ts";

export const FAULTS = ["kill", "freeze", "cut", "cut one way", "restart", "mixed"] as const;
export type FaultKind = (typeof FAULTS)[number];

const LEASE_MS = 3_000;
/** Longest time without a leader (DESIGN 5.10 and the issue). */
const LED_WITHIN_MS = 15_000;
/** A busy machine takes longer to start a process, and to load a site, than the program needs. The figures show it. */
const PATIENCE_MS = 90_000;
const EVENT_MS = 300_000;
/** Pause between two deliveries, ms. */
const BETWEEN_MS = 1_200;
const NUMBERS = [1, 2, 3, 4];
/** Result of one failover. */
export interface Round {
  readonly kind: FaultKind;
  /** From the fault to the next leader by the database, ms. Null: the same process led on. */
  readonly ledAfterMs: number | null;
  /** From the fault to the first command of the next leader, ms. Null: none was due. */
  readonly commandAfterMs: number | null;
  /** The part of it after the lease was taken, ms. */
  readonly loadMs: number | null;
}

/** Figures of a depot at its end. */
export interface Outcome {
  readonly rounds: readonly Round[];
  readonly violations: readonly string[];
  /** Violations that are no longer than this process itself did not run meanwhile. */
  readonly explained: readonly string[];
  /** How late the timers of this process were, ms. */
  readonly stalls: readonly number[];
  readonly deliveries: number;
  readonly commands: number;
  readonly refused: number;
  /** Longest pause between commands, in parts of the lease of the chargers. */
  readonly longestGap: number;
}

/** A depot with two gateways on one database, a broker, four chargers, and a partner that never stops. */
export class FailoverDepot implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #cluster: Postgres;
  readonly #chargers: Chargers;
  readonly #partner: SimulatedPartner;
  readonly #twins: readonly [Twin, Twin];
  readonly #random: () => number;
  readonly #violations: string[] = [];
  readonly #explained: string[] = [];
  readonly #stalls: Stalls;
  readonly #rounds: Round[] = [];
  readonly #leaders: Led[] = [];
  /** Newest delivered event of each charger. */
  readonly #newest = new Map<string, WireEvent>();
  readonly #delivered: string[] = [];
  #isOver = false;
  #delivering: Promise<void> = Promise.resolve();
  #sql: Client | null = null;

  private constructor(
    parts: { cluster: Postgres; chargers: Chargers; partner: SimulatedPartner; twins: readonly [Twin, Twin] },
    stack: AsyncDisposableStack,
    random: () => number,
  ) {
    this.#cluster = parts.cluster;
    this.#chargers = parts.chargers;
    this.#partner = parts.partner;
    this.#twins = parts.twins;
    this.#stack = stack;
    this.#random = random;
    this.#stalls = stack.use(new Stalls());
  }

  static async open(random: () => number): Promise<FailoverDepot> {
    await using stack = new AsyncDisposableStack();
    const directory = mkdtempSync(join(tmpdir(), "setpointd-failover-"));
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    const cluster = stack.use(await Postgres.start());
    const broker = stack.use(await Mosquitto.start());
    const chargers = stack.use(new Chargers(broker.url));
    const partner = stack.use(
      await SimulatedPartner.start({
        host: "127.0.0.1",
        port: 0,
        clientId: "depot",
        clientSecret: "client-secret-of-the-tests",
        webhook: null,
        now: () => instant(Date.now()),
        log: pino({ level: "silent" }),
      }),
    );
    const write = (name: string, text: string) =>
      writeFileSync(join(directory, name), `${text}\n`, { mode: 0o600 });
    write("client-secret", "client-secret-of-the-tests");
    write("webhook-secret", WEBHOOK_SECRET);
    write("operator-key", randomBytes(32).toString("base64"));
    const twin = async (name: string): Promise<Twin> => {
      const gate = stack.use(await Gate.before(cluster.port));
      await gate.open();
      mkdirSync(join(directory, name), { mode: 0o700 });
      write(`${name}-url`, cluster.url.replace(/:\d+\//, `:${gate.port}/`));
      const listen = `127.0.0.1:${await freePort()}`;
      const config = {
        site: { id: "depot", timezone: "UTC" },
        state: {
          folder: `./${name}`,
          postgres: {
            url: { file: `${name}-url` },
            siteKeys: { file: "operator-key" },
            lease: `${LEASE_MS / 1_000}s`,
          },
        },
        vtn: {
          baseUrl: partner.baseUrl,
          tokenUrl: partner.tokenUrl,
          clientId: "depot",
          clientSecret: { file: "client-secret" },
          pollEvery: "1h",
        },
        webhook: { listen, auth: { hmac: { secret: { file: "webhook-secret" } } } },
        operator: { listen: "127.0.0.1:0" },
        mqtt: { url: broker.url },
        control: { refresh: "5s" },
        chargers: NUMBERS.map((number) => ({ id: `bay-0${number}`, current: { min: 6, max: 32 } })),
        vehicles: NUMBERS.map((number) => ({ id: `veh-${number}`, charger: `bay-0${number}` })),
      };
      write(`${name}.yaml`, stringify(config));
      const made = new Twin(name, {
        gate,
        config: join(directory, `${name}.yaml`),
        webhook: `http://${listen}/webhooks/events`,
        secret: WEBHOOK_SECRET,
      });
      stack.defer(() => made.kill());
      return made;
    };
    const twins = [await twin("first"), await twin("second")] as const;
    const depot = new FailoverDepot({ cluster, chargers, partner, twins }, stack.move(), random);
    await depot.#begin();
    return depot;
  }

  async #begin(): Promise<void> {
    for (const twin of this.#twins) {
      twin.start();
      await waitFor(() => twin.count > 0, { timeoutMs: PATIENCE_MS, everyMs: 50 });
    }
    this.#delivering = this.#deliverAll();
    await waitFor(() => this.#newest.size === NUMBERS.length, { timeoutMs: PATIENCE_MS, everyMs: 50 });
    await this.#settled();
  }

  /** Delivers one event after another, each until a gateway has answered 202. */
  async #deliverAll(): Promise<void> {
    for (let number = 1; !this.#isOver; number += 1) {
      const place = ((number - 1) % NUMBERS.length) + 1;
      const event = this.#partner.put(
        anEvent(`EV-${number}`, {
          lastsMs: EVENT_MS,
          vehicles: [`veh-${place}`],
          amperes: 6 + (number % 26),
        }),
      );
      const body = JSON.stringify(event);
      for (let side = Math.floor(this.#random() * 2); ; side = 1 - side) {
        if (await this.#twins[side === 0 ? 0 : 1].deliver(body)) break;
        if (this.#isOver) return;
        await sleep(100);
      }
      this.#delivered.push(event.ID);
      this.#newest.set(`bay-0${place}`, event);
      await sleep(BETWEEN_MS * (0.5 + this.#random()));
    }
  }

  /**
   * Shown at once as well: a campaign takes half an hour. `span`: when it happened, and how long it was beyond what is
   * allowed. If this process did not run for as long meanwhile, the machine explains it.
   */
  #violate(
    words: string,
    span: { readonly from: number; readonly until: number; readonly overBy: number } | null = null,
  ): void {
    const late = span === null ? 0 : lateIn(this.#stalls.all, span.from, span.until);
    const shown = `${words} (timers of the campaign were ${Math.round(late)} ms late meanwhile)`;
    process.stderr.write(`${new Date().toISOString()} ${shown}\n`);
    (span !== null && late >= span.overBy ? this.#explained : this.#violations).push(shown);
  }

  async #query(sql: string): Promise<readonly Record<string, unknown>[]> {
    try {
      if (this.#sql === null) {
        const client = new Client({ connectionString: this.#cluster.url, query_timeout: 3_000 });
        client.on("error", () => undefined);
        await client.connect();
        this.#sql = client;
      }
      return (await this.#sql.query(sql)).rows;
    } catch {
      await this.#sql?.end().catch(() => undefined);
      this.#sql = null;
      return [];
    }
  }

  /** The leader by the database. Null: none now, or the database is away. */
  async #leader(): Promise<(Led & { readonly twin: Twin | null }) | null> {
    const [row] = await this.#query(
      `SELECT leader, epoch, extract(epoch FROM led_since) * 1000 AS since FROM setpointd.site
       WHERE lease_until > clock_timestamp() AND leader IS NOT NULL`,
    );
    if (row === undefined) return null;
    const led = { epoch: Number(row["epoch"]), since: Number(row["since"]) };
    if (this.#leaders.at(-1)?.epoch !== led.epoch) this.#leaders.push(led);
    const pid = Number(String(row["leader"]).split(" ").at(-1));
    return { ...led, twin: this.#twins.find((twin) => twin.pid === pid) ?? null };
  }

  /** Every charger has the newest delivered level. */
  async #settled(): Promise<void> {
    const isRight = (charger: string): boolean => {
      const event = this.#newest.get(charger);
      const last = this.#chargers.last(charger)?.set;
      return event !== undefined && last?.event === event.ID;
    };
    const chargers = NUMBERS.map((number) => `bay-0${number}`);
    try {
      await waitFor(() => chargers.every(isRight), { timeoutMs: PATIENCE_MS, everyMs: 20 });
    } catch {
      const wrong = chargers.filter((charger) => !isRight(charger));
      this.#violate(
        `${wrong.join(", ")}: not the newest event within ${PATIENCE_MS} ms: ${wrong
          .map(
            (charger) => `${this.#newest.get(charger)?.ID} after ${this.#chargers.last(charger)?.set.event}`,
          )
          .join(", ")}`,
      );
    }
  }

  /** One failover with this fault. */
  async fail(kind: FaultKind): Promise<void> {
    await this.#revive();
    const before = await waitFor(async () => (await this.#leader()) ?? undefined, { timeoutMs: PATIENCE_MS });
    const leader = before.twin;
    if (leader === null) throw new Error("the leader is no process of this depot");
    const [first, second] = this.#twins;
    const other = leader === first ? second : first;
    await waitFor(() => other.count > 0 && other.exit === null, { timeoutMs: PATIENCE_MS });
    const began = Date.now();
    const last = this.#chargers.received.length;
    await this.#strike(kind, leader);
    // A restart of the database need not change the leader.
    const isLed = async (): Promise<boolean> => {
      const led = await this.#leader();
      return led !== null && (led.epoch > before.epoch || (kind === "restart" && Date.now() > began));
    };
    await waitFor(isLed, { timeoutMs: PATIENCE_MS, everyMs: 50 }).catch(() => undefined);
    const overBy = Date.now() - began - LED_WITHIN_MS;
    if (overBy > 0)
      this.#violate(`${kind}: not led within ${LED_WITHIN_MS} ms`, {
        from: began,
        until: Date.now(),
        overBy,
      });
    const led = this.#leaders.at(-1);
    const isNew = led !== undefined && led.epoch > before.epoch;
    const find = () => this.#chargers.received.slice(last).find(({ set }) => set.epoch > before.epoch);
    if (isNew)
      await waitFor(find, { timeoutMs: PATIENCE_MS }).catch(() =>
        this.#violate(
          `${kind}: no command of the next leader within ${PATIENCE_MS} ms: ${other.log.slice(-6).join(" | ")}`,
        ),
      );
    await sleep(this.#random() * 500);
    await this.#mend(leader);
    await this.#settled();
    const command = find();
    this.#rounds.push({
      kind,
      ledAfterMs: isNew ? Math.round(led.since - began) : null,
      commandAfterMs: command === undefined ? null : command.at - began,
      loadMs: command === undefined || !isNew ? null : Math.round(command.at - led.since),
    });
  }

  /** A gateway that ended by itself is a violation, and is started again. */
  async #revive(): Promise<void> {
    for (const twin of this.#twins) {
      if (twin.exit === null) continue;
      this.#violate(`a gateway ended by itself (${twin.exit}): ${twin.log.slice(-3).join(" | ")}`);
      twin.start();
      await waitFor(() => twin.count > 0, { timeoutMs: PATIENCE_MS, everyMs: 50 });
    }
  }

  async #strike(kind: FaultKind, leader: Twin): Promise<void> {
    switch (kind) {
      case "kill":
        return leader.kill();
      case "freeze":
        return leader.freeze();
      case "cut":
        return leader.gate.shut();
      case "cut one way":
        return leader.gate.hold(this.#random() < 0.5 ? "in" : "out");
      case "restart":
        await this.#cluster.stop(this.#random() < 0.5 ? "immediate" : "fast");
        return this.#cluster.start();
      case "mixed": {
        const strikes = [
          () => leader.freeze(),
          () => leader.gate.hold("out"),
          () => leader.gate.hold("in"),
          () => void (this.#random() < 0.5 && leader.kill()),
        ].toSorted(() => this.#random() - 0.5);
        for (const strike of strikes.slice(0, 2)) {
          strike();
          await sleep(this.#random() * 300);
        }
        // One of the two always ends the lead.
        if (leader.exit === null && !leader.isFrozen) leader.freeze();
      }
    }
  }

  async #mend(twin: Twin): Promise<void> {
    if (twin.exit !== null && twin.exit !== "SIGKILL")
      this.#violate(`a gateway ended by itself (${twin.exit}): ${twin.log.slice(-3).join(" | ")}`);
    const { count } = twin;
    const wasGone = twin.exit !== null;
    twin.gate.free();
    await twin.gate.shut();
    await twin.gate.open();
    if (wasGone) twin.start();
    else if (twin.isFrozen) twin.thaw();
    else return;
    await waitFor(() => twin.exit !== null || twin.count > (wasGone ? 0 : count), {
      timeoutMs: PATIENCE_MS,
      everyMs: 50,
    }).catch(() => this.#violate(`a gateway did not stand by again: ${twin.log.slice(-3).join(" | ")}`));
  }

  /** Ends the deliveries and checks what is stored. */
  async end(): Promise<Outcome> {
    this.#isOver = true;
    await this.#delivering;
    await this.#settled();
    await waitFor(
      async () =>
        (await this.#query("SELECT count(*) AS count FROM setpointd.delivery"))[0]?.["count"] === "0",
      {
        timeoutMs: LED_WITHIN_MS,
        everyMs: 100,
      },
    ).catch(() => this.#violate("deliveries of the stand-in wait for ever"));
    const stored = new Map(
      (
        await this.#query(
          "SELECT event, count(*) AS count FROM setpointd.audit WHERE kind = 'event' GROUP BY event",
        )
      ).map(({ event, count }) => [String(event), Number(count)]),
    );
    for (const id of this.#delivered)
      if (stored.get(id) !== 1) this.#violate(`${id} is in the record ${stored.get(id) ?? 0} times`);
    const decided = (
      await this.#query(
        "SELECT charger, command, at FROM setpointd.audit WHERE kind = 'decision' AND command IS NOT NULL",
      )
    ).map(({ charger, command, at }): Decided => {
      const [epoch = 0, seq = 0] = String(command).split("-").map(Number);
      return { charger: String(charger), epoch, seq, at: Number(at) };
    });
    if (decided.length === 0) this.#violate("no decision is in the record");
    for (const stale of staleIn(this.#chargers.received, decided)) {
      const { charger, at, set } = stale.received;
      const { epoch, seq, at: decidedAt } = stale.newer;
      this.#violate(
        `${charger} accepted ${set.id} at ${at}, ${at - decidedAt} ms after ${epoch}-${seq} was decided`,
        stale,
      );
    }
    for (const { charger, epoch, seq, at } of tooLateIn(decided, this.#leaders))
      this.#violate(`${epoch}-${seq} for ${charger} was decided at ${at}, after the next leader began`);
    await this.#verify();
    const { gaps, longestGap, refused, received } = this.#chargers;
    for (const gap of gaps)
      this.#violate(`${gap.charger} was left for ${gap.overBy} ms more than its lease`, gap);
    return {
      rounds: this.#rounds,
      violations: this.#violations,
      explained: this.#explained,
      stalls: this.#stalls.all.map(({ from, until }) => until - from),
      deliveries: this.#delivered.length,
      commands: received.length,
      refused,
      longestGap,
    };
  }

  /** Verifies the record. Until what the last fault broke is mended, the verb says that, and is repeated. */
  async #verify(): Promise<void> {
    let fault = "no leader";
    const isDone = async (): Promise<boolean> => {
      const { twin } = (await this.#leader()) ?? { twin: null };
      if (twin === null) return false;
      const { code, stderr } = await setpointd(["audit", "verify", "-c", twin.config]);
      fault = `${stderr} (${twin.log.slice(-4).join(" | ")})`;
      return code === 0;
    };
    await waitFor(isDone, { timeoutMs: PATIENCE_MS, everyMs: 500 }).catch(() =>
      this.#violate(`the record: ${fault}`),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#delivering.catch(() => undefined);
    await this.#sql?.end().catch(() => undefined);
    await this.#stack.disposeAsync();
  }
}
