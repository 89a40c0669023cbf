import { expect, test } from "vitest";

import { configured, mistakesIn, theMistake, warningsIn } from "../../support/aConfiguration.ts";

const ENV = { HOOK: "https://chat.example/hooks/9f27c1b4d2", TOKEN: "Bearer 0123456789abcdef" };
const notify = (...entries: readonly object[]) => ({ alarms: { notify: entries } });

test("notices have no receiver by default", () => {
  expect(configured({}).receivers).toEqual([]);
});

test("receivers are named by kind and host, and their secrets are read when they are used", () => {
  const { receivers } = configured(
    notify(
      { alertmanager: { url: "http://127.0.0.1:9093" } },
      { webhook: { url: { env: "HOOK" }, headers: { Authorization: { env: "TOKEN" }, "X-Site": "north" } } },
      { webhook: { url: "https://chat.example/other", repeat: "30m", secret: { env: "TOKEN" } } },
    ),
    ENV,
  );
  expect(receivers.map(({ name, repeat }) => [name, repeat])).toEqual([
    ["alertmanager 127.0.0.1:9093", null],
    ["webhook chat.example", 14_400_000],
    ["webhook chat.example 2", 1_800_000],
  ]);
  expect(receivers[1]?.url()).toBe(ENV.HOOK);
  expect(receivers[1]?.headers()).toEqual({ authorization: ENV.TOKEN, "x-site": "north" });
  expect(receivers.map(({ secret }) => secret?.() ?? null)).toEqual([null, null, ENV.TOKEN]);
});

test("each entry has exactly one kind", () => {
  expect(theMistake(notify({}))).toMatchObject({
    path: "alarms.notify[0]",
    expected: "exactly one of alertmanager and webhook",
  });
  const url = "https://alerts.example";
  expect(mistakesIn(notify({ alertmanager: { url }, webhook: { url } }))).toEqual([
    "alarms.notify[0].webhook: alertmanager and webhook",
  ]);
});

test("an address that cannot be used is refused, in the file or in a secret", () => {
  for (const url of ["alerts.example", "ftp://alerts.example", "https://kari:pw@alerts.example"])
    expect(theMistake(notify({ webhook: { url } }))).toMatchObject({
      path: "alarms.notify[0].webhook.url",
      expected: expect.stringContaining("an address that starts with https://"),
    });
  expect(
    mistakesIn(notify({ webhook: { url: { env: "HOOK" } } }), { HOOK: "chat.example/hooks/9f27c1b4d2" }),
  ).toEqual([
    "alarms.notify[0].webhook.url: $HOOK, which is not an address that starts with https:// or http://, without user or password",
  ]);
});

test("a header field is text in ASCII", () => {
  const url = "https://alerts.example";
  for (const value of ["Brønnøysund", 7])
    expect(theMistake(notify({ webhook: { url, headers: { "X-Site": value } } })).expected).toBe(
      "text in ASCII, or { file: PATH } or { env: NAME }",
    );
});

test("a secret in a header field is never text", () => {
  const url = "https://alerts.example";
  expect(theMistake(notify({ webhook: { url, headers: { "X-Api-Key": "hunter2" } } }))).toMatchObject({
    path: "alarms.notify[0].webhook.headers.X-Api-Key",
    expected: expect.stringContaining("never the secret itself"),
  });
});

test("a secret that would travel in the clear is a warning", () => {
  const headers = { Authorization: { env: "TOKEN" } };
  const warned = (url: string) => warningsIn(notify({ alertmanager: { url, headers } }), ENV);
  expect(warned("http://alerts.example:9093")).toEqual([
    "alarms.notify[0].alertmanager.url: http://alerts.example:9093, over which secrets travel in the clear",
  ]);
  expect(warned("http://127.0.0.1:9093")).toEqual([]);
  expect(warningsIn(notify({ alertmanager: { url: "http://alerts.example:9093" } }))).toEqual([]);
  const inSecret = (HOOK: string) => warningsIn(notify({ webhook: { url: { env: "HOOK" } } }), { HOOK });
  expect(inSecret("http://chat.example/hooks/9f27c1b4d2")).toEqual([
    "alarms.notify[0].webhook.url: $HOOK, an address that travels in the clear",
  ]);
  expect(inSecret("https://chat.example/hooks/9f27c1b4d2")).toEqual([]);
  expect(inSecret("http://127.0.0.1/hooks/9f27c1b4d2")).toEqual([]);
});
