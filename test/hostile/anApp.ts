import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { stringify } from "yaml";

import { start } from "../../src/daemon/daemon.ts";
import { realEdges, realMachine } from "../../src/daemon/real.ts";
import { configFrom } from "../../src/config/load.ts";
import { type Answered, ask, type LogLine, signature } from "../support/aDaemon.ts";
import type { AServer } from "../vtn/aServer.ts";

const WEBHOOK_SECRET = "webhook-secret-of-the-tests";

export interface Partner {
  readonly api: AServer;
  readonly identity: AServer;
}

/** A whole daemon within this process, with a broker of its own, and nearly no jitter: it asks again soon. */
export async function anApp({ api, identity }: Partner) {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "setpointd-hostile-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const text = stringify({
    site: { id: "depot", timezone: "UTC" },
    state: "./state",
    vtn: {
      baseUrl: api.origin,
      tokenUrl: `${identity.origin}/connect/token`,
      clientId: "depot",
      clientSecret: { env: "CLIENT_SECRET" },
      pollEvery: "1s",
    },
    webhook: { listen: "127.0.0.1:0", auth: { hmac: { secret: { env: "WEBHOOK_SECRET" } } } },
    operator: { listen: "127.0.0.1:0" },
    mqtt: { embedded: { listen: "127.0.0.1:0" } },
    chargers: [{ id: "bay-01", current: { min: 6, max: 32 } }],
    vehicles: [{ id: "veh-1", charger: "bay-01" }],
  });
  const env = { CLIENT_SECRET: "hush", WEBHOOK_SECRET };
  const loaded = configFrom(text, { directory, env });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.mistakes));
  const lines: LogLine[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const started = await start(
    loaded.config,
    realEdges(loaded.config, { ...realMachine(log), random: () => 0.02 }),
  );
  if (!started.ok) throw new Error(started.reason);
  const { app } = started;
  stack.use(app);
  const running = stack.move();
  return {
    lines,
    /** Of the operator listener, as JSON. */
    view: async (path: string): Promise<unknown> =>
      (await ask(`http://127.0.0.1:${app.operatorPort}${path}`, { method: "GET" })).json,
    /** Signed. */
    deliver: (content: unknown): Promise<Answered> => {
      const body = JSON.stringify(content);
      const headers = {
        "content-type": "application/json",
        "x-payload-signature": signature(body, WEBHOOK_SECRET),
      };
      return ask(`http://127.0.0.1:${app.webhookPort}/webhooks/events`, { method: "POST", headers, body });
    },
    /** What was worth a warning about the partner, from the given line on. */
    complaints: (from = 0): readonly string[] =>
      lines
        .slice(from)
        .filter(({ level, msg }) => level >= 40 && msg.includes("partner"))
        .map(({ msg }) => msg),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
