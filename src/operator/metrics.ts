import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Histogram, Registry } from "prom-client";

import { type AuditEntry, factOf } from "../domain/audit.ts";
import type { Sent } from "../domain/command.ts";
import type { Delivery, IngestResult } from "../domain/delivery.ts";
import type { Millis } from "../domain/units.ts";
import type { PriceOutcome, PriceQuery } from "../domain/prices.ts";
import { runCooperatively } from "../platform/cooperative.ts";
import {
  chargerGauges,
  type ChargerMetric,
  formatChargerMetrics,
  type Gauges,
  registerGauges,
  type SiteCounts,
} from "./gauges.ts";

/** Buckets for publishes and commits, in seconds. */
const QUICK = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** Buckets for the lateness of a start, in seconds. */
const LATENESS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5, 60];

/** Before the first scrape. */
const NO_COUNTS: SiteCounts = {
  chargers: { online: 0, offline: 0, unreachable: 0, silent: 0 },
  commands: {},
  events: { active: 0, planned: 0 },
  problems: {},
  setpoints: new Map(),
  powers: new Map(),
};

/** Metrics of `/metrics`, with names and units as Prometheus recommends. */
export class Metrics implements Disposable {
  readonly #registry = new Registry();
  readonly #stalls = monitorEventLoopDelay({ resolution: 10 });
  readonly #deliveries: Counter<"source" | "outcome">;
  readonly #publishes: Counter<"outcome">;
  /** Commands sent to each charger. Thousands go out per second, and labelled counters of the library are slow. */
  readonly #writes = new Map<string, number>();
  readonly #discarded: Counter<"charger" | "why">;
  readonly #webhookRefused: Counter<"reason">;
  readonly #publishSeconds: Histogram;
  readonly #lateness: Histogram;
  readonly #commitSeconds: Histogram;
  readonly #rows: Counter<"kind">;
  readonly #verdicts: Counter<"verdict">;
  readonly #quarantined: Counter;
  readonly #priceFetches: Counter<"region" | "series" | "outcome">;
  readonly #reports: Counter<"outcome">;
  readonly #notices: Counter<"receiver" | "outcome">;

  #text = (): Promise<string> => this.#registry.metrics();

  constructor() {
    const registers = [this.#registry];
    this.#deliveries = new Counter({
      name: "setpointd_deliveries_total",
      help: "Events received, by source and outcome.",
      labelNames: ["source", "outcome"],
      registers,
    });
    this.#publishes = new Counter({
      name: "setpointd_publishes_total",
      help: "Commands published, refreshes included, by outcome at the broker.",
      labelNames: ["outcome"],
      registers,
    });
    this.#discarded = new Counter({
      name: "setpointd_charger_messages_discarded_total",
      help: "Charger messages discarded: unreadable, or tooMany in a second.",
      labelNames: ["charger", "why"],
      registers,
    });
    this.#webhookRefused = new Counter({
      name: "setpointd_webhook_refused_total",
      help: "Requests and connections that the webhook listener refused, by reason.",
      labelNames: ["reason"],
      registers,
    });
    this.#publishSeconds = new Histogram({
      name: "setpointd_publish_duration_seconds",
      help: "Time from handing a command to the broker session to its PUBACK.",
      buckets: QUICK,
      registers,
    });
    this.#lateness = new Histogram({
      name: "setpointd_dispatch_lateness_seconds",
      help: "Delay between the due time of a start and its decision.",
      buckets: LATENESS,
      registers,
    });
    this.#commitSeconds = new Histogram({
      name: "setpointd_commit_duration_seconds",
      help: "Duration of a commit. The event loop is blocked meanwhile.",
      buckets: QUICK,
      registers,
    });
    this.#rows = new Counter({
      name: "setpointd_audit_rows_total",
      help: "Rows added to the record, by kind.",
      labelNames: ["kind"],
      registers,
    });
    this.#verdicts = new Counter({
      name: "setpointd_verdicts_total",
      help: "Outcomes of commands: acknowledged, accepted, refused, followed, notFollowed, failed.",
      labelNames: ["verdict"],
      registers,
    });
    this.#quarantined = new Counter({
      name: "setpointd_quarantined_total",
      help: "Input that could not be read and was quarantined.",
      registers,
    });
    this.#priceFetches = new Counter({
      name: "setpointd_price_fetches_total",
      help: "Requests for prices, by outcome: good, doubtful, unreadable, failed.",
      labelNames: ["region", "series", "outcome"],
      registers,
    });
    this.#reports = new Counter({
      name: "setpointd_reports_total",
      help: "Reports, by outcome: composed, sent, retried, flagged.",
      labelNames: ["outcome"],
      registers,
    });
    this.#notices = new Counter({
      name: "setpointd_notifications_total",
      help: "Notices of alarms, by receiver and outcome: sent, retried, refused.",
      labelNames: ["receiver", "outcome"],
      registers,
    });
    this.#stalls.enable();
  }

  /** The measurement of stalls keeps a timer of 10 ms. */
  [Symbol.dispose](): void {
    this.#stalls.disable();
  }

  /** Adds the gauges. Call once. `monotonic` in ms. */
  show(gauges: Gauges, monotonic: () => number): void {
    let counts = NO_COUNTS;
    registerGauges(
      this.#registry,
      gauges,
      () => counts,
      () => this.#longestStall(),
    );
    this.#text = async () => {
      const counted = await runCooperatively(gauges.counts(), monotonic);
      counts = counted;
      const ofTheSite = await this.#registry.metrics();
      const ofChargers = [this.#chargerWrites, ...chargerGauges(counted)];
      return `${ofTheSite}${await runCooperatively(formatChargerMetrics(ofChargers), monotonic)}`;
    };
  }

  /** Counts the results of one delivery. */
  delivered({ source }: Pick<Delivery, "source">, { ingested }: { readonly ingested: IngestResult }): void {
    for (const outcome of ["accepted", "repeats", "rejected"] as const)
      if (ingested[outcome] > 0) this.#deliveries.inc({ source, outcome }, ingested[outcome]);
  }

  /** Counts one command sent, and the duration of its publishes. */
  published(charger: string, sent: Sent, tookMs: Millis): void {
    this.#publishes.inc({ outcome: sent.ok ? "acknowledged" : "failed" });
    if (!sent.ok) return;
    this.#publishSeconds.observe(tookMs / 1000);
    this.#writes.set(charger, (this.#writes.get(charger) ?? 0) + 1);
  }

  /** Counts a charger message that was discarded. */
  discarded(charger: string, why: string): void {
    this.#discarded.inc({ charger, why });
  }

  /** Counts a request or connection that the webhook listener refused. */
  webhookRefused(reason: string): void {
    this.#webhookRefused.inc({ reason });
  }

  /** Counts one request for prices. */
  priceFetched({ region, kind }: PriceQuery, outcome: PriceOutcome): void {
    this.#priceFetches.inc({ region, series: kind, outcome });
  }

  /** Counts one report, or one attempt to send it. */
  reported(outcome: "composed" | "sent" | "retried" | "flagged"): void {
    this.#reports.inc({ outcome });
  }

  /** Counts notices of alarms to a receiver. */
  notified(receiver: string, outcome: "sent" | "retried" | "refused", notices: number): void {
    this.#notices.inc({ receiver, outcome }, notices);
  }

  /** Observes the lateness of a start that was due by time alone. */
  startedLate(lateBy: Millis): void {
    this.#lateness.observe(lateBy / 1000);
  }

  /** Counts a commit and its audit rows. */
  committed(rows: readonly AuditEntry[], tookMs: number): void {
    this.#commitSeconds.observe(tookMs / 1000);
    for (const [kind, count] of tally(rows, ({ kind }) => kind)) this.#rows.inc({ kind }, count);
    for (const [verdict, count] of tally(rows, verdictIn)) this.#verdicts.inc({ verdict }, count);
    for (const { kind, facts } of rows) if (kind === "rejected") this.#quarantined.inc(countIn(facts));
  }

  readonly contentType = this.#registry.contentType;

  /** Text in Prometheus exposition format. */
  text(): Promise<string> {
    return this.#text();
  }

  get #chargerWrites(): ChargerMetric {
    const help = "Commands sent to each charger, refreshes included.";
    return { name: "setpointd_charger_writes_total", help, type: "counter", values: this.#writes };
  }

  /** Longest stall of the event loop since the last scrape, in seconds. */
  #longestStall(): number {
    const longest = this.#stalls.max / 1e9;
    this.#stalls.reset();
    return longest;
  }
}

/** Number of rejections that one row stands for. */
const countIn = (facts: AuditEntry["facts"]): number =>
  typeof facts === "object" && facts !== null && "count" in facts ? Number(facts["count"]) : 1;

const verdictIn = ({ kind, facts }: AuditEntry): string | null => {
  const progress = factOf(facts, "progress");
  return kind === "outcome" && typeof progress === "string" ? progress : null;
};

/** Counts rows by key. Null is not counted. */
function tally<T>(rows: readonly T[], by: (row: T) => string | null): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const name = by(row);
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
