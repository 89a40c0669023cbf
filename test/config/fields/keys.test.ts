import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";

import { keyCredentials } from "../../../src/config/fields/secret.ts";

const KEY = Buffer.alloc(32, 7);
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keys-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
});

/** As `/etc/x: found` of what is a mistake, and of what is doubted. */
function keys(env: Readonly<Record<string, string>> = { CREDENTIALS_DIRECTORY: directory }) {
  const mistakes: string[] = [];
  const doubts: string[] = [];
  const found = keyCredentials(
    join(directory, "state"),
    { env, directory: "/etc/setpointd" },
    (finding) => mistakes.push(`${finding.found}; expected ${finding.expected}`),
    (finding) => doubts.push(finding.found),
  );
  return { ...found, mistakes, doubts };
}

test("without a credentials directory, or without a key in it, both keys are files in the state folder", () => {
  for (const env of [{}, { CREDENTIALS_DIRECTORY: "" }, { CREDENTIALS_DIRECTORY: directory }])
    expect(keys(env)).toEqual({ site: null, proof: null, mistakes: [], doubts: [] });
});

test("a credential of 32 raw bytes is the key, as read at load time", () => {
  const path = join(directory, "site.key");
  writeFileSync(path, KEY, { mode: 0o400 });
  const { site, proof, mistakes, doubts } = keys();
  expect([proof, mistakes, doubts]).toEqual([null, [], []]);
  rmSync(path);
  expect([site?.path, site?.read()]).toEqual([path, KEY]);
});

test.for([
  [Buffer.alloc(0), "holds 0 bytes"],
  [Buffer.alloc(1), "holds 1 byte;"],
  [Buffer.alloc(33), "holds 33 bytes"],
] as const)("a credential of another length is a mistake: %s", ([content, found]) => {
  writeFileSync(join(directory, "proof.key"), content, { mode: 0o400 });
  const [mistake = "", ...others] = keys().mistakes;
  expect(others).toEqual([]);
  expect(mistake).toContain(`${directory}/proof.key, which ${found}`);
  expect(mistake).toContain("32 raw bytes");
});

test("a credential that is not a file, or unreachable, is a mistake: no key file may be created instead", () => {
  mkdirSync(join(directory, "site.key"));
  expect(keys().mistakes.join()).toContain("site.key, which is not a file");
  writeFileSync(join(directory, "file"), "");
  const below = keys({ CREDENTIALS_DIRECTORY: join(directory, "file") }).mistakes.join();
  expect(below).toContain("site.key, which does not exist");
});

test("a credential that others can read, and a leftover key file beside it, are warned about", () => {
  const path = join(directory, "site.key");
  writeFileSync(path, KEY);
  chmodSync(path, 0o644);
  mkdirSync(join(directory, "state"));
  writeFileSync(join(directory, "state/site.key"), KEY);
  expect(keys().doubts).toEqual([
    `${path}, which others can read (mode 0644)`,
    `${directory}/state/site.key beside the credential ${path}, which is used instead`,
  ]);
});
