import { expect, test } from "vitest";
import { configured, mistakesIn } from "../support/aConfiguration.ts";

test("the smallest configuration is complete", () => {
  expect(configured({})).toMatchObject({
    site: { id: "depot", timezone: "UTC" },
    state: "/etc/setpointd/state",
    webhook: null,
    operator: { listen: { host: "127.0.0.1", port: 8080 }, hosts: [] },
    clock: { maxSkew: 300_000 },
    vehicles: [],
  });
  expect(configured({}).brokers.size).toBe(0);
});

test("printing the configuration shows no secret", () => {
  expect(JSON.stringify(configured({}, { SECRET: "hunter2" }))).not.toContain("hunter2");
});

test("a trial may have short times: an alarm and a stand-in after a second", () => {
  expect(configured({ vtn: { staleAfter: "1s" } })).toMatchObject({ vtn: { staleAfter: 1000 } });
  const postgres = { url: { env: "SECRET" }, lease: "1s" };
  expect(mistakesIn({ state: { postgres } })).not.toContainEqual(expect.stringContaining("lease"));
});
