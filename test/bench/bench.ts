/**
 * `npm run bench [-- NAME...]`: the real daemon against bare programs in the same run. Figures are JSON lines on
 * stdout, progress is on stderr. Needs Linux (/proc) and mosquitto; takes about 20 minutes for all, half of them `fleetYear`.
 */
import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";

import { commandLine, refuseOptions } from "../support/commandLine.ts";
import { burst1k } from "./burst.ts";
import { fleet } from "./fleet.ts";
import { fleetYear } from "./fleetYear.ts";
import { fanout20k, fanout20kLimited } from "./fanout.ts";
import { type Measurement, report } from "./figure.ts";
import { idle } from "./idle.ts";
import { latency1, latency200, latency200Overlapped } from "./latency.ts";
import { pending } from "./pending.ts";
import { nodeRed } from "./nodeRed.ts";
import { poll10k } from "./poll.ts";
import { start, startEmpty } from "./start.ts";
import { record } from "./record.ts";
import { stream } from "./stream.ts";
import { turns20k } from "./turns.ts";

const measurements: Readonly<Record<string, Measurement>> = {
  fanout20k,
  fanout20kLimited,
  turns20k,
  latency1,
  latency200,
  latency200Overlapped,
  burst1k,
  poll10k,
  pending,
  startEmpty,
  record,
  start,
  idle,
  stream,
  fleet,
  fleetYear,
  nodeRed,
};

const names = Object.keys(measurements).join(" ");
const USAGE = `usage: npm run bench [-- NAME...] [--sites N --vehicles N --lease 10s]
NAME: ${names}; without one, all
--sites, --vehicles, --lease: of the fleet, vehicles of each site, and its state.postgres.lease`;
const { positionals: named } = commandLine(USAGE, () =>
  parseArgs({
    allowPositionals: true,
    options: { sites: { type: "string" }, vehicles: { type: "string" }, lease: { type: "string" } },
  }),
);
const unknown = named.filter((name) => !(name in measurements));
if (unknown.length > 0) refuseOptions(USAGE, `no figure ${unknown.join(", ")}`);
const machine = {
  cpu: cpus()[0]?.model ?? "?",
  cores: cpus().length,
  memoryGB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
};
process.stdout.write(`${JSON.stringify({ machine })}\n`);
for (const [name, measure] of Object.entries(measurements)) {
  if (named.length > 0 && !named.includes(name)) continue;
  await measure(report);
}
