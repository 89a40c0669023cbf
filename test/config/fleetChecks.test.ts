import * as fc from "fast-check";
import { expect, test } from "vitest";
import { crossChecks } from "../../src/config/checks.ts";
import { configFile } from "../../src/config/schema.ts";
import { least, mistakesIn, theMistake } from "../support/aConfiguration.ts";

const charger = (id: string, over: object = {}) => ({ id, current: { max: 32 }, ...over });

test("chargers, vehicles and identities are unique, whatever the case of an identity", () => {
  expect(mistakesIn({ chargers: [charger("a"), charger("a")] })).toEqual([
    'chargers[1].id: "a", which chargers[0].id has too',
  ]);
  expect(mistakesIn({ vehicles: [{ id: "v" }, { id: "v" }] })).toEqual([
    'vehicles[1].id: "v", which vehicles[0].id has too',
  ]);
  expect(
    mistakesIn({
      vehicles: [
        { id: "v", identities: [{ mac: "AA" }] },
        { id: "w", identities: [{ MAC: "aa" }] },
      ],
    }),
  ).toEqual(['vehicles[1].identities[0]: "mac aa", which vehicles[0].identities[0] has too']);
});

test("two spellings of one Unicode id are one vehicle (F67)", () => {
  expect(mistakesIn({ vehicles: [{ id: "caf\u00e9" }, { id: "cafe\u0301" }] })).toHaveLength(1);
});

test("a charger has limits, and its minimum is not above its maximum", () => {
  expect(mistakesIn({ chargers: [{ id: "a" }] })).toEqual(["chargers[0]: a without current and power"]);
  expect(
    mistakesIn({ chargers: [charger("a", { current: { min: 10, max: 8 }, power: { min: 5, max: 3.5 } })] }),
  ).toEqual(["chargers[0].current: min 10 A, max 8 A", "chargers[0].power: min 5 kW, max 3.5 kW"]);
});

test("of many vehicles at chargers that do not exist, a hundred are looked up", () => {
  const chargers = Array.from({ length: 300 }, (_, n) => charger(`bay-${n}`));
  const vehicles = Array.from({ length: 300 }, (_, n) => ({ id: `v${n}`, charger: `Bay-${n}` }));
  const parsed = configFile.parse({ ...least, chargers, vehicles });
  const found = crossChecks(parsed);
  expect(found).toHaveLength(100);
  expect(found.at(-1)).toMatchObject({ path: ["vehicles", 99, "charger"], expected: "did you mean bay-99?" });
});

test("a vehicle is bound to an existing charger", () => {
  expect(theMistake({ chargers: [charger("bay-01")], vehicles: [{ id: "v", charger: "bay-1" }] })).toEqual({
    path: "vehicles[0].charger",
    found: '"bay-1", which is no charger',
    expected: "did you mean bay-01?",
  });
});

test("vehicles share a charger only if identities distinguish all of them", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }), (named) => {
      const vehicles = named.map((has, n) => ({
        id: `v${n}`,
        charger: "bay-01",
        identities: has ? [{ rfid: `r${n}` }] : [],
      }));
      const refused = mistakesIn({ vehicles }).length > 0;
      expect(refused).toBe(named.length > 1 && named.includes(false));
    }),
  );
});
