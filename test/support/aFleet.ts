import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { onTestFinished } from "vitest";
import { stringify } from "yaml";

import { Daemon } from "./aDaemon.ts";
import { aSite, WEBHOOK_SECRET } from "./aSite.ts";
import { Postgres } from "./postgres.ts";
import { setpointd } from "./setpointd.ts";

/** A site with two chargers, `<site>-a` and `<site>-b`, and a vehicle fixed to each, `v-<site>-a` and so on. */
export const siteFile = (site: string, over: object = {}): object => ({
  site: { id: site, timezone: "UTC" },
  chargers: ["a", "b"].map((each) => ({ id: `${site}-${each}`, current: { min: 6, max: 32 } })),
  vehicles: ["a", "b"].map((each) => ({ id: `v-${site}-${each}`, charger: `${site}-${each}` })),
  ...over,
});

/** A partner, a broker and a database for a fleet. */
export async function aFleet() {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const cluster = stack.use(await Postgres.start());
  const site = stack.use(await aSite());
  const { directory, partner, broker } = site;
  const write = (name: string, content: object): string => {
    const path = join(directory, name);
    writeFileSync(path, stringify(content));
    return path;
  };
  writeFileSync(join(directory, "database-url"), cluster.url, { mode: 0o600 });
  writeFileSync(join(directory, "site-keys"), Buffer.alloc(32, 7).toString("base64"), { mode: 0o600 });
  /** `over`: sections instead of those of every test. */
  const configure = (name: string, over: object = {}): string => {
    mkdirSync(join(directory, name), { mode: 0o700 });
    return write(`${name}.yaml`, {
      state: {
        folder: `./${name}`,
        postgres: { url: { file: "database-url" }, siteKeys: { file: "site-keys" }, lease: "3s" },
      },
      vtn: {
        baseUrl: partner.baseUrl,
        tokenUrl: partner.tokenUrl,
        clientId: "depot",
        clientSecret: { file: "client-secret" },
        pollEvery: "2s",
      },
      webhook: { listen: "127.0.0.1:0", auth: { hmac: { secret: { file: "webhook-secret" } } } },
      operator: { listen: "127.0.0.1:0" },
      mqtt: { url: broker.url },
      ...over,
    });
  };
  const config = configure("first");
  const verb = (...args: readonly string[]) => setpointd([...args, "-c", config]);
  return {
    cluster,
    site,
    write,
    verb,
    config,
    query: async (sql: string): Promise<void> => {
      const client = new Client(`${cluster.url}?options=-c%20search_path%3Dsetpointd`);
      await client.connect();
      await client.query(sql);
      await client.end();
    },
    start: async (path: string, env: Readonly<Record<string, string>> = {}): Promise<Daemon> =>
      stack.use(await Daemon.fleet(path, WEBHOOK_SECRET, env)),
    configure,
    put: (...sites: readonly object[]) =>
      verb("site", "put", ...sites.map((content, index) => write(`put-${index}.yaml`, content))),
  };
}
