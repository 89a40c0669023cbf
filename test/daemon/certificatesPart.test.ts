import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { firstToEnd, type KeyPair } from "../../src/config/fields/pem.ts";
import { CertificatesInUse, expiryWarnings } from "../../src/daemon/certificates.ts";
import type { Json } from "../../src/domain/audit.ts";
import { type Instant, instant } from "../../src/domain/units.ts";
import { daily } from "../../src/platform/scheduling.ts";
import { configured } from "../support/aConfiguration.ts";
import { Authority } from "../support/certificates.ts";
import { advanceTo, startVirtualTime, virtualNow } from "../support/virtualTime.ts";
import { aLog } from "../vtn/aServer.ts";

const DAY = 86_400_000;
let authority = new Authority();
beforeEach(() => {
  authority = new Authority();
});
afterEach(() => {
  vi.useRealTimers();
  authority[Symbol.dispose]();
});

interface Noted {
  readonly words: string;
  readonly facts: Json;
}

/** A daemon's certificates, with a listener that takes every pair unless told. */
function inUse(
  over: Readonly<Record<string, unknown>>,
  renew: (pair: KeyPair) => string | null = () => null,
) {
  const noted: Noted[] = [];
  const { log, lines } = aLog();
  const note = (words: string, facts: Json) => noted.push({ words, facts });
  const certificates = new CertificatesInUse(configured(over), { now: virtualNow, note, log });
  return {
    certificates,
    reload: () => certificates.reload({ webhook: { renew }, operator: { renew } }),
    noted,
    lines,
  };
}

const endOf = (file: string): Instant => firstToEnd(readFileSync(file, "utf8"))?.notAfter ?? instant(0);

test("F72: over forty days a certificate without renewal is reported at 30, 14 and 3 days and at its end, once each", async () => {
  const { cert, key } = authority.issue("gateway", 40);
  startVirtualTime(new Date().toISOString());
  const { certificates, noted } = inUse({ webhook: { tls: { cert, key } } });
  const ticks = daily(virtualNow).subscribe(() => certificates.check());
  await advanceTo(instant(endOf(cert) + 2 * DAY));
  ticks.unsubscribe();
  expect(noted.map(({ words }) => / (expire\w+ .*?),/.exec(words)?.[1])).toEqual([
    expect.stringMatching(/^expires in (29|30) days$/),
    expect.stringMatching(/^expires in (13|14) days$/),
    expect.stringMatching(/^expires in (2|3) days$/),
    expect.stringMatching(/^expired \d+ (h|min) ago$/),
  ]);
  const level = { certificate: "webhook.tls.cert", notAfter: new Date(endOf(cert)).toISOString() };
  expect(noted.map(({ facts }) => facts)).toEqual([
    { ...level, warning: "within 30 days" },
    { ...level, warning: "within 14 days" },
    { ...level, alarm: true },
    { ...level, alarm: true },
  ]);
});

test("F72: every certificate of the configuration is watched: the listener's, and those of each broker with their authority", () => {
  const tls = { ...authority.issue("gateway", 40) };
  const mqtts = { url: "mqtts://broker.example", tls: { ca: authority.ca, ...tls } };
  const over = { webhook: { tls }, mqtt: mqtts, brokers: { yard: mqtts } };
  const names = [
    "webhook.tls.cert",
    "mqtt.tls.cert",
    "mqtt.tls.ca",
    "brokers.yard.tls.cert",
    "brokers.yard.tls.ca",
  ];
  const { certificates } = inUse(over);
  expect(certificates.view()).toMatchObject(names.map((certificate) => ({ certificate })));
  expect(certificates.view()).toMatchObject([
    { subject: "CN=gateway", notAfter: new Date(endOf(tls.cert)).toISOString(), alarm: null },
    {},
    { subject: "CN=test authority" },
    {},
    {},
  ]);
  expect(certificates.ends()["mqtt.tls.ca"]).toBe(endOf(authority.ca) / 1000);
  expect(expiryWarnings(configured(over), instant(endOf(tls.cert) - 20 * DAY))).toEqual(
    names.map((name) => expect.stringContaining(`certificate ${name} (CN=`)),
  );
});

test("F72: SIGHUP hands the renewed pair to the listener, and what is watched is what it serves", () => {
  const files = authority.issue("gateway", 5);
  const renewed: KeyPair[] = [];
  const { certificates, reload, noted } = inUse({ webhook: { tls: files } }, (pair) => {
    renewed.push(pair);
    return null;
  });
  certificates.check();
  authority.issue("gateway", 50);
  // Not before it is asked to: until then the old one is served.
  expect(certificates.view()).toMatchObject([{ alarm: "within 14 days" }]);
  reload();
  expect(renewed.map(({ cert }) => cert)).toEqual([readFileSync(files.cert, "utf8").trimEnd()]);
  expect(certificates.view()).toMatchObject([{ alarm: null }]);
  expect(noted.slice(1)).toEqual([
    {
      words: "certificate webhook.tls.cert (CN=gateway) was read again: new connections use it",
      facts: { certificate: "webhook.tls.cert", notAfter: new Date(endOf(files.cert)).toISOString() },
    },
  ]);
});

test("F72: a broken file, and a pair that the listener refuses, are alarms that name the file, and change nothing", () => {
  const files = authority.issue("gateway", 50);
  let refused: string | null = null;
  const { certificates, reload, noted } = inUse({ webhook: { tls: files } }, () => refused);
  const before = certificates.ends();
  refused = "the listener cannot";
  authority.issue("gateway", 60);
  reload();
  writeFileSync(files.cert, "half a certifi");
  reload();
  expect(certificates.ends()).toEqual(before);
  expect(noted).toMatchObject([
    { words: expect.stringContaining("the one before stays in use: the listener cannot") },
    { words: expect.stringContaining(`${files.cert}, which holds no certificate`), facts: { alarm: true } },
  ]);
});

test("a broker's certificates are read at the next connection, and the answer to SIGHUP mentions that", () => {
  const mqtt = {
    url: "mqtts://broker.example",
    tls: { ca: authority.ca, ...authority.issue("gateway", 50) },
  };
  const { reload, noted } = inUse({ mqtt });
  reload();
  expect(noted.map(({ words }) => words).slice(0, 2)).toEqual([
    "certificate mqtt.tls.cert (CN=gateway) was read again: the next connection to the broker uses it",
    "certificate mqtt.tls.ca (CN=test authority) was read again: the next connection to the broker uses it",
  ]);
});

test("without a certificate the answer to SIGHUP mentions that, and no row is recorded", () => {
  const { certificates, reload, noted, lines } = inUse({ webhook: {} });
  reload();
  expect(lines.join("")).toContain("nothing to read again");
  expect(noted).toEqual([]);
  expect([certificates.view(), certificates.ends(), certificates.served]).toEqual([[], {}, null]);
});
