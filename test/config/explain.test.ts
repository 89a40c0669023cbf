import { expect, test } from "vitest";
import { explain, foundInWords, pathText } from "../../src/config/explain.ts";

test("a mistake is shown with file, line, path, present value and right value", () => {
  const mistake = {
    path: "chargers[0].current.max",
    line: 14,
    column: null,
    found: '"32A" (text)',
    expected: "a number of amperes, e.g. 32",
  };
  expect(explain([mistake, { ...mistake, path: "", line: 3, column: 7 }], "config.yaml")).toBe(
    `config.yaml:14  chargers[0].current.max
  found     "32A" (text)
  expected  a number of amperes, e.g. 32

config.yaml:3:7
  found     "32A" (text)
  expected  a number of amperes, e.g. 32
`,
  );
});

test("paths are written as in code, unusual keys in quotes", () => {
  expect(pathText(["chargers", 2, "current", "max"])).toBe("chargers[2].current.max");
  expect(pathText(["brokers", "a b"])).toBe('brokers["a b"]');
  expect(pathText([])).toBe("");
});

test("a value in the place of a secret is never shown", () => {
  const shown = [
    foundInWords("hunter2", ["mqtt", "password"]),
    foundInWords("hunter2", ["webhook", "auth", "hmac", "secret", 0]),
    foundInWords("-----BEGIN hunter2", ["mqtt", "tls", "ca"]),
    // A secret's own file, named as the configuration.
    foundInWords("hunter2", []),
    foundInWords("hunter2", ["webhook", "auth"]),
    ...["hmac", "bearer", "standardWebhooks"].map((way) => foundInWords("hunter2", ["webhook", "auth", way])),
    ...["hunter2", "a/hunter2", "a@hunter2", "a//hunter2@b", "a:hunter2\n"].flatMap((password) => [
      foundInWords(`mqtt://depot:${password}@10.0.0.1:1883`, ["mqtt", "url"]),
      foundInWords(`depot:${password}@10.0.0.1:1883`, ["mqtt", "url"]),
    ]),
  ];
  expect(shown.join()).not.toContain("hunter2");
});

test("the parts of an address that are no secret are shown", () => {
  expect(foundInWords("mqtt://depot:pa/ss@w0rd@10.0.0.1:1883", ["mqtt", "url"])).toBe(
    '"mqtt://***@10.0.0.1:1883" (text)',
  );
  expect(foundInWords("htp://10.0.0.1/a", ["mqtt", "url"])).toBe('"htp://10.0.0.1/a" (text)');
  expect(foundInWords("bay@1", ["chargers", 0, "id"])).toBe('"bay@1" (text)');
  expect(foundInWords("X Y", ["webhook", "auth", "hmac", "header"])).toBe('"X Y" (text)');
});

test("a very long text is cut", () => {
  expect(foundInWords("x".repeat(10_000), ["site", "id"]).length).toBeLessThan(100);
});
