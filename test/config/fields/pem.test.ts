import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { firstToEnd, keyFault } from "../../../src/config/fields/pem.ts";
import { Authority } from "../../support/certificates.ts";

const DAY = 86_400_000;
const authority = new Authority();
afterAll(() => authority[Symbol.dispose]());
const read = ({ cert, key }: { readonly cert: string; readonly key: string }) => ({
  cert: readFileSync(cert, "utf8"),
  key: readFileSync(key, "utf8"),
});
const long = read(authority.issue("long", 40));
const short = read(authority.issue("short", 5));

test("F72: a certificate has its end date; a chain has the earliest one", () => {
  const { subject, notAfter } = firstToEnd(long.cert) ?? { subject: "", notAfter: 0 };
  expect(subject).toBe("CN=long");
  expect(Math.abs(notAfter - Date.now() - 40 * DAY)).toBeLessThan(DAY / 2);
  for (const chain of [long.cert + short.cert, short.cert + long.cert, short.key + short.cert + long.cert])
    expect(firstToEnd(chain)?.subject).toBe("CN=short");
});

test.each(["", "not PEM", long.key, long.cert.replace(/\n/g, "").slice(0, 200)])(
  "a text without a certificate has no end date: %#",
  (text) => {
    expect(firstToEnd(text)).toBeNull();
  },
);

test("an unreadable certificate makes the whole text unusable", () => {
  const torn = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  expect(firstToEnd(long.cert + torn)).toBeNull();
});

test("a key is compared with its certificate, and never shown", () => {
  expect(keyFault(long.cert, long.key)).toBeNull();
  expect(keyFault(long.cert, short.key)).toBe("does not belong to the certificate");
  for (const text of ["", "not PEM", long.cert])
    expect(keyFault(long.cert, text)).toBe("holds no private key in PEM, or one that asks for a passphrase");
});
