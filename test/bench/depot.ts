import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { freePort } from "../support/freePort.ts";

/** Loopback is all that ever sees it. */
export const SECRET = "bench";

export interface DepotWish {
  readonly chargers: number;
  readonly broker: string;
  /** Base URL of a partner; absent: nobody answers there, and polling rests. */
  readonly partner?: string;
  /** As the configuration spells it; an hour unless told. */
  readonly pollEvery?: string;
  /** "bench" unless told: two daemons on one broker need two. */
  readonly site?: string;
  /** Further keys of `control`, as the configuration spells them. */
  readonly control?: string;
}

/** A depot of vehicles v0.. at chargers c0.. in a directory of its own, ready for `setpointd run -c`. */
export interface BenchDepot extends Disposable {
  readonly directory: string;
  readonly config: string;
  readonly state: string;
  readonly site: string;
  readonly webhook: string;
  readonly operator: string;
}

/** Writes the configuration; nothing is started. Its broker's prefix is `setpointd`. */
export async function benchDepot(wish: DepotWish): Promise<BenchDepot> {
  const {
    chargers,
    broker,
    partner = "http://127.0.0.1:9",
    pollEvery = "1h",
    site = "bench",
    control = "",
  } = wish;
  const { path: directory, [Symbol.dispose]: remove } = scratchDirectory();
  const [webhook, operator] = [await freePort(), await freePort()];
  const ids = Array.from({ length: chargers }, (_, index) => index);
  const lines = [
    `site: { id: ${site}, timezone: Europe/Oslo }`,
    `state: ${join(directory, "state")}`,
    `vtn: { baseUrl: "${partner}", tokenUrl: "${partner}/connect/token", clientId: bench, clientSecret: { env: SECRET }, pollEvery: ${pollEvery} }`,
    `webhook: { listen: "127.0.0.1:${webhook}", auth: { hmac: { secret: { env: SECRET } } } }`,
    `operator: { listen: "127.0.0.1:${operator}" }`,
    `mqtt: { url: "${broker}" }`,
    // A refresh in the middle of a run would be counted as what the run sent.
    `control: { refresh: 1h, ${control} }`,
    "chargers:",
    ...ids.map((id) => `  - { id: c${id}, current: { min: 6, max: 32 } }`),
    "vehicles:",
    ...ids.map((id) => `  - { id: v${id}, charger: c${id} }`),
  ];
  const config = join(directory, "config.yaml");
  writeFileSync(config, `${lines.join("\n")}\n`);
  return {
    directory,
    config,
    state: join(directory, "state"),
    site,
    webhook: `http://127.0.0.1:${webhook}`,
    operator: `http://127.0.0.1:${operator}`,
    [Symbol.dispose]: remove,
  };
}

/** A directory that is gone with what it holds when it is disposed of. */
export function scratchDirectory(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "setpointd-bench-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** `v0` to `v<count - 1>`, or as many from `first` on. */
export const vehicles = (count: number, first = 0): readonly string[] =>
  Array.from({ length: count }, (_, index) => `v${first + index}`);
