import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

import type { Committed, FailedCommit } from "../domain/changes.ts";
import type { IngestAnswer, Delivery } from "../domain/delivery.ts";
import { ANOTHER_LEADS, type Leadership, type LeaseState, MOST_WAITING } from "../domain/leadership.ts";
import type { Millis } from "../domain/units.ts";
import { messageOf } from "../platform/text.ts";
import type { ChargerSender } from "../control/ports.ts";
import { NO_CHANGES, type RequestedChange } from "../control/stage.ts";
import { type DeliveryFailure, failedAgain, isDueAgain, MOST_FAILURES } from "./deliveryFailures.ts";
import type { PartnerEvents, SiteInputs } from "./pipeline.ts";
import type { Site } from "./site.ts";
import type { StopSteps } from "./stopSteps.ts";

/** Interval of checks of the lease and of the deliveries that stand-ins stored, ms. */
const EVERY_MS = 500;

type Lead = Pick<Leadership, "state"> | null;

/**
 * Works while this process leads. In doubt nothing can be stored, so the answer is `refused` at once: the work would wait
 * for the return of the database otherwise. `hasBegun`: the work may still be done then.
 */
export async function whileLeading<T>(
  lead: Lead,
  work: () => Promise<T>,
  refused: (reason: string, hasBegun: boolean) => T,
): Promise<T> {
  if (lead === null) return work();
  const hasBegun = lead.state === "leading";
  const settled = new AbortController();
  // An ended check waits on a promise of its own: one that all shared would grow with every piece of work.
  const doubt = async (): Promise<T> => {
    while (lead.state === "leading") await sleep(EVERY_MS, undefined, { signal: settled.signal });
    return refused(lead.state === "lost" ? ANOTHER_LEADS : "the database cannot be reached", hasBegun);
  };
  try {
    return hasBegun
      ? await Promise.race([work(), doubt().catch(() => new Promise<never>(() => {}))])
      : await doubt();
  } finally {
    settled.abort();
  }
}

const notStored = (reason: string): FailedCommit => ({ ok: false, reason, dropped: [], stored: null });

/** `whileLeading` for deliveries. The partner repeats one that was not answered, and a repeat changes nothing. */
export function ingestWhileLeading(lead: Lead, ingest: PartnerEvents["ingest"]): PartnerEvents["ingest"] {
  if (lead === null) return ingest;
  return (delivery) =>
    whileLeading<IngestAnswer>(
      lead,
      () => ingest(delivery),
      (reason) => notStored(reason),
    );
}

/** Hands a change to control. Resolves after its commit. */
export const requestChange = (
  { change$ }: Pick<SiteInputs, "change$">,
  apply: RequestedChange,
): Promise<Committed> => new Promise((settle) => change$.next({ apply, settle }));

/**
 * `whileLeading` for requests of people. One that still waits for its stage when it is refused changes nothing later:
 * the person was answered that nothing was changed. One that was applied may be stored, or be stored later.
 */
export function requestWhileLeading(
  lead: Lead,
  request: (change: RequestedChange) => Promise<Committed>,
): (change: RequestedChange) => Promise<Committed> {
  if (lead === null) return request;
  return (change) => {
    let [isRefused, isApplied] = [false, false];
    const committed = (): Promise<Committed> =>
      request((state, now) => {
        if (isRefused) return NO_CHANGES;
        isApplied = true;
        return change(state, now);
      });
    const refused = (reason: string): Committed => {
      isRefused = true;
      return { ...notStored(reason), ...(isApplied ? { isUnsure: true } : {}) };
    };
    return whileLeading(lead, committed, refused);
  };
}

type Followed = Exclude<keyof Leadership, "terms" | "lapsed" | "failover" | "backlog" | "view">;

interface LeadingParts {
  readonly leadership: Pick<Leadership, Followed> | null;
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
 * every charger of each broker for which a command was withheld is evaluated again. Deliveries of stand-ins are
 * ingested. Resolves with the reason when the lease is lost. Without a database it never does.
 */
export function followLease(
  stop: StopSteps,
  { leadership, site, inputs, events, chargers, brokers, page, log }: LeadingParts,
): Promise<string> {
  const lost = Promise.withResolvers<string>();
  if (leadership === null) return lost.promise;
  const { state: control, monotonic } = site;
  let known: LeaseState = "leading";
  const follow = (state: LeaseState, reason?: string): void => {
    if (state === known) return;
    known = state;
    if (state === "leading") {
      log.info("the lease on the site is renewed again");
      chargers.observe(control.mode.current === "observe");
      // Withheld commands wait in the queue. Thousands of sites of a fleet come out of doubt together: most have none.
      for (const name of brokers) if (!control.sendQueue.isEmpty(name)) inputs.brokerUp$.next(name);
      return;
    }
    log.error(
      { lease: state, reason },
      "the lease on the site cannot be renewed: nothing is sent to chargers",
    );
    chargers.observe(true);
  };
  const inbox = new InboxReader({ leadership, ingest: events.ingest, monotonic, log });
  leadership.onWaiting = () => {
    if (known === "leading") void inbox.read();
  };
  leadership.onHint = (wanted) => {
    if (known === "leading") inputs.hint$.next(wanted);
  };
  let doubts = 0;
  const timer = setInterval(() => {
    // A doubt that began and ended since the last check withheld commands as well.
    if (known === "leading" && leadership.doubts > doubts) follow("in doubt");
    doubts = leadership.doubts;
    follow(leadership.state);
    if (known === "leading") void inbox.readIfDue();
  }, EVERY_MS);
  leadership.onLost = (reason) => {
    follow("lost", reason);
    lost.resolve(reason);
  };
  leadership.begun(page);
  // The lease may have been lost during the start.
  if (leadership.state === "lost") leadership.onLost("another process took the site during the start");
  stop.add("end the checks of the lease", () => clearInterval(timer));
  return lost.promise;
}

/** Interval of reads while the database announces deliveries, ms. */
const ANNOUNCED_MS = 5_000;
interface InboxReaderOptions {
  readonly leadership: Pick<Leadership, "waiting" | "isNotified" | "setAside">;
  readonly ingest: (delivery: Delivery) => Promise<IngestAnswer>;
  readonly monotonic: () => Millis;
  readonly log: Logger;
}

/**
 * Ingests the deliveries that stand-ins stored. All of a read share one commit. Where that fails, each has a commit of
 * its own, so that a delivery that always fails delays no other. It goes to the quarantine then. The next read
 * continues behind a page of which none can be stored: it shows whether the database or the deliveries are at fault.
 * While nothing else is stored that stays open, and each of them is tried less and less often.
 */
export class InboxReader {
  readonly #options: InboxReaderOptions;
  /** Failures by the number of the stored delivery. */
  readonly #failures = new Map<number, DeliveryFailure>();
  #stored = 0;
  /** The last delivery of a page of which none can be stored. 0: the next read begins with the oldest. */
  #after = 0;
  #isReading = false;
  #isAsked = false;
  /** A failure is logged once, as the next read is soon. */
  #cannotRead = false;
  #readAt = -Infinity;

  constructor(options: InboxReaderOptions) {
    this.#options = options;
  }

  /** Reads deliveries, unless the database announces them, the last read is recent, and none is to be tried again. */
  async readIfDue(): Promise<void> {
    const { leadership, monotonic } = this.#options;
    const now = monotonic();
    const isRecent = leadership.isNotified && now - this.#readAt < ANNOUNCED_MS;
    const isAnyDue = this.#failures.values().some((each) => isDueAgain(each, this.#stored, now));
    if (isRecent && this.#after === 0 && !isAnyDue) return;
    await this.read();
  }

  /** Reads and ingests all that waits. */
  async read(): Promise<void> {
    this.#isAsked = true;
    if (this.#isReading) return;
    this.#isReading = true;
    const { monotonic, log } = this.#options;
    try {
      while (this.#isAsked) {
        this.#isAsked = false;
        this.#readAt = monotonic();
        await this.#readOnce();
      }
      this.#cannotRead = false;
    } catch (error) {
      // The next read does not wait for an announcement.
      this.#readAt = -Infinity;
      if (!this.#cannotRead) log.warn({ err: error }, "deliveries of the stand-in cannot be read");
      this.#cannotRead = true;
    }
    this.#isReading = false;
  }

  async #readOnce(): Promise<void> {
    const after = this.#after;
    const waiting = await this.#options.leadership.waiting(after);
    this.#after = 0;
    if (waiting.length === 0) {
      // Another process may have ingested those that failed.
      if (after === 0) this.#failures.clear();
      return;
    }
    if (this.#failures.size === 0) {
      const answers = await Promise.all(waiting.map((delivery) => this.#tried(delivery)));
      if (answers.every(({ ok }) => ok)) return this.#goOn(waiting);
    }
    await this.#oneByOne(waiting);
  }

  /** More may wait behind a full page, and nothing announces what was stored before this process led. */
  #goOn(page: readonly Delivery[]): void {
    if (page.length >= MOST_WAITING) this.#isAsked = true;
  }

  async #oneByOne(waiting: readonly Delivery[]): Promise<void> {
    const [before, now] = [this.#stored, this.#options.monotonic()];
    const due = waiting.filter(({ stored = 0 }) => isDueAgain(this.#failures.get(stored), before, now));
    const failed: (readonly [Delivery, string])[] = [];
    for (const delivery of due) {
      const answer = await this.#tried(delivery);
      if (answer.ok) this.#failures.delete(delivery.stored ?? 0);
      else failed.push([delivery, answer.reason]);
    }
    const isPageLeft = this.#stored === before && waiting.length >= MOST_WAITING;
    if (isPageLeft) this.#after = waiting.at(-1)?.stored ?? 0;
    if (failed.length === 0) this.#goOn(waiting);
    for (const [delivery, reason] of failed) {
      const number = delivery.stored ?? 0;
      const failure = failedAgain(this.#failures.get(number), { stored: this.#stored, before, now });
      this.#failures.set(number, failure);
      const { count } = failure;
      if (count < MOST_FAILURES) continue;
      const isMoved = await this.#options.leadership.setAside(delivery, reason);
      this.#failures.delete(number);
      if (!isMoved) continue;
      this.#options.log.error(
        { delivery: number, reason },
        "a delivery of the stand-in cannot be ingested: it is in the quarantine",
      );
    }
  }

  async #tried(delivery: Delivery): Promise<IngestAnswer> {
    try {
      const answer = await this.#options.ingest(delivery);
      if (answer.ok) this.#stored += 1;
      return answer;
    } catch (error) {
      return { ok: false, reason: messageOf(error) };
    }
  }
}
