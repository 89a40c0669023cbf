import { chmodSync, copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Finding } from "../../../src/config/explain.ts";
import { pemOpener } from "../../../src/config/fields/pem.ts";
import { Authority, type Certificate } from "../../support/certificates.ts";

let authority = new Authority();
let files: Certificate = { cert: "", key: "" };
let reported: Finding[] = [];
let doubted: Finding[] = [];
beforeEach(() => {
  authority = new Authority();
  files = authority.issue("gateway");
  reported = [];
  doubted = [];
});
afterEach(() => authority[Symbol.dispose]());

const file = (path: string) => ({ kind: "file", path }) as const;
const opened = () =>
  pemOpener(
    { env: {}, directory: "/" },
    (finding) => reported.push(finding),
    (finding) => doubted.push(finding),
  );
const pair = (cert = files.cert, key = files.key) =>
  opened().keyPair({ cert: file(cert), key: file(key) }, ["webhook", "tls"]);
const mistakes = () => reported.map(({ path, found }) => `${path.join(".")}: ${found}`);

test("F72: a renewed certificate and its key are used at the next read", () => {
  const source = pair();
  const before = source.current();
  expect(before.cert).toBe(readFileSync(files.cert, "utf8").trimEnd());
  authority.issue("gateway");
  expect(source.current().cert).not.toBe(before.cert);
  expect(source.fault()).toBeNull();
  expect(reported).toEqual([]);
});

test("F72: while the present files cannot be used, the last good pair stays in use and the fault names the file", () => {
  const source = pair();
  const before = source.current();
  const other = authority.issue("other");
  copyFileSync(other.cert, files.cert);
  expect(source.fault()).toBe(`${files.key}, which does not belong to the certificate`);
  expect(source.current()).toEqual(before);
  writeFileSync(files.cert, readFileSync(other.cert, "utf8").slice(0, 100));
  expect(source.fault()).toBe(`${files.cert}, which holds no certificate that can be read`);
  rmSync(files.key);
  expect(source.fault()).toContain(`${files.key}, which does not exist`);
  expect(source.current()).toEqual(before);
  copyFileSync(other.cert, files.cert);
  copyFileSync(other.key, files.key);
  expect(source.fault()).toBeNull();
  expect(source.current().cert).not.toBe(before.cert);
});

test("a file that cannot be used from the start is reported with its path in the configuration", () => {
  pair("/nowhere/a.crt", "/nowhere/a.key");
  pair(files.cert, authority.issue("other").key);
  opened().certificates(file(files.key), ["mqtt", "tls", "ca"]);
  expect(mistakes()).toEqual([
    "webhook.tls.cert: /nowhere/a.crt, which does not exist",
    "webhook.tls.key: /nowhere/a.key, which does not exist",
    `webhook.tls.key: ${authority.directory}/other-key.pem, which does not belong to the certificate`,
    `mqtt.tls.ca: ${files.key}, which holds no certificate that can be read`,
  ]);
  for (const { expected } of reported) expect(expected).toContain("in PEM");
});

test("a private key that others can read is warned about", () => {
  chmodSync(files.key, 0o600);
  pair();
  expect(doubted).toEqual([]);
  chmodSync(files.key, 0o644);
  pair();
  expect(doubted).toMatchObject([{ path: ["webhook", "tls", "key"] }]);
  expect(doubted[0]?.found).toBe(`${files.key}, which others can read (mode 0644)`);
});
