import { randomBytes } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { pino } from "pino";

import { fleetFrom } from "../../config/fleet.ts";
import { instant, millis } from "../../domain/units.ts";
import { Database, faultOf } from "../../store/postgres/database.ts";
import { FleetInbox } from "../../store/postgres/fleetInbox.ts";
import { FleetSites } from "../../store/postgres/fleetSites.ts";
import { dialectOf } from "../../vtn/dialects/choose.ts";
import { WebhookListener } from "../../vtn/webhook.ts";
import { FleetDeliveries } from "./deliveries.ts";
import type { FromThread, ThreadData, ToThread } from "./webhook.ts";

/** Connections to the database. */
const CONNECTIONS = 4;

const post = (message: FromThread): void => parentPort?.postMessage(message);

/** The thread of `FleetWebhook`: answers the partner once a delivery is stored for its sites. */
async function serve({ text, place, process, logLevel }: ThreadData): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const log = pino(
    { level: logLevel, base: null, timestamp: false },
    { write: (line) => post({ kind: "log", line }) },
  );
  const loaded = fleetFrom(text, place);
  if (!loaded.ok) throw new Error("the configuration of the fleet changed while the process started");
  const { database: at, shared } = loaded.fleet;
  const { webhook } = shared;
  if (webhook === null) throw new Error("no webhook is configured");
  const database = stack.use(
    new Database({ ...at, patience: Math.ceil((at.lease * 2) / 3), connections: CONNECTIONS, log }),
  );
  // A busy machine would need seconds for each later.
  await database.open(CONNECTIONS).catch(faultOf);
  const inbox = new FleetInbox(database, { process, length: at.lease }, at.siteKeys);
  const deliveries = new FleetDeliveries({
    sites: new FleetSites(database, at.siteKeys, randomBytes),
    inbox,
    log,
    onStored: () => post({ kind: "stored" }),
  });
  const { listen, path, trustProxy, auth, tls, clientCa } = webhook;
  const stopped = Promise.withResolvers<void>();
  try {
    const listener = stack.use(
      await WebhookListener.start({
        ...listen,
        path,
        trustProxy,
        scheme: auth,
        tls: tls === null ? null : { ...tls.current(), clientCa: clientCa?.current() ?? null },
        // Nothing has to be restored before deliveries are taken.
        up: Promise.resolve(),
        dialect: dialectOf(shared),
        now: () => instant(Date.now()),
        monotonic: () => millis(performance.now()),
        log,
        onUnbound: (fault) => post({ kind: "unbound", fault }),
        onRefused: (reason) => post({ kind: "refused", reason }),
        ingest: (delivery) => deliveries.put(delivery),
        hint: (wanted) => {
          if (wanted !== "list") post({ kind: "fetch", ids: wanted });
          else inbox.wantList().catch((error: unknown) => log.warn(faultOf(error), "no list was requested"));
        },
      }),
    );
    parentPort?.on("message", (message: ToThread) => {
      switch (message.kind) {
        case "stop":
          return stopped.resolve();
        case "renew": {
          const reason = listener.renew(message.tls);
          if (reason !== null) log.error({ reason }, "the certificate of the webhook was not replaced");
        }
      }
    });
    post({ kind: "up", port: listener.port });
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    post({ kind: "failed", message: error.message, syscall: String(error.syscall) });
    return;
  }
  await stopped.promise;
}

await serve(workerData);
parentPort?.close();
