import { expect, test } from "vitest";
import { mistakesIn, theMistake } from "../support/aConfiguration.ts";

test("a misspelt key suggests the right one", () => {
  expect(theMistake({ vtn: { polEvery: "30s" } })).toEqual({
    path: "vtn.polEvery",
    found: "an unknown key",
    expected:
      "did you mean pollEvery? One of: baseUrl, family, tokenUrl, clientId, clientSecret, scope, pollEvery, staleAfter, prices",
  });
});

test("a misspelt value lists the right ones", () => {
  expect(theMistake({ control: { mode: "drvie" } })).toEqual({
    path: "control.mode",
    found: '"drvie" (text)',
    expected: "one of: drive, observe",
  });
});

test("an unknown profile names the known ones", () => {
  expect(theMistake({ chargers: [{ id: "a", profile: "go-e", current: { max: 32 } }] })).toMatchObject({
    path: "chargers[0].profile",
    expected: "one of: native",
  });
});

test("a number with a unit attached gets a message with the unit", () => {
  expect(theMistake({ chargers: [{ id: "a", current: { max: "32A" } }] })).toEqual({
    path: "chargers[0].current.max",
    found: '"32A" (text)',
    expected: "a number of amperes from 1 to 1000, e.g. 32",
  });
});

test("a mistake inside one kind of authentication is reported there", () => {
  expect(
    mistakesIn({ webhook: { auth: { hmac: { algorithm: "md5", secret: { env: "SECRET" } } } } }),
  ).toEqual(['webhook.auth.hmac.algorithm: "md5" (text)']);
});

test("an unknown kind of authentication lists the known ones, and never shows a secret", () => {
  for (const auth of ["SuperSecretToken", ["hmac"], { bearer: "SuperSecretToken" }]) {
    const mistake = theMistake({ webhook: { auth } });
    expect(JSON.stringify(mistake)).not.toContain("SuperSecretToken");
    expect(mistake.expected).not.toBe("Invalid input");
  }
  expect(theMistake({ webhook: { auth: "SuperSecretToken" } })).toEqual({
    path: "webhook.auth",
    found: "a text (not shown)",
    expected: "none, or exactly one of hmac, standardWebhooks and bearer, as a section with its secret",
  });
});

test.each([
  [
    { control: { atEnd: { current: "10 A" } } },
    "control.atEnd.current",
    '"10 A" (text)',
    "a number of amperes from 1 to 1000, e.g. 10",
  ],
  [
    { control: { releaseRamp: { power: -5 } } },
    "control.releaseRamp.power",
    "-5 (number)",
    "a number of kW from 0.1 to 10000, e.g. 22",
  ],
  [
    { mqtt: { url: "mqtt://127.0.0.1", username: "a", password: { file: 7 } } },
    "mqtt.password.file",
    "7 (number)",
    "a text (a text that looks like a number needs quotes)",
  ],
  [
    { mqtt: { url: "mqtt://127.0.0.1", username: "a", password: [{ env: "planted secret" }] } },
    "mqtt.password[0].env",
    "a text (not shown)",
    "the name of an environment variable, e.g. SETPOINTD_SECRET",
  ],
  [
    { alarms: { notify: [{ webhook: { url: { env: "https://a.example/planted" } } }] } },
    "alarms.notify[0].webhook.url.env",
    "a text (not shown)",
    "the name of an environment variable, e.g. SETPOINTD_SECRET",
  ],
])(
  "a wrong value in one of several forms is reported at its own key: %j",
  (section, path, found, expected) => {
    expect(theMistake(section)).toEqual({ path, found, expected });
  },
);

test("a value that mixes several forms lists them all", () => {
  expect(theMistake({ control: { atEnd: { current: 10, power: 7 } } })).toEqual({
    path: "control.atEnd",
    found: "a section",
    expected: "release, pause, { current: A } or { power: kW }, e.g. { current: 10 }",
  });
});

test("all mistakes are reported at once, whatever the type of the value", () => {
  expect(
    mistakesIn({
      site: { id: 7 },
      state: null,
      operator: [],
      webhook: { trustProxy: "yes" },
      brokers: { "a b": {} },
      control: { vehicleTargetTypes: [] },
      vehicles: { id: "x" },
    }),
  ).toEqual([
    "site.id: 7 (number)",
    "state: nothing",
    "operator: an empty list",
    'webhook.trustProxy: "yes" (text)',
    'brokers["a b"]: a name that cannot be used',
    "control.vehicleTargetTypes: an empty list",
    "vehicles: a section",
  ]);
});
