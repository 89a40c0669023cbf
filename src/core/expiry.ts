import { between, type Instant, iso, type Millis, millis } from "./units.ts";

/** One certificate that the program uses. */
export interface Certificate {
  /** Its key in the configuration, e.g. `webhook.tls.cert`. */
  readonly name: string;
  /** E.g. `CN=gateway`; of several in one file that of the first to end. */
  readonly subject: string;
  readonly notAfter: Instant;
}

const HOUR = millis(3_600_000);
const DAY = millis(24 * HOUR);

/** So many days before the end people are told; 0 is the end itself (reference/failures.md F72). */
const STAGES = [0, 3, 14, 30] as const;
export type Stage = (typeof STAGES)[number];

/** The smallest stage that is reached; null: the end is further away than all of them. */
export const stageOf = (notAfter: Instant, now: Instant): Stage | null =>
  STAGES.find((days) => between(now, notAfter) <= days * DAY) ?? null;

/** A matter of days: an error, no warning any more. */
export const isUrgent = (stage: Stage): boolean => stage <= 3;

export const stageInWords = (stage: Stage): string => (stage === 0 ? "expired" : `within ${stage} days`);

/** E.g. `certificate webhook.tls.cert (CN=gateway) expires in 12 days, on 2026-12-03T08:00:00.000Z`. */
export function expiryInWords({ name, subject, notAfter }: Certificate, now: Instant): string {
  const left = between(now, notAfter);
  const when = left > 0 ? `expires in ${inWords(left)}` : `expired ${inWords(between(notAfter, now))} ago`;
  return `certificate ${name} (${subject}) ${when}, on ${iso(notAfter)}`;
}

const inWords = (span: Millis): string =>
  span >= 2 * DAY ? `${Math.floor(span / DAY)} days` : `${Math.floor(span / HOUR)} h`;

/** The stage that was last told, by name and end: a renewed certificate starts over. */
export type Told = ReadonlyMap<string, Stage>;

export interface Expiring {
  readonly certificate: Certificate;
  readonly stage: Stage;
}

/** The certificates that have come to a stage which was not told of them yet. */
export function newlyExpiring(
  told: Told,
  certificates: readonly Certificate[],
  now: Instant,
): { readonly told: Told; readonly tell: readonly Expiring[] } {
  const next = new Map<string, Stage>();
  const tell: Expiring[] = [];
  for (const certificate of certificates) {
    const stage = stageOf(certificate.notAfter, now);
    if (stage === null) continue;
    const key = `${certificate.name} ${certificate.notAfter}`;
    const before = told.get(key);
    // A clock that is set back tells nothing anew.
    const isNews = before === undefined || stage < before;
    if (isNews) tell.push({ certificate, stage });
    next.set(key, isNews ? stage : before);
  }
  return { told: next, tell };
}
