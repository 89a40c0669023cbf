import type { Logger } from "pino";

import { firstToEnd, type KeyPair, type PemSource } from "../config/fields/pem.ts";
import type { Config } from "../config/schema.ts";
import { type Json, severityOf } from "../domain/audit.ts";
import { between, type Instant, iso, type Millis, millis, hours, minutes } from "../domain/units.ts";

/** A certificate that the program uses. */
export interface Certificate {
  /** Key in the configuration, e.g. `webhook.tls.cert`. */
  readonly name: string;
  /** E.g. `CN=gateway`; of several in one file that of the first to end. */
  readonly subject: string;
  readonly notAfter: Instant;
}

const MINUTE = minutes(1);
const HOUR = hours(1);
const DAY = millis(24 * HOUR);

/** Days before the end at which a warning is logged. 0 is the end itself. */
const STAGES = [0, 3, 14, 30] as const;
export type Stage = (typeof STAGES)[number];

/** The smallest stage that is reached; null: the end is further away than all of them. */
export const stageOf = (notAfter: Instant, now: Instant): Stage | null =>
  STAGES.find((days) => between(now, notAfter) <= days * DAY) ?? null;

/** A matter of days: an error, no warning any more. */
export const isUrgent = (stage: Stage): boolean => stage <= 3;

export const formatStage = (stage: Stage): string => (stage === 0 ? "expired" : `within ${stage} days`);

/** E.g. `certificate webhook.tls.cert (CN=gateway) expires in 12 days, on 2026-12-03T08:00:00.000Z`. */
export function formatExpiry({ name, subject, notAfter }: Certificate, now: Instant): string {
  const left = between(now, notAfter);
  const when =
    left > 0 ? `expires in ${formatSpan(left)}` : `expired ${formatSpan(between(notAfter, now))} ago`;
  return `certificate ${name} (${subject}) ${when}, on ${iso(notAfter)}`;
}

function formatSpan(span: Millis): string {
  if (span >= 2 * DAY) return `${Math.floor(span / DAY)} days`;
  return span >= HOUR ? `${Math.floor(span / HOUR)} h` : `${Math.floor(span / MINUTE)} min`;
}

/** The stage that was logged last, by name and end. A renewed certificate starts over. */
export type WarnedStages = ReadonlyMap<string, Stage>;

/** A certificate, and the stage of its end. */
export interface Expiring {
  readonly certificate: Certificate;
  readonly stage: Stage;
}

/** The certificates that reached a stage without a log line so far. */
export function newlyExpiring(
  warned: WarnedStages,
  certificates: readonly Certificate[],
  now: Instant,
): { readonly warned: WarnedStages; readonly due: readonly Expiring[] } {
  const next = new Map<string, Stage>();
  const due: Expiring[] = [];
  for (const certificate of certificates) {
    const stage = stageOf(certificate.notAfter, now);
    if (stage === null) continue;
    const key = `${certificate.name} ${certificate.notAfter}`;
    const before = warned.get(key);
    // A clock that is set back repeats no log line.
    const isNews = before === undefined || stage < before;
    if (isNews) due.push({ certificate, stage });
    next.set(key, isNews ? stage : before);
  }
  return { warned: next, due };
}

/** The certificates of one PEM file of the configuration. */
interface Source {
  /** Key in the configuration. */
  readonly name: string;
  /** Certificates as the file has them now; where that cannot be used, as it last had them. */
  readonly text: () => string;
  /** Why the file cannot be used as it is now. */
  readonly fault: () => string | null;
}

const WEBHOOK = "webhook.tls.cert";

const CLIENT_CA = "webhook.tls.clientCa";

const OPERATOR = "operator.tls.cert";

const sourcesOf = ({ webhook, operator, mqtt, brokers }: Config): readonly Source[] => [
  ...ownOf(WEBHOOK, webhook?.tls ?? null),
  ...ownOf(OPERATOR, operator.tls),
  ...authorityOf(CLIENT_CA, webhook?.clientCa ?? null),
  ...ofBroker("mqtt", mqtt),
  ...[...brokers].flatMap(([name, broker]) => ofBroker(`brokers.${name}`, broker)),
];

const ownOf = (name: string, pair: PemSource<KeyPair> | null): readonly Source[] =>
  pair === null ? [] : [{ name, text: () => pair.current().cert, fault: pair.fault }];

const authorityOf = (name: string, ca: PemSource<string> | null): readonly Source[] =>
  ca === null ? [] : [{ name, text: ca.current, fault: ca.fault }];

const ofBroker = (name: string, { tls }: Config["mqtt"]): readonly Source[] => [
  ...ownOf(`${name}.tls.cert`, tls?.own ?? null),
  ...authorityOf(`${name}.tls.ca`, tls?.ca ?? null),
];

/** False: there is nothing to read again. */
export const hasCertificates = (config: Config): boolean => sourcesOf(config).length > 0;

const certificateIn = (name: string, pem: string): readonly Certificate[] => {
  const ending = firstToEnd(pem);
  return ending === null ? [] : [{ name, ...ending }];
};

/** Warnings for `check`: a sentence for each certificate of the configuration that has expired, or does so within 30 days. */
export const expiryWarnings = (config: Config, now: Instant): readonly string[] =>
  sourcesOf(config)
    .flatMap(({ name, text }) => certificateIn(name, text()))
    .filter(({ notAfter }) => stageOf(notAfter, now) !== null)
    .map((certificate) => formatExpiry(certificate, now));

/** Rows for `doctor`: every certificate of the configuration. `fault`: its end is near, or its file cannot be used. */
export const configuredCertificates = (
  config: Config,
  now: Instant,
): readonly { readonly name: string; readonly found: string; readonly fault: string | null }[] =>
  sourcesOf(config).flatMap(({ name, text, fault }) =>
    certificateIn(name, text()).map((certificate) => {
      const found = formatExpiry(certificate, now);
      const unusable = fault();
      return {
        name,
        found,
        fault: unusable ?? (stageOf(certificate.notAfter, now) === null ? null : found),
      };
    }),
  );

const NOTHING_TO_READ =
  "SIGHUP: no certificate is configured, nothing to read again; anything else needs a restart";

/** TLS material of the webhook listener. */
interface ServedTls extends KeyPair {
  /** Null: no client certificate is asked for. */
  readonly clientCa: string | null;
}

/** The listeners. `renew` has one use another pair for new connections. A text: the reason why it cannot. */
interface Renewals {
  /** Null: no webhook is configured. */
  readonly webhook: { readonly renew: (tls: ServedTls) => string | null } | null;
  readonly operator: { readonly renew: (tls: KeyPair) => string | null };
}

interface CertificatePorts {
  readonly now: () => Instant;
  /** Into the record, and from there into the log. */
  readonly note: (message: string, facts: Json) => void;
  readonly log: Logger;
}

/** For a process without a record of its own. */
export const noteInLog =
  (log: Logger): CertificatePorts["note"] =>
  (message, facts) =>
    log[severityOf({ kind: "daemon", facts })](facts, message);

/** The certificates that the daemon uses: their ends are watched, and their files are read again on demand. */
export class CertificatesInUse {
  readonly #config: Pick<Config, "webhook" | "operator">;
  readonly #ports: CertificatePorts;
  readonly #sources: readonly Source[];
  /** Certificate of each listener. Null: it has no TLS. A listener keeps the pair that it was given. */
  #webhookPair: ServedTls | null;
  #operatorPair: KeyPair | null;
  #warned: WarnedStages = new Map();
  /** Result of the last daily check. Reading them costs too much for each round of alarms. */
  #checked: readonly Certificate[] = [];

  constructor(config: Config, ports: CertificatePorts) {
    this.#config = config;
    this.#ports = ports;
    this.#sources = sourcesOf(config);
    this.#webhookPair = webhookTls(config);
    this.#operatorPair = config.operator.tls?.current() ?? null;
  }

  /** TLS material of the webhook listener. Null: no TLS. */
  get served(): ServedTls | null {
    return this.#webhookPair;
  }

  /** Alarms at 30, 14 and 3 days before an end, and at the end: each is raised once. */
  check(): void {
    const { now, note } = this.#ports;
    this.#checked = this.#inUse();
    const { due, warned } = newlyExpiring(this.#warned, this.#checked, now());
    this.#warned = warned;
    for (const { certificate, stage } of due) {
      const { name, notAfter } = certificate;
      const level = isUrgent(stage) ? { alarm: true } : { warning: formatStage(stage) };
      note(formatExpiry(certificate, now()), { certificate: name, notAfter: iso(notAfter), ...level });
    }
  }

  /** Reads the files again. A broken one changes nothing, and that is an alarm. */
  reload(listeners: Renewals): void {
    if (this.#sources.length === 0) this.#ports.log.info(NOTHING_TO_READ);
    for (const source of this.#sources) this.#reread(source, listeners);
    this.check();
  }

  /** Certificates that end within 30 days, as of the last check. */
  expiring(): readonly Expiring[] {
    return this.#checked.flatMap((certificate) => {
      const stage = stageOf(certificate.notAfter, this.#ports.now());
      return stage === null ? [] : [{ certificate, stage }];
    });
  }

  /** For the status page. */
  view(): Json {
    return this.#inUse().map(({ name, subject, notAfter }) => {
      const stage = stageOf(notAfter, this.#ports.now());
      return {
        certificate: name,
        subject,
        notAfter: iso(notAfter),
        alarm: stage === null ? null : formatStage(stage),
      };
    });
  }

  /** By name, in seconds since the epoch. */
  ends(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#inUse().map(({ name, notAfter }) => [name, notAfter / 1000]));
  }

  /** A listener keeps the pair that it was given. A connection to a broker reads the files. */
  #inUse(): readonly Certificate[] {
    return this.#sources.flatMap(({ name, text }) => certificateIn(name, this.#pairOf(name)?.cert ?? text()));
  }

  #pairOf(name: string): KeyPair | null {
    if (name === WEBHOOK) return this.#webhookPair;
    return name === OPERATOR ? this.#operatorPair : null;
  }

  #reread({ name, text, fault }: Source, listeners: Renewals): void {
    const { note } = this.#ports;
    const isListener = name === OPERATOR || name === WEBHOOK || name === CLIENT_CA;
    const reason = fault() ?? this.#renewListener(name, listeners);
    if (reason !== null) {
      const message = `certificate ${name} was not replaced, the one before stays in use: ${reason}`;
      return note(message, { certificate: name, alarm: true, reason });
    }
    const from = isListener ? "new connections use it" : "the next connection to the broker uses it";
    for (const { subject, notAfter } of certificateIn(name, text()))
      note(`certificate ${name} (${subject}) was read again: ${from}`, {
        certificate: name,
        notAfter: iso(notAfter),
      });
  }

  /** Answers why the listener keeps its pair. Null: it uses the new one, or the certificate is of no listener. */
  #renewListener(name: string, { webhook, operator }: Renewals): string | null {
    if (name === OPERATOR) return this.#renewOperator(operator);
    return name === WEBHOOK || name === CLIENT_CA ? this.#renewWebhook(webhook) : null;
  }

  #renewWebhook(listener: Renewals["webhook"]): string | null {
    const pair = webhookTls(this.#config);
    if (pair === null || listener === null) return null;
    const fault = listener.renew(pair);
    if (fault === null) this.#webhookPair = pair;
    return fault;
  }

  #renewOperator(listener: Renewals["operator"]): string | null {
    const pair = this.#config.operator.tls?.current() ?? null;
    if (pair === null) return null;
    const fault = listener.renew(pair);
    if (fault === null) this.#operatorPair = pair;
    return fault;
  }
}

/** TLS material of the webhook listener, from its files. Null: no TLS. */
function webhookTls({ webhook }: Pick<Config, "webhook">): ServedTls | null {
  const tls = webhook?.tls ?? null;
  return tls === null ? null : { ...tls.current(), clientCa: webhook?.clientCa?.current() ?? null };
}
