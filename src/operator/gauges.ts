import { Counter, Gauge, type Registry } from "prom-client";

import { inSteps, type ResumableTask } from "../platform/cooperative.ts";

/** A value of a gauge with labels. */
export interface GaugeRow {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Counts whose cost grows with the site. They take several turns of the event loop. */
export interface SiteCounts {
  /** Number of events by state. */
  readonly events: Readonly<Record<"active" | "planned", number>>;
  /** Number of chargers by presence. `silent`: no message since the start. */
  readonly chargers: Readonly<Record<"online" | "offline" | "unreachable" | "silent", number>>;
  /** Number of chargers by the progress of their last command. */
  readonly commands: Readonly<Record<string, number>>;
  /** Open problems by kind, zeros included. */
  readonly problems: Readonly<Record<string, number>>;
  /** Level of each limited charger, W. A pause is 0. */
  readonly setpoints: ReadonlyMap<string, number>;
  /** Measured power of each charger that sends it, W. */
  readonly powers: ReadonlyMap<string, number>;
}

/** Values that are read at the moment of a scrape. */
export interface Gauges {
  readonly counts: () => ResumableTask<SiteCounts>;
  readonly dispatches: () => number;
  readonly brokerUp: () => boolean;
  readonly partnerUp: () => boolean;
  /** True: this process leads the site. Null: no other process can. */
  readonly leads: () => boolean | null;
  /** Leases that this process lost. Null: no other process can lead. */
  readonly leasesLost: () => number | null;
  /** Seconds of the last takeover. Null: none. */
  readonly failover: () => number | null;
  /** Seconds until the observe period of a person ends. Null: no period. */
  readonly observing: () => number | null;
  /** Seconds since the partner last answered. */
  readonly partnerSilence: () => number;
  /** Seconds since the access token was issued. Null: no token. */
  readonly tokenAge: () => number | null;
  /** Bytes of the stored state, and bytes that are free on its disk. */
  readonly disk: () => { readonly bytes: number; readonly free: number | null };
  /** End of each certificate, in seconds since the Unix epoch. */
  readonly certificateEnds: () => Readonly<Record<string, number>>;
  /** Seconds until the known spot prices of each region end. */
  readonly priceHorizons: () => Readonly<Record<string, number>>;
  /** Reports that the partner does not have yet. */
  readonly reportsWaiting: () => number;
  /** Vehicles by the state of their next departure, zeros included. */
  readonly departures: () => Readonly<Record<string, number>>;
  /** Alarms that are not cleared, zeros of each kind included. */
  readonly alarms: () => readonly GaugeRow[];
  /** Notices of alarms that wait, for each receiver. */
  readonly noticesWaiting: () => readonly GaugeRow[];
}

/**
 * Adds the gauges to the metrics. `counts`: those of this scrape. `longestStall`: of the event loop since the last scrape,
 * in seconds.
 */
export function registerGauges(
  registry: Registry,
  gauges: Gauges,
  counts: () => SiteCounts,
  longestStall: () => number,
): void {
  const registers = [registry];
  const gauge = gaugeIn(registry);
  const rows = (
    name: string,
    help: string,
    labelNames: readonly string[],
    read: () => readonly GaugeRow[],
  ): void => {
    const metric: Gauge = new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers,
      collect: () => {
        metric.reset();
        for (const { labels, value } of read()) metric.set({ ...labels }, value);
      },
    });
  };
  const family = (
    name: string,
    help: string,
    label: string,
    read: () => Readonly<Record<string, number>>,
  ): void =>
    rows(name, help, [label], () =>
      Object.entries(read()).map(([value, count]) => ({ labels: { [label]: value }, value: count })),
    );
  gauge("setpointd_dispatches", "Dispatches that have not ended.", gauges.dispatches);
  gauge("setpointd_broker_up", "1 while the broker is connected.", () => Number(gauges.brokerUp()));
  gauge("setpointd_partner_up", "1 while the last request to the partner was answered.", () =>
    Number(gauges.partnerUp()),
  );
  registerLeadGauges(registry, gauges);
  gauge(
    "setpointd_observe_period_seconds",
    "Time until the observe period of a person ends; absent without one.",
    gauges.observing,
  );
  gauge("setpointd_partner_silence_seconds", "Time since the partner last answered.", gauges.partnerSilence);
  gauge("setpointd_token_age_seconds", "Age of the access token; absent without one.", gauges.tokenAge);
  gauge("setpointd_state_bytes", "Size of the stored state.", () => gauges.disk().bytes);
  gauge("setpointd_disk_free_bytes", "Free space on the disk of the stored state.", () => gauges.disk().free);
  gauge("setpointd_reports_waiting", "Reports that are composed and not delivered.", gauges.reportsWaiting);
  gauge(
    "setpointd_loop_stall_seconds",
    "Longest stall of the event loop since the last scrape.",
    longestStall,
  );
  family("setpointd_problems", "Open problems of the site, as in status.", "kind", () => counts().problems);
  family(
    "setpointd_departures",
    "Vehicles, by the state of their next departure: ready, onTime, short, unknown.",
    "state",
    gauges.departures,
  );
  family(
    "setpointd_price_horizon_seconds",
    "Time until the known spot prices end; negative once the last one has passed.",
    "region",
    gauges.priceHorizons,
  );
  family(
    "setpointd_certificate_expiry_timestamp_seconds",
    "Expiry of each certificate, by its key in the configuration.",
    "certificate",
    gauges.certificateEnds,
  );
  family("setpointd_events", "Events by state: active or planned.", "state", () => counts().events);
  family("setpointd_chargers", "Chargers, by presence.", "state", () => counts().chargers);
  family(
    "setpointd_commands",
    "Chargers, by progress of their last command.",
    "verdict",
    () => counts().commands,
  );
  rows(
    "setpointd_alarms_open",
    "Alarms that are not cleared, the acknowledged ones included.",
    ["kind", "severity"],
    gauges.alarms,
  );
  rows(
    "setpointd_notifications_waiting",
    "Notices of alarms that a receiver of alarms.notify has not accepted yet.",
    ["receiver"],
    gauges.noticesWaiting,
  );
}

/** Adds the metrics of the lease. A stand-in has them as well. */
export function registerLeadGauges(
  registry: Registry,
  { leads, leasesLost, failover }: Pick<Gauges, "leads" | "leasesLost" | "failover">,
): void {
  const gauge = gaugeIn(registry);
  gauge(
    "setpointd_sites_led",
    "1 while this process leads its site, 0 while its lease is in doubt or another process leads; absent without a database.",
    () => {
      const value = leads();
      return value === null ? null : Number(value);
    },
  );
  const lost: Counter = new Counter({
    name: "setpointd_lease_lost_total",
    help: "Leases that this process lost to another one; absent without a database.",
    registers: [registry],
    collect: () => {
      const value = leasesLost();
      if (value === null) return lost.remove();
      lost.reset();
      lost.inc(value);
    },
  });
  gauge(
    "setpointd_failover_seconds",
    "Time from the end or release of the lease before until this process began its work for the chargers; absent if no process led before.",
    failover,
  );
}

/** Adds gauges without labels. Null: the gauge is absent from this scrape. */
const gaugeIn =
  (registry: Registry) =>
  (name: string, help: string, read: () => number | null): void => {
    const metric: Gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: () => {
        const value = read();
        if (value === null) metric.remove();
        else metric.set(value);
      },
    });
  };

/** A metric with a value for each charger. */
export interface ChargerMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter";
  readonly values: ReadonlyMap<string, number>;
}

/** The gauges with a value for each charger. */
export const chargerGauges = ({ setpoints, powers }: SiteCounts): readonly ChargerMetric[] => [
  {
    name: "setpointd_charger_setpoint_watts",
    help: "Level of each limited charger; absent while it is released.",
    type: "gauge",
    values: setpoints,
  },
  {
    name: "setpointd_charger_power_watts",
    help: "Measured power of each charger; absent while it is silent.",
    type: "gauge",
    values: powers,
  },
];

/** Metrics in exposition format. The library would write all lines in one turn of the event loop. */
export function* formatChargerMetrics(metrics: readonly ChargerMetric[]): ResumableTask<string> {
  const lines: string[] = [];
  for (const { name, help, type, values } of metrics) {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    yield* inSteps(values, ([charger, value]) => {
      lines.push(`${name}{charger="${escaped(charger)}"} ${value}`);
    });
    lines.push("");
  }
  return lines.join("\n");
}

/** Escapes a label value. */
const escaped = (label: string): string =>
  label.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
