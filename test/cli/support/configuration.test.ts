import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";

import { stripConfiguration } from "../../../src/cli/support/redact.ts";
import { configFrom } from "../../../src/config/load.ts";

/** A configuration in a folder with secrets, stripped after it was checked. */
function strip(text: string, env: Readonly<Record<string, string>> = {}) {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-bundle-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, "vtn-secret"), "planted-file-secret\n");
  const file = join(directory, "site.yaml");
  writeFileSync(file, text);
  const loaded = configFrom(text, { directory, env });
  const stripped = stripConfiguration(file, { env }, loaded.ok ? [] : loaded.mistakes);
  const secrets = stripped.secrets.map((secret) => secret.toString());
  return { ...stripped, secrets, value: parse(stripped.text) as Record<string, unknown> };
}

const SITE = `
site: { id: depot, timezone: UTC } # planted-comment
vtn:
  baseUrl: https://api.example
  tokenUrl: https://id.example/token
  clientId: depot
  clientSecret: { file: vtn-secret }
mqtt: { url: mqtt://127.0.0.1, username: depot, password: { env: MQTT_PASSWORD } }
chargers: [ { id: bay-01, current: { max: 32 } } ]
vehicles: []
`;

test("a valid configuration keeps all but its comments, and its secrets are known", () => {
  const { text, secrets, value, unread } = strip(SITE, {
    MQTT_PASSWORD: "planted-env-secret",
    HOME: "/root",
  });
  expect(secrets).toEqual(expect.arrayContaining(["planted-file-secret", "planted-env-secret"]));
  expect(secrets).not.toContain("/root");
  expect(text).not.toContain("planted");
  expect(value).toEqual(parse(SITE));
  expect(unread).toEqual([]);
});

test.each([
  ["an inline secret", "clientSecret: { file: vtn-secret }", "clientSecret: planted-secret"],
  ["a secret in place of a file name", "{ file: vtn-secret }", "{ file: planted-secret }"],
  [
    "a secret in place of a file name, beside an unknown key",
    "{ file: vtn-secret }",
    "{ file: planted-secret, x: 1 }",
  ],
  ["a secret in place of a variable, beside an unknown key", "MQTT_PASSWORD }", "planted_secret, x: 1 }"],
  ["a secret in place of a variable", "{ env: MQTT_PASSWORD }", "{ env: planted_secret }"],
  ["a secret under a misspelt key", "password: { env: MQTT_PASSWORD }", "pasword: planted-secret"],
  ["a secret in place of a section", "mqtt: {", "webhook: { auth: planted-secret }\nmqtt: {"],
  [
    "a secret one level too deep",
    "mqtt: {",
    "webhook: { auth: { hmac: { secret: { text: planted-secret } } } }\nmqtt: {",
  ],
  ["a secret as a number", "clientSecret: { file: vtn-secret }", "clientSecret: 123456789"],
  ["a private key as text", "clientId: depot", 'clientId: "-----BEGIN PRIVATE KEY-----planted-secret"'],
  ["a header", "mqtt: {", "headers: { X-Api: planted-secret }\nmqtt: {"],
])("%s is removed from the configuration", (_, from, to) => {
  const { text } = strip(SITE.replace(from, to), { MQTT_PASSWORD: "planted-env-secret" });
  expect(text).not.toMatch(/planted|123456789/);
  expect(text).toContain("[removed]");
  expect(text).toContain("api.example");
});

test("the address of a receiver of alarms keeps its host alone: its path may be the secret", () => {
  const receivers = [
    "{ webhook: { url: https://chat.example/services/planted-secret?x=1 } }",
    "{ alertmanager: { url: http://127.0.0.1:9093 } }",
    "{ webhook: { url: { env: HOOK }, headers: { X-Site: planted-header } } }",
  ];
  const { text, secrets, value } = strip(`${SITE}\nalarms: { notify: [ ${receivers.join(", ")} ] }`, {
    HOOK: "https://chat.example/planted-hook",
    MQTT_PASSWORD: "planted-env-secret",
  });
  expect(text).not.toContain("planted");
  expect(secrets).toContain("/services/planted-secret?x=1");
  expect(value["alarms"]).toEqual({
    notify: [
      { webhook: { url: "https://chat.example/[removed]" } },
      { alertmanager: { url: "http://127.0.0.1:9093" } },
      { webhook: { url: { env: "HOOK" }, headers: { "X-Site": "[removed]" } } },
    ],
  });
});

test("a text that is no YAML is left out as a whole", () => {
  expect(strip("a: [planted-secret").text).toMatch(/^# The configuration is no YAML/);
});

test("a configuration that cannot be read is named", () => {
  const { text } = stripConfiguration("/nowhere/site.yaml", { env: {} }, []);
  expect(text).toBe("# The configuration cannot be read.\n");
});

test("with as many mistakes as are reported, every value is removed", () => {
  const chargers = Array.from({ length: 120 }, (_, index) => `{ id: bay-${index}, planted: planted-secret }`);
  const { text } = strip(SITE.replace(/chargers: .*/, `chargers: [ ${chargers.join(", ")} ]`));
  expect(text).not.toMatch(/planted-secret|api.example/);
});
