import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import type { IngestAnswer } from "../domain/delivery.ts";
import type { Leadership, LeaseState } from "../domain/leadership.ts";
import type { ChargerSender } from "./edges.ts";
import { InboxReader } from "./inboxReader.ts";
import type { PartnerEvents, SiteInputs } from "./pipeline.ts";
import type { Site } from "./site.ts";
import type { StopSteps } from "./stopSteps.ts";

/** Interval of checks of the lease and of the deliveries that stand-ins stored, ms. */
const EVERY_MS = 500;

/**
 * Ingests while this process leads. In doubt nothing can be stored, so a sender is refused at once: it would wait for
 * the return of the database otherwise.
 */
export function ingestWhileLeading(
  leadership: Leadership | null,
  ingest: PartnerEvents["ingest"],
): PartnerEvents["ingest"] {
  if (leadership === null) return ingest;
  return async (delivery) => {
    const settled = new AbortController();
    const doubt = async (): Promise<IngestAnswer> => {
      while (leadership.state === "leading") await sleep(EVERY_MS, undefined, { signal: settled.signal });
      return { ok: false, reason: "the database cannot be reached" };
    };
    try {
      return leadership.state === "leading"
        ? await Promise.race([ingest(delivery), doubt().catch(() => never)])
        : await doubt();
    } finally {
      settled.abort();
    }
  };
}

/** Result of a check of the lease that was ended. */
const never = new Promise<never>(() => {});

interface LeadingParts {
  readonly leadership: Leadership | null;
  readonly site: Pick<Site, "state" | "monotonic">;
  readonly inputs: Pick<SiteInputs, "brokerUp$" | "hint$">;
  readonly events: Pick<PartnerEvents, "ingest">;
  readonly chargers: Pick<ChargerSender, "observe">;
  /** Names of the brokers. */
  readonly brokers: readonly string[];
  /** Address of the page of this process for people. Null: no other machine reaches it. */
  readonly page: string | null;
  readonly log: Logger;
}

/**
 * Consequences of the lease on the site. In doubt, nothing is sent and no charger is kept obeying. After the doubt
 * every charger is evaluated again. Deliveries of stand-ins are ingested. Resolves with the reason when the lease is
 * lost. Without a database it never does.
 */
export function followLease(
  stop: StopSteps,
  { leadership, site, inputs, events, chargers, brokers, page, log }: LeadingParts,
): Promise<string> {
  const lost = Promise.withResolvers<string>();
  if (leadership === null) return lost.promise;
  const { state: control, monotonic } = site;
  let known: LeaseState = "leading";
  const follow = (state: LeaseState): void => {
    if (state === known) return;
    known = state;
    if (state === "leading") {
      log.info("the lease on the site is renewed again");
      chargers.observe(control.mode.current === "observe");
      for (const name of brokers) inputs.brokerUp$.next(name);
      return;
    }
    log.error({ lease: state }, "the lease on the site cannot be renewed: nothing is sent to chargers");
    chargers.observe(true);
  };
  const inbox = new InboxReader({ leadership, ingest: events.ingest, monotonic, log });
  leadership.onWaiting = () => {
    if (known === "leading") void inbox.read();
  };
  leadership.onHint = (wanted) => {
    if (known === "leading") inputs.hint$.next(wanted);
  };
  const timer = setInterval(() => {
    follow(leadership.state);
    if (known === "leading") void inbox.readIfDue();
  }, EVERY_MS);
  leadership.onLost = (reason) => {
    follow("lost");
    lost.resolve(reason);
  };
  leadership.begun(page);
  // The lease may have been lost during the start.
  if (leadership.state === "lost") leadership.onLost("another process took the site during the start");
  stop.add("end the checks of the lease", () => clearInterval(timer));
  return lost.promise;
}
