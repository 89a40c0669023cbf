import { expect, test } from "vitest";
import { SECRET, configured, mistakesIn } from "../../support/aConfiguration.ts";

test("the partner needs four keys, the rest has defaults", () => {
  const { vtn } = configured({});
  expect(vtn).toMatchObject({
    baseUrl: "https://api.partner.example",
    family: "energy-coordination",
    clientId: "depot",
    scope: "spk.spotprice spk.forecast",
    pollEvery: 60_000,
    staleAfter: 600_000,
  });
  expect(vtn.clientSecret()).toBe(SECRET);
});

test("scope null omits the field", () => {
  expect(configured({ vtn: { scope: null } }).vtn.scope).toBeNull();
});

test.each([
  ["pollEvery", "999ms"],
  ["pollEvery", "2h"],
  ["family", "openadr"],
  ["clientId", ""],
  ["tokenUrl", "/connect/token"],
  ["tariffs", {}],
])("vtn with %s %j is refused", (key, value) => {
  expect(mistakesIn({ vtn: { [key]: value } })).toHaveLength(1);
});
