import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { get } from "../api.ts";
import type { Charger, Report } from "../apiAnswers.ts";
import { chargerState, followState, type Shown } from "../derive.ts";
import { amps, dayOf, exactTime, setpointText, span } from "../format.ts";
import { ModePanel } from "../mode.tsx";
import { Age, HeadRow, Section, State, Title } from "../parts.tsx";
import { chargers, now, site, status, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.system;

const good = (word: string): Shown => ({ word, shape: "dot", tone: "good" });
const bad = (word: string): Shown => ({ word, shape: "cross", tone: "bad" });

/** Ms between two requests for the reports: the stream does not carry them. */
const REPORTS_EVERY = 30_000;
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
  return (
    <>
      <Title>{words.title}</Title>
      <div class="system-parts">
        <ModePanel />
        <Partner />
        <Broker />
        <Disk />
        <Reports />
        <Certificates />
        <Program />
      </div>
      <Chargers />
    </>
  );
}

const Facts = ({ children }: { readonly children: ComponentChildren }) => <dl class="pairs">{children}</dl>;

const Pair = ({ label, children }: { readonly label: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </div>
);

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

function Broker() {
  if (status.value === null) return null;
  const { broker, chargers: counted } = status.value;
  return (
    <Section
      name="system-broker"
      title={words.broker}
      aside={<State shown={broker.connected ? good(words.connected) : bad(words.disconnected)} />}
    >
      <Facts>
        <Pair label={t.strip.chargers}>{t.strip.live(counted.online, counted.total)}</Pair>
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
  return (
    <Section
      name="system-reports"
      title={words.reports}
      aside={<State shown={flagged === 0 ? good(words.waiting(waiting)) : bad(words.flagged(flagged))} />}
    >
      <ul class="plain">
        {list.slice(0, 5).map(({ name, state, summary }) => (
          <li key={name}>
            {name} <small>{[state, summary].filter(Boolean).join(", ")}</small>
          </li>
        ))}
      </ul>
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

function Program() {
  const [current, fixed] = [status.value, site.value];
  if (current === null) return null;
  const started = Date.parse(current.startedAt);
  return (
    <Section name="system-program" title={words.program}>
      <Facts>
        <Pair label={words.version}>{fixed?.version ?? "–"}</Pair>
        <Pair label={words.started}>
          {dayOf(zone.value, started)} {exactTime(zone.value, started)} ({span(now.value - started)})
        </Pair>
        <Pair label={words.run}>{current.epoch}</Pair>
      </Facts>
    </Section>
  );
}

function Chargers() {
  const { columns } = words;
  return (
    <Section name="system-chargers" title={words.chargers}>
      {/* A wide table scrolls by itself, with the keyboard as well. */}
      <div class="scroll" tabIndex={0} role="region" aria-labelledby="h-system-chargers">
        <table class="rows rows-plain">
          <HeadRow columns={columns} />
          <tbody>
            {chargers.all.value.map((charger) => (
              <ChargerRow key={charger.charger} charger={charger} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function ChargerRow({ charger }: { readonly charger: Charger }) {
  const { charger: id, heardAt, allowed, measured, writes } = charger;
  return (
    <tr>
      <th scope="row">{id}</th>
      <td>{site.value?.makes[id] ?? "–"}</td>
      <td>
        <State shown={chargerState(charger)} />
      </td>
      <td>
        <Age at={heardAt} never={t.bays.neverHeard} />
      </td>
      <td>{setpointText(allowed)}</td>
      <td>{measured?.limitA == null ? "–" : amps(measured.limitA)}</td>
      <td>
        <State shown={followState(charger)} />
      </td>
      <td>{writes === null ? words.unlimited : words.writes(writes.lastHour, writes.most)}</td>
    </tr>
  );
}
