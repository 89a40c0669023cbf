import { signal, useComputed } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { get } from "../api.ts";
import type { AuditRow, Report } from "../apiAnswers.ts";
import { brokerOutages } from "../commands.ts";
import { ConfigurationPanel } from "../configuration.tsx";
import { liveChargers, bad, good } from "../derive.ts";
import { useLoaded } from "../effects.ts";
import { span } from "../format.ts";
import { naming } from "../holdWords.ts";
import { ModePanel } from "../mode.tsx";
import { Age, Section, State, Title } from "../parts.tsx";
import { chargers, now, status } from "../store.ts";
import { t } from "../texts.ts";
import { Chargers, Facts, lastDay, Pair, Program, RECORD_EVERY, Tokens } from "./systemParts.tsx";

const words = t.system;

/** Ms between two requests for the reports: the stream does not carry them. */
const REPORTS_EVERY = 30_000;
/** Rows of the record for the figures of the chargers. */
const MOST_ROWS = 3000;
const reports = signal<readonly Report[] | null>(null);

/** S7: what the integrator asks of the gateway and of each charger. */
export function System() {
  useEffect(() => {
    const load = (): void =>
      void get<readonly Report[]>("reports?limit=500").then(
        (list) => (reports.value = list),
        () => undefined,
      );
    load();
    const timer = setInterval(load, REPORTS_EVERY);
    return () => clearInterval(timer);
  }, []);
  // The newest rows of all chargers: their figures and trials.
  const { value: onTrial } = useComputed(
    () => chargers.all.value.filter(({ commissioning }) => commissioning).length,
  );
  const path = `audit?newest=true&limit=${MOST_ROWS}`;
  const record = useLoaded<readonly AuditRow[]>(path, RECORD_EVERY, onTrial).value;
  return (
    <>
      <Title>{words.title}</Title>
      <div class="system-parts">
        <ModePanel />
        <Partner />
        <Broker rows={record} />
        <Disk />
        <Reports />
        <Certificates />
        <Tokens />
        <ConfigurationPanel />
        <Program />
      </div>
      <Chargers rows={record} isCut={(record?.length ?? 0) >= MOST_ROWS} />
    </>
  );
}

function Partner() {
  const current = status.value;
  if (current === null) return null;
  const { partner, webhook } = current;
  const refused = Object.entries(webhook?.refused ?? {});
  return (
    <Section
      name="system-partner"
      title={words.partner}
      aside={<State shown={partner.ok ? good(t.strip.ok) : bad(t.strip.failing)} />}
    >
      <Facts>
        <Pair label={words.answered}>
          <Age at={partner.answeredAt} />
        </Pair>
        {webhook !== null && (
          <Pair label={words.lastWebhook}>
            <Age at={partner.webhookAt} />
          </Pair>
        )}
        <Pair label={words.lastPoll}>
          <Age at={partner.polledAt} />
        </Pair>
        <Pair label={words.failures}>{partner.failures}</Pair>
        <Pair label={words.lastFailure}>{partner.lastFailure ?? "–"}</Pair>
        <Pair label={words.token}>
          {partner.tokenUntil === null ? words.noToken : words.ends(naming.time(partner.tokenUntil))}
        </Pair>
        <Pair label={words.skew}>{partner.skewMs === null ? t.strip.unknown : `${partner.skewMs} ms`}</Pair>
        <Pair label={words.webhook}>
          {webhook === null
            ? words.webhookNone
            : refused.length === 0
              ? words.webhookGood
              : words.webhookRefused(refused.map(([why, { count }]) => `${why} ${count}`).join(", "))}
        </Pair>
      </Facts>
    </Section>
  );
}

function Broker({ rows }: { readonly rows: readonly AuditRow[] | null }) {
  const [recent, outages] = useMemo(() => {
    const day = rows === null ? null : lastDay(rows);
    return [day, day === null ? null : brokerOutages(day.rows)];
  }, [rows]);
  const { value: live } = useComputed(() =>
    status.value === null ? 0 : liveChargers(status.value, chargers.all.value),
  );
  if (status.value === null) return null;
  const { broker, chargers: counted, startedAt } = status.value;
  return (
    <Section
      name="system-broker"
      title={words.broker}
      aside={<State shown={broker.connected ? good(words.connected) : bad(words.disconnected)} />}
    >
      <Facts>
        <Pair label={t.strip.chargers}>{t.strip.live(live, counted.total)}</Pair>
        {outages !== null && broker.connected && (
          <Pair label={words.connectedFor}>
            {span(now.value - Math.max(Date.parse(outages.lastEnd ?? startedAt), Date.parse(startedAt)))}
          </Pair>
        )}
        {outages !== null && recent !== null && (
          <Pair label={words.reconnects(span(now.value - recent.since))}>{outages.count}</Pair>
        )}
        {broker.reason !== null && <Pair label={words.lastFailure}>{broker.reason}</Pair>}
      </Facts>
    </Section>
  );
}

function Disk() {
  const store = status.value?.store;
  if (store === undefined) return null;
  return (
    <Section
      name="system-record"
      title={words.record}
      aside={<State shown={store.failing === null ? good(words.good) : bad(t.strip.failing)} />}
    >
      {store.failing !== null && (
        <p class="problem">{words.failing(store.failing.reason, span(store.failing.forMs))}</p>
      )}
      <Facts>
        <Pair label={words.bytes}>{megabytes(store.bytes)}</Pair>
        {store.free !== null && <Pair label={words.free}>{megabytes(store.free)}</Pair>}
        <Pair label={words.commits}>{store.commits}</Pair>
        <Pair label={words.slowest}>{Math.round(store.longestCommitMs)} ms</Pair>
      </Facts>
    </Section>
  );
}

const megabytes = (bytes: number): string =>
  bytes < 10_000_000
    ? `${(bytes / 1e6).toFixed(1)} MB`
    : bytes < 10_000_000_000
      ? `${Math.round(bytes / 1e6)} MB`
      : `${Math.round(bytes / 1e9)} GB`;

function Reports() {
  const list = reports.value;
  if (list === null) return null;
  const waiting = list.filter(({ state }) => state === "waiting").length;
  const flagged = list.filter(({ state }) => state === "flagged").length;
  const oldest = list
    .flatMap(({ state, composedAt }) => (state === "waiting" && composedAt !== null ? [composedAt] : []))
    .toSorted()[0];
  return (
    <Section
      name="system-reports"
      title={words.reports}
      aside={<State shown={flagged === 0 ? good(words.waiting(waiting)) : bad(words.flagged(flagged))} />}
    >
      {list.length === 0 && <p class="quiet">{words.noReports}</p>}
      {oldest !== undefined && (
        <p class="hint">
          {words.oldestReport} <Age at={oldest} />
        </p>
      )}
      {list.length > 0 && (
        <ul class="plain">
          {list.slice(0, 5).map(({ name, state, summary }) => (
            <li key={name}>
              {name} <small>{[state, summary].filter(Boolean).join(", ")}</small>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function Certificates() {
  const list = status.value?.certificates ?? [];
  return (
    <Section name="system-certificates" title={words.certificates}>
      {list.length === 0 ? (
        <p class="quiet">{words.noCertificates}</p>
      ) : (
        <Facts>
          {list.map(({ certificate, subject, notAfter, alarm }) => (
            <Pair key={`${certificate} ${subject}`} label={`${certificate}, ${subject}`}>
              {alarm === null ? (
                words.ends(new Date(notAfter).toISOString().slice(0, 10))
              ) : (
                <State shown={bad(alarm)} />
              )}
            </Pair>
          ))}
        </Facts>
      )}
    </Section>
  );
}
