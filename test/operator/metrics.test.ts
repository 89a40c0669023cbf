import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";

import type { AuditEntry } from "../../src/domain/audit.ts";
import { instant, millis } from "../../src/domain/units.ts";
import { Metrics } from "../../src/operator/metrics.ts";

const metrics = (): Metrics => {
  const shown = new Metrics();
  shown.show({
    dispatches: () => 12,
    chargers: () => ({ online: 2, offline: 1, unreachable: 1, silent: 0 }),
    commands: () => ({ accepted: 2 }),
    brokerUp: () => true,
    partnerUp: () => false,
    partnerSilence: () => 61.5,
    tokenAge: () => null,
    stateBytes: () => 4096,
    certificateEnds: () => ({ "webhook.tls.cert": 1_800_000_000 }),
    priceHorizons: () => ({ NO1: 7200 }),
    alarms: () => [{ labels: { kind: "broker", severity: "critical" }, value: 1 }],
    problems: () => ({ broker: 1, disk: 0 }),
    reportsWaiting: () => 3,
  });
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
    "setpointd_charger_writes_total counter",
    "setpointd_chargers gauge",
    "setpointd_commands gauge",
    "setpointd_commit_duration_seconds histogram",
    "setpointd_deliveries_total counter",
    "setpointd_dispatch_lateness_seconds histogram",
    "setpointd_dispatches gauge",
    "setpointd_loop_stall_seconds gauge",
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
  expect(help).toHaveLength(27);
  for (const line of help) expect(line).toMatch(/^# HELP \S+ [A-Z0-9].*\.$/);
});

const ALERTS = fileURLToPath(new URL("../../config/alerts.yml", import.meta.url));

test("every alert of config/alerts.yml uses metrics and labels that exist, and names a remedy", async () => {
  const text = await metrics().text();
  const { groups } = parse(readFileSync(ALERTS, "utf8")) as {
    groups: readonly { rules: readonly { expr: string; annotations: Readonly<Record<string, string>> }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(3);
  const known = new Set((await names()).map((name) => name.split(" ")[0] ?? ""));
  for (const { expr, annotations } of rules) {
    const used = expr.match(/setpointd_\w+/g) ?? [];
    expect(used.length).toBeGreaterThan(0);
    for (const name of used) expect(known).toContain(name.replace(/_bucket$/, ""));
    for (const [, list = ""] of expr.matchAll(/by \(([^)]*)\)/g))
      for (const label of list.split(", "))
        if (label !== "instance") expect(text).toMatch(new RegExp(`${used[0]}\\{.*${label}="`));
    expect(Object.keys(annotations)).toEqual(["summary", "action"]);
  }
});

test("promtool accepts config/alerts.yml, where it is installed", () => {
  const { error, status, stderr } = spawnSync("promtool", ["check", "rules", ALERTS], { encoding: "utf8" });
  if (error === undefined) expect(stderr).toBe("");
  expect(status ?? 0).toBe(0);
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
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  // No token: no age, rather than an age of nothing.
  expect(text).not.toMatch(/^setpointd_token_age_seconds/m);
});
