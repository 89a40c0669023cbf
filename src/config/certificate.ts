import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { type Instant, instant } from "../core/units.ts";

/** When a certificate ends, and whose it is. */
export interface Ending {
  /** Its subject on one line, e.g. `CN=gateway, O=Depot`. */
  readonly subject: string;
  readonly notAfter: Instant;
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs;

/** Of the certificates in a PEM text (a chain, several authorities) the one that ends first; null: none, or one that cannot be read. */
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

/** Why a text cannot be the private key of a certificate, as the end of a sentence; null: it can. Shows nothing of either. */
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
    // Too short a key, say, for what TLS accepts today.
    return `TLS does not accept with the certificate: ${error instanceof Error ? error.message : String(error)}`;
  }
}
