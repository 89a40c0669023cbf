import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { stringify } from "yaml";

import { instant } from "../../src/domain/units.ts";
import { HOUR, MINUTE } from "../simulate/plan.ts";
import { folderInMemory, VirtualDepot } from "../soak/virtualDepot.ts";
import { freePort } from "../support/freePort.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { Postgres } from "../support/postgres.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";
import { Daemon } from "./daemon.ts";
import { SECRET, scratchDirectory } from "./depot.ts";
import type { Measurement, Report } from "./figure.ts";
import type { ListPartner } from "./listPartner.ts";
import { cpuOf } from "./process.ts";
import { Side } from "./side.ts";

const DAY = 24 * HOUR;
const DAYS = 365;
const VEHICLES = 10;
/** Age of what is kept once retention is shorter than the year. */
const KEPT_DAYS = 90;
const TABLES = ["audit", "body", "reading", "seat"];
const PATIENCE_MS = 1_800_000;

/**
 * A year of one event a day at a site of ten chargers, played in virtual time and moved to PostgreSQL: bytes of it, and what
 * the real daemon takes to prune all but 90 days.
 */
export const fleetYear: Measurement = async (report) => {
  using scratch = scratchDirectory();
  await using cluster = await Postgres.start({ fsync: "on", shared_buffers: "1GB", max_wal_size: "4GB" });
  await using broker = await Mosquitto.start();
  const list = join(scratch.path, "list.json");
  writeFileSync(list, "[]");
  await using partner = await Side.start<ListPartner>("listPartner", [list]);
  const write = (name: string, content: string): string => {
    writeFileSync(join(scratch.path, name), content, { mode: 0o600 });
    return join(scratch.path, name);
  };
  write("url", cluster.url);
  write("keys", randomBytes(32).toString("base64"));
  const postgres = { url: { file: "url" }, siteKeys: { file: "keys" } };
  const operator = `127.0.0.1:${await freePort()}`;
  const configure = (name: string, further: object): string =>
    write(
      name,
      stringify({ ...siteOf(broker.url, partner.ready.url), operator: { listen: operator }, ...further }),
    );
  using state = folderInMemory();
  const sqlite = configure("sqlite.yaml", { state: state.path });
  const moved = configure("moved.yaml", { state: { folder: "./led", postgres } });
  const pruning = configure("pruning.yaml", {
    state: { folder: "./led", postgres },
    retention: { audit: `${KEPT_DAYS}d`, events: `${KEPT_DAYS}d`, reports: `${KEPT_DAYS}d` },
  });

  const events = await aYear(state.path, report);
  const move = await setpointd(["state", "move", "--to", moved, "-c", sqlite], { env: { SECRET } });
  if (move.code !== 0) throw new Error(move.stderr);
  report.progress(move.stdout);

  const database = new Client(cluster.url);
  await database.connect();
  await using _connection = { [Symbol.asyncDispose]: () => database.end() };
  const one = async (sql: string): Promise<number> => Number((await database.query(sql)).rows[0]?.n);
  const rows = (): Promise<number> => one("SELECT count(*) AS n FROM setpointd.audit");
  const bytes = (table: string): Promise<number> =>
    one(`SELECT pg_total_relation_size('setpointd.${table}') AS n`);
  for (const table of TABLES) report.figure(`fleetYear.${table}`, "MB", (await bytes(table)) / 1e6);
  const recorded = await rows();
  report.figure("fleetYear.rows", "rows/event", recorded / events);
  report.figure("fleetYear.row", "bytes", (await bytes("audit")) / recorded);

  const old = `SELECT count(*) AS n FROM setpointd.audit WHERE at < ${Date.now() - (KEPT_DAYS + 1) * DAY}`;
  const began = performance.now();
  await using daemon = await Daemon.start({
    directory: scratch.path,
    config: pruning,
    state: join(scratch.path, "led"),
    site: "year",
    webhook: "",
    operator: `http://${operator}`,
  });
  const before = cpuOf(daemon.pid);
  await waitFor(async () => (await one(old)) === 0, { timeoutMs: PATIENCE_MS, everyMs: 1_000 });
  report.figure("fleetYear.pruned", "rows", recorded - (await rows()));
  report.figure("fleetYear.pruning", "s", (performance.now() - began) / 1_000);
  report.figure("fleetYear.pruning.cpu", "ms CPU", cpuOf(daemon.pid) - before);
  // Without FULL the file keeps its length, and the database uses the space again.
  await database.query("VACUUM FULL setpointd.audit");
  report.figure("fleetYear.audit.kept", "MB", (await bytes("audit")) / 1e6);
};

/** Plays the year that ends now. Resolves with the number of its events. */
async function aYear(folder: string, { progress }: Report): Promise<number> {
  using depot = new VirtualDepot({
    chargers: VEHICLES,
    telemetryEvery: 5 * MINUTE,
    eventEvery: DAY,
    keep: (DAYS + 30) * DAY,
    seed: 1,
    from: instant(Date.now() - DAYS * DAY),
    folder,
  });
  for (let day = 1; day <= DAYS; day += 1) {
    await depot.passes(DAY);
    if (day % 30 === 0) progress(`fleetYear: ${day} days, ${JSON.stringify(depot.rows)}`);
  }
  return depot.count.events;
}

const siteOf = (broker: string, partner: string): object => ({
  site: { id: "year", timezone: "UTC" },
  vtn: {
    baseUrl: partner,
    tokenUrl: `${partner}/connect/token`,
    clientId: "bench",
    clientSecret: { env: "SECRET" },
  },
  webhook: { listen: "127.0.0.1:0", auth: { hmac: { secret: { env: "SECRET" } } } },
  mqtt: { url: broker },
  chargers: Array.from({ length: VEHICLES }, (_, index) => ({
    id: `bay-${index + 1}`,
    current: { min: 6, max: 32 },
  })),
  vehicles: Array.from({ length: VEHICLES }, (_, index) => ({
    id: `veh-${index + 1}`,
    charger: `bay-${index + 1}`,
  })),
});
