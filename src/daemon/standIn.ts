import { connect } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";

import { isLoopback, urlHost } from "../config/fields/address.ts";
import type { Config } from "../config/schema.ts";
import type { DatabaseConfig } from "../config/sections/state.ts";
import type { LeaderSeen, LeaderView, Terms } from "../domain/leadership.ts";
import type { Opened } from "../domain/store.ts";
import { refusingSocket } from "../operator/controlSocket.ts";
import type { PageFiles } from "../operator/http/page.ts";
import type { ListenerOptions, OperatorListener } from "../operator/http/server.ts";
import type { OperatorViews } from "../operator/http/views.ts";
import {
  type StandIn,
  standInPage,
  standInRefusal,
  standInSentence,
  standInStatus,
  standInViews,
} from "../operator/standIn.ts";
import { statusSocket } from "../operator/statusSocket.ts";
import type { Inbox } from "../store/postgres/inbox.ts";
import { openPostgres } from "../store/postgres/open.ts";
import type { Dialect } from "../vtn/dialects/dialect.ts";
import { WebhookListener } from "../vtn/webhook.ts";
import { CertificatesInUse, noteInLog } from "./certificates.ts";
import type { Machine } from "./edges.ts";
import { databaseOptions } from "./offline.ts";

/** A stand-in with a clock further off that of the database is warned about, ms. */
const MOST_AHEAD_MS = 5_000;

interface StandInOptions {
  /** Ends the wait. */
  readonly stopped: AbortSignal;
  readonly terms: Terms;
  /** Opens the listener for people. `pageOf`: changes the page that was built. */
  readonly operator: (
    config: Config,
    machine: Machine,
    views: Promise<OperatorViews>,
    options: Pick<ListenerOptions, "now" | "record">,
    pageOf: (built: PageFiles | null) => PageFiles,
  ) => Promise<Pick<OperatorListener, "port" | "renew"> & AsyncDisposable>;
  /** Sets the reload of certificates while this process stands by. Null: it does so no more. */
  readonly onReload: (reload: (() => void) | null) => void;
}

/**
 * Opens the state in a database as the leader of the site. While another process leads, this one is a stand-in: it
 * listens for deliveries, which it stores for the leader, shows people which process leads, and commands nothing.
 */
export async function leadSite(
  config: Config,
  database: DatabaseConfig,
  dialect: Dialect,
  machine: Machine,
  { stopped: signal, terms, operator, onReload }: StandInOptions,
): Promise<Opened> {
  const { log, now } = machine;
  const { id: site, timezone } = config.site;
  const since = now();
  let seen: LeaderSeen = { leader: null, ahead: null, fault: null };
  let isWarned = false;
  const standIn = (): StandIn => ({ site, timezone, since, leasesLost: terms.lost, ...seen });
  return openPostgres({
    ...databaseOptions(config, database, machine),
    terms,
    standBy: {
      signal,
      onSeen: (read) => {
        const { leader, ahead } = read;
        seen = { ...read, leader: leader && { ...leader, page: reachablePage(leader, hostname()) } };
        const isOff = Math.abs(ahead ?? 0) > MOST_AHEAD_MS;
        if (isOff && !isWarned)
          log.warn(
            { aheadMs: ahead },
            "the clock of this machine differs from that of the database: events would shift by that if this process led",
          );
        isWarned = isOff;
      },
      begin: async (inbox) => {
        await using stack = new AsyncDisposableStack();
        const certificates = new CertificatesInUse(config, { now, log, note: noteInLog(log) });
        const listener = stack.use(await deliveriesInto(inbox, config, dialect, machine, certificates));
        const webhook = listener?.port ?? null;
        const people = await standInForPeople(stack, config, machine, standIn, operator);
        onReload(() => certificates.reload({ webhook: listener, operator: people ?? NO_LISTENER }));
        stack.defer(() => onReload(null));
        log.info(
          { webhook, operator: people?.port ?? null, leader: standInSentence(standIn()) },
          "another process leads this site: standing by",
        );
        return stack.move();
      },
    },
  });
}

/**
 * Listeners for people: the page, the API and the sockets of the verbs. A stand-in works without them, so an address
 * that is taken is a warning. Returns the listener of the page. Null: its address could not be bound.
 */
async function standInForPeople(
  stack: AsyncDisposableStack,
  config: Config,
  machine: Machine,
  standIn: () => StandIn,
  operator: StandInOptions["operator"],
): Promise<Pick<OperatorListener, "port" | "renew"> | null> {
  const { log, now } = machine;
  const views = Promise.resolve(standInViews(standIn, now));
  const failures = {
    // Its answers come from memory.
    passing: () => null,
    onError: (error: unknown) => log.error({ err: error }, "a request of the command line failed"),
  };
  const record = (message: string, facts: Readonly<Record<string, string>>): void =>
    log.info(facts, `${message} (at a stand-in, so it is not on record)`);
  for (const [name, path, open] of [
    [
      "control socket",
      join(config.state, "control.sock"),
      (at: string) => refusingSocket(at, () => standInRefusal(standIn())),
    ],
    [
      "status socket",
      config.statusSocket,
      (at: string) => statusSocket(at, () => standInStatus(now(), standIn()), failures),
    ],
  ] as const) {
    // Two processes of one folder: the socket of the leader stays.
    if (await isListening(path)) continue;
    const opened = await open(path);
    if (typeof opened === "string") log.warn({ reason: opened }, `no ${name} while standing by`);
    else stack.use(opened);
  }
  try {
    const listener = await operator(config, machine, views, { now, record }, (built) =>
      standInPage(built, standIn),
    );
    return stack.use(listener);
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    log.warn({ reason: error.message }, "no operator listener while standing by");
    return null;
  }
}

const NO_LISTENER = { renew: () => "its address could not be bound" };

/** True: a process listens at this path. A socket that a killed process left has none. */
const isListening = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });

/** The address of a page on another machine's loopback is of no use here. */
export const reachablePage = (
  { page, process }: Pick<LeaderView, "page" | "process">,
  here: string,
): string | null => {
  const host = page === null ? null : (URL.parse(page)?.hostname ?? null);
  const isElsewhere = process.slice(0, process.lastIndexOf(" ")) !== here;
  return host !== null && isLoopback(host) && isElsewhere ? null : page;
};

/** Address of the operator's page of this machine for people. Null: a reverse proxy serves it under an unknown name. */
export function pageAddress(
  { listen, hosts, tls, trustProxy }: Pick<Config["operator"], "listen" | "hosts" | "tls" | "trustProxy">,
  port: number,
  machine: string,
): string | null {
  // Both gateways may have the same list of hosts.
  const own = hosts.find((name) => name === machine || name.startsWith(`${machine}.`));
  if (trustProxy !== false) {
    const name = own ?? hosts[0];
    return name === undefined ? null : `https://${name}`;
  }
  const isAny = listen.host === "0.0.0.0" || listen.host === "::";
  const name = isLoopback(listen.host)
    ? urlHost(listen.host)
    : (own ?? (isAny ? machine : urlHost(listen.host)));
  return `${tls === null ? "http" : "https"}://${name}:${port}`;
}

/** The listener of a stand-in. A 202 means that the delivery is in the database. Null: no webhook is configured. */
async function deliveriesInto(
  inbox: Inbox,
  { webhook }: Config,
  dialect: Dialect,
  { now, monotonic, log }: Machine,
  { served }: Pick<CertificatesInUse, "served">,
): Promise<WebhookListener | null> {
  if (webhook === null) return null;
  const { listen, path, trustProxy, auth } = webhook;
  return WebhookListener.start({
    ...listen,
    path,
    trustProxy,
    scheme: auth,
    dialect,
    tls: served,
    up: Promise.resolve(),
    monotonic,
    log,
    now,
    onRefused: () => {},
    // The leader alone asks the partner.
    hint: (wanted) =>
      void inbox
        .hint(wanted)
        .catch((error: unknown) => log.warn({ err: error }, "a hint does not reach the leader")),
    ingest: (delivery) => inbox.put(delivery),
  });
}
