import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";

import { type Instant, instant } from "../../domain/units.ts";
import type { Finding, Path } from "../explain.ts";
import { exposedSecret, type Place, type Read, readSource, type SecretSource } from "./secret.ts";
import { messageOf } from "../../platform/text.ts";

/** End of a certificate, and its subject. */
export interface Ending {
  /** Subject on one line, e.g. `CN=gateway, O=Depot`. */
  readonly subject: string;
  readonly notAfter: Instant;
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs;

/**
 * The certificate in a PEM text (a chain, several authorities) that expires first. Null: none, or one is
 * unreadable.
 */
export function firstToEnd(pem: string): Ending | null {
  try {
    const [first, ...others] = (pem.match(CERTIFICATES) ?? []).map((part) => new X509Certificate(part));
    if (first === undefined) return null;
    const { subject, validToDate } = others.reduce((a, b) => (b.validToDate < a.validToDate ? b : a), first);
    return { subject: subject.replaceAll("\n", ", "), notAfter: instant(validToDate.getTime()) };
  } catch {
    return null;
  }
}

/**
 * Reason why a text cannot be the private key of a certificate, as the end of a sentence. Null: it can.
 * Shows neither text.
 */
export function keyFault(cert: string, key: string): string | null {
  try {
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
      return "does not belong to the certificate";
  } catch {
    return "holds no private key in PEM, or one that asks for a passphrase";
  }
  try {
    createSecureContext({ cert, key });
    return null;
  } catch (error) {
    // For example a key that is too short for TLS today.
    return `TLS does not accept with the certificate: ${messageOf(error)}`;
  }
}

/** PEM texts that belong together, read again at each use: a renewal needs no restart. */
export interface PemSource<T> {
  /** The present texts. While they cannot be used, the last valid ones. */
  readonly current: () => T;
  /**
   * Reason why the present texts cannot be used, e.g. `/etc/tls/gateway.crt, which does not exist`. Null:
   * they can.
   */
  readonly fault: () => string | null;
}

/** A certificate with its chain, and its private key. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Opens the PEM files of a configuration. A file that cannot be used now is reported once. */
export interface OpenPem {
  readonly certificates: (source: SecretSource, path: Path) => PemSource<string>;
  /** `path`: the section with `cert` and `key`. */
  readonly keyPair: (
    sources: { readonly cert: SecretSource; readonly key: SecretSource },
    path: Path,
  ) => PemSource<KeyPair>;
}

type CertificateCheck<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly faults: readonly Finding[] };

export const pemOpener = (
  place: Place,
  report: (finding: Finding) => void,
  doubt: (finding: Finding) => void,
): OpenPem => ({
  certificates: (source, path) => sourceOf(() => checkCertificates(source, path, place), "", report),
  keyPair: ({ cert, key }, path) => {
    const { where } = readSource(key, place);
    const exposed = key.kind === "file" ? exposedSecret(where) : null;
    if (exposed !== null)
      doubt({
        path: [...path, "key"],
        found: exposed,
        expected: `only for its user: chmod 600 ${where}`,
      });
    return sourceOf(() => checkPair(cert, key, path, place), { cert: "", key: "" }, report);
  },
});

function sourceOf<T>(
  read: () => CertificateCheck<T>,
  none: T,
  report: (finding: Finding) => void,
): PemSource<T> {
  const first = read();
  if (!first.ok) first.faults.forEach(report);
  let last = first.ok ? first.value : none;
  return {
    current: () => {
      const now = read();
      // During a replacement a file may be cut short or not match its key. The last valid text is kept.
      if (now.ok) last = now.value;
      return last;
    },
    fault: () => {
      const now = read();
      return now.ok ? null : now.faults.map(({ found }) => found).join("; ");
    },
  };
}

const CERTIFICATE =
  "certificates in PEM (-----BEGIN CERTIFICATE-----), readable by the user that runs setpointd";
const KEY =
  "the private key of cert in PEM (-----BEGIN PRIVATE KEY-----) without a passphrase, readable by the user that runs setpointd";

function checkCertificates(source: SecretSource, path: Path, place: Place): CertificateCheck<string> {
  const fault = (found: string): CertificateCheck<string> => ({
    ok: false,
    faults: [{ path, found, expected: CERTIFICATE }],
  });
  const { where, read } = readSource(source, place);
  if (!read.ok) return fault(read.found);
  if (firstToEnd(read.text) === null) return fault(`${where}, which holds no certificate that can be read`);
  return { ok: true, value: read.text };
}

function checkPair(
  certSource: SecretSource,
  keySource: SecretSource,
  path: Path,
  place: Place,
): CertificateCheck<KeyPair> {
  const cert = checkCertificates(certSource, [...path, "cert"], place);
  const { where, read: key } = readSource(keySource, place);
  const found = foundInKey(where, key, cert.ok ? cert.value : null);
  const faults: readonly Finding[] = [
    ...(cert.ok ? [] : cert.faults),
    ...(found === null ? [] : [{ path: [...path, "key"], found, expected: KEY }]),
  ];
  return cert.ok && key.ok && faults.length === 0
    ? { ok: true, value: { cert: cert.value, key: key.text } }
    : { ok: false, faults };
}

/** Null `cert`: the key cannot be compared with it. */
function foundInKey(where: string, key: Read, cert: string | null): string | null {
  if (!key.ok) return key.found;
  const fault = cert === null ? null : keyFault(cert, key.text);
  return fault === null ? null : `${where}, which ${fault}`;
}
