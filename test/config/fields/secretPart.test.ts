import { chmodSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Finding } from "../../../src/config/explain.ts";
import { openAll, openFirst, pem, secretOpener, secrets } from "../../../src/config/fields/secret.ts";
import { theMistake } from "../../support/aConfiguration.ts";

let directory = "";
let reported: Finding[] = [];
let doubted: Finding[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "setpointd-"));
  reported = [];
  doubted = [];
});
afterEach(() => rmSync(directory, { recursive: true }));

const opener = (env: Record<string, string> = {}) =>
  secretOpener(
    { env, directory },
    (finding) => reported.push(finding),
    (finding) => doubted.push(finding),
  );
const put = (name: string, text: string): void => writeFileSync(join(directory, name), text, { mode: 0o600 });

test("a secret is read from a file beside the configuration, without its trailing newline", () => {
  put("token", "abc \r\n");
  expect(opener()({ kind: "file", path: "token" }, [], () => null)()).toBe("abc ");
  expect(reported).toEqual([]);
});

test("a secret that an editor saved with a byte order mark is the secret without it", () => {
  put("token", "\uFEFFa secret of the tests\r\n");
  expect(opener()({ kind: "file", path: "token" }, [], () => null)()).toBe("a secret of the tests");
});

test("systemd's credentials directory has priority over the one of the configuration", () => {
  mkdirSync(join(directory, "credentials"));
  put("token", "beside");
  put("credentials/token", "credential");
  const env = { CREDENTIALS_DIRECTORY: join(directory, "credentials") };
  expect(opener(env)({ kind: "file", path: "token" }, [], () => null)()).toBe("credential");
});

test("a rotated secret is used without a restart, also if the file is missing for a moment (F71)", () => {
  put("token", "old");
  const read = opener()({ kind: "file", path: "token" }, [], () => null);
  rmSync(join(directory, "token"));
  expect(read()).toBe("old");
  put("token", "");
  expect(read()).toBe("old");
  put("token", "new");
  expect(read()).toBe("new");
});

test("each secret of a list is accepted where we verify, and the first is sent where we log in (F71)", () => {
  const list = [
    { kind: "env", name: "NEW" },
    { kind: "env", name: "OLD" },
  ] as const;
  const open = opener({ NEW: "n", OLD: "o" });
  expect(openAll(list, [], open)()).toEqual(["n", "o"]);
  expect(openFirst(list, [], open)()).toBe("n");
});

test.each([
  ["missing", "does not exist"],
  ["empty", "is empty"],
  ["blank", "is empty"],
  ["folder", "is not a file"],
  ["large", "is larger than 64 KiB"],
])("a secret file that is %s is reported with a remedy", (name, why) => {
  put("empty", "");
  put("blank", " \n\n");
  put("large", "x".repeat(70_000));
  mkdirSync(join(directory, "folder"));
  opener()({ kind: "file", path: name }, ["vtn", "clientSecret"], () => null);
  expect(reported).toHaveLength(1);
  expect(reported[0]?.path).toEqual(["vtn", "clientSecret"]);
  expect(reported[0]?.found).toContain(why);
  expect(reported[0]?.expected).toContain(join(directory, name));
});

test("a variable that is not set is reported", () => {
  opener()({ kind: "env", name: "TOKEN" }, [], () => null);
  expect(reported[0]?.found).toBe("$TOKEN, which is empty or not set");
});

test("a secret written as text is explained and never repeated", () => {
  const { path, found, expected } = theMistake({ vtn: { clientSecret: "hunter2" } });
  expect(path).toBe("vtn.clientSecret");
  expect(expected).toMatch(/^\{ file: PATH \} or \{ env: NAME \}, never the secret itself/);
  expect(JSON.stringify([found, expected])).not.toContain("hunter2");
});

test.each([[[]], [{}], [{ file: "" }], [{ file: "a", env: "B" }], [{ env: "A B" }], [3], [null]])(
  "%j is not a secret",
  (value) => {
    expect(secrets.safeParse(value).success).toBe(false);
  },
);

test("a certificate is given by its path, not as text", () => {
  expect(pem.parse("tls/ca.crt")).toEqual({ kind: "file", path: "tls/ca.crt" });
  expect(pem.parse({ env: "CA" })).toEqual({ kind: "env", name: "CA" });
  expect(pem.safeParse("-----BEGIN CERTIFICATE-----").success).toBe(false);
});

test.each([
  [0o600, null],
  [0o400, null],
  [0o640, null],
  [0o644, "which others can read (mode 0644)"],
  [0o660, "which others can change (mode 0660)"],
])("a secret file of mode %o is warned about if others can read or change it", (mode, why) => {
  put("token", "a secret of the tests");
  chmodSync(join(directory, "token"), mode);
  opener()({ kind: "file", path: "token" }, ["vtn", "clientSecret"], () => null);
  expect(doubted.map(({ found }) => found)).toEqual(
    why === null ? [] : [`${join(directory, "token")}, ${why}`],
  );
});

test("raw random bytes are reported, because they would be read as another secret", () => {
  put("token", "a secret of the tests");
  const read = opener()({ kind: "file", path: "token" }, [], () => null);
  writeFileSync(join(directory, "token"), Buffer.from("3f9a00ff81c0d2", "hex"));
  opener()({ kind: "file", path: "token" }, [], () => null);
  expect(reported.map(({ found }) => found)).toEqual([
    `${join(directory, "token")}, which holds bytes that are not UTF-8 text`,
  ]);
  expect(read()).toBe("a secret of the tests");
});

const fault = (text: string) => (text === "bad" ? "which is bad" : null);

test("a text that cannot be used is reported without showing it, and never replaces a valid one", () => {
  put("token", "bad");
  opener()({ kind: "file", path: "token" }, [], fault);
  expect(reported[0]?.found).toBe(`${join(directory, "token")}, which is bad`);
  put("token", "good");
  const read = opener()({ kind: "file", path: "token" }, [], fault);
  put("token", "bad");
  expect(read()).toBe("good");
});
