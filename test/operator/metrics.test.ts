import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { parse } from "yaml";

import type { AuditEntry } from "../../src/domain/audit.ts";
import { instant, millis } from "../../src/domain/units.ts";
import { formatChargerMetrics, registerLeadGauges } from "../../src/operator/gauges.ts";
import { Metrics } from "../../src/operator/metrics.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";

const metrics = (): Metrics => {
  const shown = new Metrics();
  shown.show(
    {
      *counts() {
        yield;
        return {
          events: { active: 1, planned: 2 },
          chargers: { online: 2, offline: 1, unreachable: 1, silent: 0 },
          commands: { accepted: 2 },
          problems: { broker: 1, disk: 0 },
          setpoints: new Map([["bay-01", 11_040]]),
          powers: new Map([["bay-01", 10_900]]),
        };
      },
      dispatches: () => 12,
      brokerUp: () => true,
      partnerUp: () => false,
      leads: () => false,
      leasesLost: () => 2,
      failover: () => 10.2,
      observing: () => 600,
      partnerSilence: () => 61.5,
      tokenAge: () => null,
      disk: () => ({ bytes: 4096, free: 1e9 }),
      certificateEnds: () => ({ "webhook.tls.cert": 1_800_000_000 }),
      priceHorizons: () => ({ NO1: 7200 }),
      noticesWaiting: () => [{ labels: { receiver: "webhook alerts.example" }, value: 2 }],
      alarms: () => [{ labels: { kind: "broker", severity: "critical" }, value: 1 }],
      reportsWaiting: () => 3,
      departures: () => ({ ready: 1, onTime: 7, short: 2, unknown: 0 }),
    },
    () => 0,
  );
  return shown;
};

const names = async (): Promise<readonly string[]> =>
  (await metrics().text()).split("\n").flatMap((line) => (line.startsWith("# TYPE ") ? [line.slice(7)] : []));

test("these are the metrics, complete", async () => {
  expect([...(await names())].toSorted()).toEqual([
    "setpointd_alarms_open gauge",
    "setpointd_audit_rows_total counter",
    "setpointd_broker_up gauge",
    "setpointd_certificate_expiry_timestamp_seconds gauge",
    "setpointd_charger_messages_discarded_total counter",
    "setpointd_charger_power_watts gauge",
    "setpointd_charger_setpoint_watts gauge",
    "setpointd_charger_writes_total counter",
    "setpointd_chargers gauge",
    "setpointd_commands gauge",
    "setpointd_commit_duration_seconds histogram",
    "setpointd_deliveries_total counter",
    "setpointd_departures gauge",
    "setpointd_disk_free_bytes gauge",
    "setpointd_dispatch_lateness_seconds histogram",
    "setpointd_dispatches gauge",
    "setpointd_events gauge",
    "setpointd_failover_seconds gauge",
    "setpointd_lease_lost_total counter",
    "setpointd_loop_stall_seconds gauge",
    "setpointd_notifications_total counter",
    "setpointd_notifications_waiting gauge",
    "setpointd_observe_period_seconds gauge",
    "setpointd_partner_silence_seconds gauge",
    "setpointd_partner_up gauge",
    "setpointd_price_fetches_total counter",
    "setpointd_price_horizon_seconds gauge",
    "setpointd_problems gauge",
    "setpointd_publish_duration_seconds histogram",
    "setpointd_publishes_total counter",
    "setpointd_quarantined_total counter",
    "setpointd_reports_total counter",
    "setpointd_reports_waiting gauge",
    "setpointd_sites_led gauge",
    "setpointd_state_bytes gauge",
    "setpointd_token_age_seconds gauge",
    "setpointd_verdicts_total counter",
    "setpointd_webhook_refused_total counter",
  ]);
});

test("metric names follow the conventions: one prefix, base units, _total for counters only", async () => {
  for (const line of await names()) {
    const [name = "", type] = line.split(" ");
    expect(name).toMatch(/^setpointd_[a-z][a-z_]*[a-z]$/);
    expect(name).not.toMatch(/(milliseconds|_ms|minutes|kilobytes|_count$|_sum$|_bucket$)/);
    expect(name.endsWith("_total")).toBe(type === "counter");
    if (type === "histogram") expect(name).toMatch(/_(seconds|bytes)$/);
  }
});

test("every metric has help that is a sentence", async () => {
  const help = (await metrics().text()).split("\n").filter((line) => line.startsWith("# HELP "));
  expect(help).toHaveLength(38);
  for (const line of help) expect(line).toMatch(/^# HELP \S+ [A-Z0-9].*\.$/);
});

const ALERTS = fileURLToPath(new URL("../../config/alerts.yml", import.meta.url));

test("every alert of config/alerts.yml uses metrics and labels that exist, and names a remedy", async () => {
  const text = await metrics().text();
  const { groups } = parse(readFileSync(ALERTS, "utf8")) as {
    groups: readonly {
      name: string;
      rules: readonly { expr: string; annotations: Readonly<Record<string, string>> }[];
    }[];
  };
  // Those of setpointd ocpp: test/cli/commands/ocpp.test.ts.
  const rules = groups.filter(({ name }) => name === "setpointd").flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(3);
  const known = new Set((await names()).map((name) => name.split(" ")[0] ?? ""));
  for (const { expr, annotations } of rules) {
    const used = expr.match(/setpointd_\w+/g) ?? [];
    expect(used.length).toBeGreaterThan(0);
    for (const name of used) expect(known).toContain(name.replace(/_bucket$/, ""));
    for (const [, list = ""] of expr.matchAll(/by \(([^)]*)\)/g))
      for (const label of list.split(", "))
        if (!["instance", "job"].includes(label))
          expect(text).toMatch(new RegExp(`${used[0]}\\{.*${label}="`));
    expect(Object.keys(annotations)).toEqual(["summary", "action"]);
  }
});

const DASHBOARD = fileURLToPath(new URL("../../config/dashboards/setpointd.json", import.meta.url));

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description?: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly type: string; readonly definition?: string }[] };
}

/** Labels that a target or its metrics get from Prometheus, and those of a histogram. */
const GIVEN = ["instance", "le"];

/** Metrics with all their labels: a metric that has counted nothing shows none. */
async function labelsByMetric(): Promise<ReadonlyMap<string, readonly string[]>> {
  const counted = metrics();
  counted.delivered({ source: "webhook" }, { ingested: { accepted: 1, repeats: 0, rejected: 0 } });
  counted.published("bay-01", { ok: true }, millis(4));
  counted.discarded("bay-01", "unreadable");
  counted.webhookRefused("signature");
  counted.reported("sent");
  counted.priceFetched({ region: "NO1", kind: "forecast" }, "doubtful");
  counted.committed(
    [
      {
        at: instant(0),
        kind: "outcome",
        charger: null,
        vehicle: null,
        event: null,
        command: null,
        words: "",
        facts: { progress: "followed" },
      },
    ],
    2,
  );
  const text = await counted.text();
  return new Map(
    (await names()).map((line) => {
      const [name = ""] = line.split(" ");
      const rows = text.matchAll(new RegExp(`^${name}(?:_bucket)?\\{(.*)\\}`, "gm"));
      return [name, [...rows].flatMap(([, labels = ""]) => labels.match(/\w+(?==")/g) ?? [])];
    }),
  );
}

test("every query of config/dashboards/setpointd.json uses metrics and labels that exist", async () => {
  const labels = await labelsByMetric();
  const { panels, templating } = JSON.parse(readFileSync(DASHBOARD, "utf8")) as Dashboard;
  const targets = panels.flatMap((panel) => panel.targets ?? []);
  expect(targets.length).toBeGreaterThan(30);
  const queries = templating.list.flatMap(({ definition }) => definition ?? []);
  for (const expr of [...targets.map((target) => target.expr), ...queries]) {
    const used = (expr.match(/setpointd_\w+/g) ?? []).map((name) => name.replace(/_bucket$/, ""));
    expect(used.length).toBeGreaterThan(0);
    for (const name of used) expect([...labels.keys()]).toContain(name);
    const known = [...GIVEN, ...used.flatMap((name) => labels.get(name) ?? [])];
    const listed = [...expr.matchAll(/(?:by|on) \(([\w, ]+)\)|, (\w+)\)$/g)].flatMap(([, list, last]) =>
      (list ?? last ?? "").split(", "),
    );
    const selected = expr.match(/\w+(?==~?")/g) ?? [];
    for (const label of [...listed, ...selected]) expect([expr, ...known]).toContain(label);
  }
  for (const { expr, legendFormat } of targets)
    for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(expr).toMatch(label);
});

test("the dashboard has a panel for each part of a site, and no panel covers another", () => {
  const { panels } = JSON.parse(readFileSync(DASHBOARD, "utf8")) as Dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const shown = JSON.stringify(panels);
  for (const metric of [
    "setpointd_alarms_open",
    "setpointd_events",
    "setpointd_charger_setpoint_watts",
    "setpointd_charger_power_watts",
    "setpointd_verdicts_total",
    "setpointd_dispatch_lateness_seconds",
    "setpointd_publish_duration_seconds",
    "setpointd_commit_duration_seconds",
    "setpointd_partner_up",
    "setpointd_broker_up",
    "setpointd_disk_free_bytes",
  ])
    expect(shown).toContain(metric);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  for (const { type, description } of panels) if (type !== "row") expect(description).toMatch(/\.$/);
});

const PROMTOOL = spawnSync("promtool", ["--version"]).error === undefined;

// With CI set, a machine without promtool fails.
test.skipIf(!PROMTOOL && !process.env["CI"])("promtool accepts config/alerts.yml", () => {
  const { status, stdout, stderr } = spawnSync("promtool", ["check", "rules", ALERTS], { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toContain("SUCCESS");
});

const ALERT_TEST = fileURLToPath(new URL("alerts.promtool.yml", import.meta.url));

test.skipIf(!PROMTOOL && !process.env["CI"])(
  "a gateway that is down raises an alert also while another one sends its metrics",
  () => {
    const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", ALERT_TEST], {
      encoding: "utf8",
    });
    expect({ status, stdout, stderr }).toMatchObject({ status: 0 });
  },
);

test("the name of a charger cannot add a line or a label to the metrics", () => {
  const name = 'bay"\\\n-01';
  const values = new Map([[name, 1]]);
  expect(runToEnd(formatChargerMetrics([{ name: "m", help: "A count.", type: "counter", values }]))).toBe(
    '# HELP m A count.\n# TYPE m counter\nm{charger="bay\\"\\\\\\n-01"} 1\n',
  );
});

test("without a database the metrics of the lease have no value", async () => {
  const registry = new Registry();
  registerLeadGauges(registry, { leads: () => null, leasesLost: () => null, failover: () => null });
  expect(await registry.metrics()).not.toMatch(/^setpointd/m);
});

test("each occurrence is counted in its metric", async () => {
  const counted = metrics();
  counted.delivered({ source: "webhook" }, { ingested: { accepted: 2, repeats: 0, rejected: 1 } });
  counted.published("bay-01", { ok: true }, millis(4));
  counted.published("bay-01", { ok: false, retry: true, reason: "broker down" }, millis(5000));
  counted.startedLate(millis(3));
  counted.priceFetched({ region: "NO1", kind: "forecast" }, "doubtful");
  const row: AuditEntry = {
    at: instant(0),
    kind: "outcome",
    charger: null,
    vehicle: null,
    event: null,
    command: "1-1",
    words: "",
    facts: { progress: "refused" },
  };
  const rejected: AuditEntry = { ...row, kind: "rejected", facts: null };
  counted.committed([row, rejected, { ...rejected, facts: { count: 8980, ids: [] } }], 2);
  const text = await counted.text();
  for (const line of [
    'setpointd_deliveries_total{source="webhook",outcome="accepted"} 2',
    'setpointd_deliveries_total{source="webhook",outcome="rejected"} 1',
    'setpointd_publishes_total{outcome="acknowledged"} 1',
    'setpointd_publishes_total{outcome="failed"} 1',
    "setpointd_publish_duration_seconds_count 1",
    "setpointd_dispatch_lateness_seconds_count 1",
    "setpointd_commit_duration_seconds_count 1",
    'setpointd_verdicts_total{verdict="refused"} 1',
    "setpointd_quarantined_total 8981",
    'setpointd_certificate_expiry_timestamp_seconds{certificate="webhook.tls.cert"} 1800000000',
    'setpointd_chargers{state="offline"} 1',
    'setpointd_price_fetches_total{region="NO1",series="forecast",outcome="doubtful"} 1',
    'setpointd_price_horizon_seconds{region="NO1"} 7200',
    'setpointd_commands{verdict="accepted"} 2',
    "setpointd_broker_up 1",
    "setpointd_partner_up 0",
    "setpointd_sites_led 0",
    "setpointd_lease_lost_total 2",
    "setpointd_failover_seconds 10.2",
    'setpointd_charger_writes_total{charger="bay-01"} 1',
    'setpointd_charger_setpoint_watts{charger="bay-01"} 11040',
    'setpointd_charger_power_watts{charger="bay-01"} 10900',
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  // No token: no age, rather than an age of nothing.
  expect(text).not.toMatch(/^setpointd_token_age_seconds/m);
});
