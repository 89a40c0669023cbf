import type { Logger } from "pino";

import { firstToEnd } from "./config/certificate.ts";
import type { KeyPair, PemSource } from "./config/pem.ts";
import type { Config } from "./config/schema.ts";
import type { Json } from "./core/audit.ts";
import {
  type Certificate,
  expiryInWords,
  isUrgent,
  newlyExpiring,
  stageInWords,
  stageOf,
  type Told,
} from "./core/expiry.ts";
import { type Instant, iso } from "./core/units.ts";

/** The certificates of one PEM file of the configuration. */
interface Source {
  /** Its key there. */
  readonly name: string;
  /** As the file has them now; where that cannot be used, as it last had them. */
  readonly text: () => string;
  /** Why the file cannot be used as it is now. */
  readonly fault: () => string | null;
}

const WEBHOOK = "webhook.tls.cert";

const CLIENT_CA = "webhook.tls.clientCa";

const sourcesOf = ({ webhook, mqtt, brokers }: Config): readonly Source[] => [
  ...ownOf(WEBHOOK, webhook?.tls ?? null),
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

const certificateIn = (name: string, pem: string): readonly Certificate[] => {
  const ending = firstToEnd(pem);
  return ending === null ? [] : [{ name, ...ending }];
};

/** For `check`: a sentence for each certificate of the configuration that has expired, or does so within 30 days. */
export const expiryWarnings = (config: Config, now: Instant): readonly string[] =>
  sourcesOf(config)
    .flatMap(({ name, text }) => certificateIn(name, text()))
    .filter(({ notAfter }) => stageOf(notAfter, now) !== null)
    .map((certificate) => expiryInWords(certificate, now));

const NOTHING_TO_READ =
  "SIGHUP: no certificate is configured, nothing to read again; anything else needs a restart";

/** Requests that the webhook listener serves. */
interface ServedTls extends KeyPair {
  /** Null: no client certificate is asked for. */
  readonly clientCa: string | null;
}

export interface CertificatePorts {
  readonly now: () => Instant;
  /** Has the webhook listener use another pair for new connections; a text says why it cannot. */
  readonly renew: (tls: ServedTls) => string | null;
  /** Into the record, and from there into the log. */
  readonly note: (words: string, facts: Json) => void;
  readonly log: Logger;
}

/** The certificates that the daemon uses: their ends are watched, and their files are read again on demand (F72). */
export function certificatesInUse(config: Config, { now, renew, note, log }: CertificatePorts) {
  const tls = config.webhook?.tls ?? null;
  const sources = sourcesOf(config);
  const readTls = (pair: PemSource<KeyPair>): ServedTls => ({
    ...pair.current(),
    clientCa: config.webhook?.clientCa?.current() ?? null,
  });
  let served = tls === null ? null : readTls(tls);
  let told: Told = new Map();

  // The listener keeps what it was given; brokers are met with what the files have at each connection.
  const inUse = (): readonly Certificate[] =>
    sources.flatMap(({ name, text }) =>
      certificateIn(name, name === WEBHOOK && served !== null ? served.cert : text()),
    );

  /** Alarms at 30, 14 and 3 days before an end, and at the end: each is raised once. */
  const check = (): void => {
    const expiring = newlyExpiring(told, inUse(), now());
    told = expiring.told;
    for (const { certificate, stage } of expiring.tell) {
      const { name, notAfter } = certificate;
      const level = isUrgent(stage) ? { alarm: true } : { warning: stageInWords(stage) };
      note(expiryInWords(certificate, now()), { certificate: name, notAfter: iso(notAfter), ...level });
    }
  };

  const renewWebhook = (): string | null => {
    if (tls === null) return null;
    const pair = readTls(tls);
    const fault = renew(pair);
    if (fault === null) served = pair;
    return fault;
  };

  const reread = ({ name, text, fault }: Source): void => {
    const isWebhook = name === WEBHOOK || name === CLIENT_CA;
    const reason = fault() ?? (isWebhook ? renewWebhook() : null);
    if (reason !== null) {
      const words = `certificate ${name} was not replaced, the one before stays in use: ${reason}`;
      return note(words, { certificate: name, alarm: true, reason });
    }
    const from = isWebhook ? "new connections use it" : "the next connection to the broker uses it";
    for (const { subject, notAfter } of certificateIn(name, text()))
      note(`certificate ${name} (${subject}) was read again: ${from}`, {
        certificate: name,
        notAfter: iso(notAfter),
      });
  };

  return {
    /** What the webhook listener starts with; null: no TLS. */
    served,
    check,

    /** Reads the files again. A broken one changes nothing, and that is an alarm. */
    reload(): void {
      if (sources.length === 0) log.info(NOTHING_TO_READ);
      sources.forEach(reread);
      check();
    },

    /** For the status page. */
    view: (): Json =>
      inUse().map(({ name, subject, notAfter }) => {
        const stage = stageOf(notAfter, now());
        return {
          certificate: name,
          subject,
          notAfter: iso(notAfter),
          alarm: stage === null ? null : stageInWords(stage),
        };
      }),

    /** By name, in seconds since the epoch. */
    ends: (): Readonly<Record<string, number>> =>
      Object.fromEntries(inUse().map(({ name, notAfter }) => [name, notAfter / 1000])),
  };
}
