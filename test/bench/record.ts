import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { connectAsync } from "mqtt";

import { DATABASE } from "../../src/store/files.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";
import { Daemon } from "./daemon.ts";
import { type BenchDepot, benchDepot, vehicles } from "./depot.ts";
import { NOTHING_DROPPED } from "./fanout.ts";
import type { Measurement } from "./figure.ts";
import { eventFor, Sender } from "./partner.ts";
import { quiet } from "./process.ts";

const CHARGERS = 2_000;
const EVENTS = 5;

/**
 * Bytes that the state directory grows by per decision, with its acknowledgement and its verdict. Readings are
 * left out: their number depends on the chargers. The first fan-out is left out: it fills the table of commands.
 */
export const record: Measurement = async ({ figure, progress }) => {
  await using broker = await Mosquitto.start({ extra: NOTHING_DROPPED });
  using depot = await benchDepot({
    chargers: CHARGERS,
    broker: broker.url,
    control: "verdict: { ramp: 1s }",
  });
  await using chargers = await followingChargers(broker.url);
  await fanOuts(depot, 1);
  const before = sizesIn(depot);
  await fanOuts(depot, EVENTS);
  const after = sizesIn(depot);
  const decisions = after.decisions - before.decisions;
  progress(`record: ${decisions} decisions, ${chargers.answered} answers`);
  for (const [table, bytes] of after.tables) {
    const grown = bytes - (before.tables.get(table) ?? 0);
    progress(`record: ${table} ${Math.round(grown / decisions)} bytes`);
  }
  figure("record.decision", "bytes", (after.bytes - before.bytes) / decisions);
};

/** Posts events for all chargers one after another, each with its end, and waits for every verdict. */
async function fanOuts(depot: BenchDepot, count: number): Promise<void> {
  await using daemon = await Daemon.start(depot);
  await using sender = new Sender(depot.webhook, 1);
  await daemon.hasBroker();
  const judged = () => daemon.metric('setpointd_audit_rows_total{kind="outcome"');
  const settled = async (): Promise<void> => {
    await quiet(daemon.pid);
    // Verdicts come with the telemetry after the ramp, a second after the command.
    let rows = -1;
    await waitFor(
      async () => {
        const before = rows;
        rows = await judged();
        await quiet(daemon.pid);
        return rows === before;
      },
      { timeoutMs: 60_000, everyMs: 2_000 },
    );
  };
  for (let round = 0; round < count; round += 1) {
    const event = eventFor(vehicles(CHARGERS));
    await sender.post(JSON.stringify(event));
    await settled();
    await sender.withdraw(event);
    await settled();
  }
}

interface Sizes {
  readonly bytes: number;
  readonly decisions: number;
  readonly tables: ReadonlyMap<string, number>;
}

/** Sizes of a stopped state. A stop leaves no write-ahead log. */
function sizesIn({ state }: BenchDepot): Sizes {
  using database = new DatabaseSync(join(state, DATABASE), { readOnly: true });
  const tables = new Map(
    database
      .prepare("SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name ORDER BY name")
      .all()
      .map(({ name, bytes }) => [String(name), Number(bytes)]),
  );
  const readings = ["reading", "seat"].reduce((sum, table) => sum + (tables.get(table) ?? 0), 0);
  const files = readdirSync(state).reduce((sum, name) => sum + statSync(join(state, name)).size, 0);
  const row = database.prepare("SELECT count(*) AS n FROM audit WHERE kind = 'decision'").get();
  return { bytes: files - readings, decisions: Number(row?.["n"]), tables };
}

interface Chargers extends AsyncDisposable {
  answered: number;
}

/** Chargers that draw what their last command allows, and report it at once and after the ramp. */
async function followingChargers(broker: string): Promise<Chargers> {
  const client = await connectAsync(broker, { protocolVersion: 5, reconnectPeriod: 0 });
  const chargers: Chargers = { answered: 0, [Symbol.asyncDispose]: () => client.endAsync(true) };
  client.on("message", (topic, payload) => {
    const { kind, value } = JSON.parse(payload.toString());
    const amperes = kind === "current" ? value : 32;
    setTimeout(() => {
      chargers.answered += 1;
      const reading = { state: "charging", currentsA: [amperes, amperes, amperes] };
      client.publish(topic.replace(/set$/, "telemetry"), JSON.stringify(reading), { qos: 0 });
    }, 1_500);
  });
  await client.subscribeAsync("setpointd/+/chargers/+/set", { qos: 0 });
  return chargers;
}
