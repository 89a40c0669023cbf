import type { Config } from "../config/schema.ts";
import type { DatabaseConfig } from "../config/sections/state.ts";
import type { Terms } from "../domain/leadership.ts";
import type { Opened } from "../domain/store.ts";
import type { Inbox } from "../store/postgres/inbox.ts";
import { openPostgres } from "../store/postgres/open.ts";
import type { Dialect } from "../vtn/dialects/dialect.ts";
import { WebhookListener } from "../vtn/webhook.ts";
import type { Machine } from "./edges.ts";
import { databaseOptions } from "./offline.ts";

/**
 * Opens the state in a database as the leader of the site. While another process leads, this one is a stand-in: it
 * listens for deliveries, which it stores for the leader, and commands nothing. `stopped` ends the wait.
 */
export async function leadSite(
  config: Config,
  database: DatabaseConfig,
  dialect: Dialect,
  machine: Machine,
  { stopped: signal, terms }: { readonly stopped: AbortSignal; readonly terms: Terms },
): Promise<Opened> {
  const { log } = machine;
  return openPostgres({
    ...databaseOptions(config, database, machine),
    terms,
    standBy: {
      signal,
      begin: async (inbox) => {
        const listener = await deliveriesInto(inbox, config, dialect, machine);
        const webhook = listener?.port ?? null;
        log.info({ webhook }, "another process leads this site: standing by");
        return listener;
      },
    },
  });
}

/** The listener of a stand-in. A 202 means that the delivery is in the database. Null: no webhook is configured. */
async function deliveriesInto(
  inbox: Inbox,
  { webhook }: Config,
  dialect: Dialect,
  { now, monotonic, log }: Machine,
): Promise<WebhookListener | null> {
  if (webhook === null) return null;
  const { listen, path, trustProxy, auth, tls, clientCa } = webhook;
  return WebhookListener.start({
    ...listen,
    path,
    trustProxy,
    scheme: auth,
    dialect,
    tls: tls === null ? null : { ...tls.current(), clientCa: clientCa?.current() ?? null },
    up: Promise.resolve(),
    monotonic,
    log,
    now,
    onRefused: () => {},
    // The leader polls the partner. A delivery without content is a hint for it alone.
    hint: () => {},
    ingest: (delivery) => inbox.put(delivery),
  });
}
