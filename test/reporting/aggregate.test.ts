import * as fc from "fast-check";
import { expect, test } from "vitest";

import type { Quantity } from "../../src/domain/report.ts";
import { Aggregation, type Aggregated, type Filled } from "../../src/reporting/fill.ts";

const found = (value: number | string | null, changes: Partial<Filled> = {}): Filled => ({
  value,
  quality: value === null ? "MISSING" : "OK",
  causes: [],
  days: null,
  ...changes,
});

function all(quantity: Quantity | null, ...parts: readonly Filled[]): Aggregated {
  const sum = new Aggregation({ quantity });
  for (const part of parts) sum.add(part);
  return sum.result();
}

test("energy, power, setpoints, baselines and their differences are added up", () => {
  for (const quantity of ["usage", "demand", "setpoint", "baseline", "deltaUsage"] as const)
    expect(all(quantity, found(1.5), found(2))).toMatchObject({ value: 3.5, quality: "OK" });
});

test("percentages are averaged", () => {
  expect(all("chargeLevel", found(40), found(80)).value).toBe(60);
});

test("states, registers and unavailable values are never summed", () => {
  const refused = { value: null, quality: "MISSING", causes: ["not meaningful as an aggregate"] };
  expect(all("operatingState", found("ERROR"), found("ERROR"))).toMatchObject(refused);
  expect(all("reading", found(1), found(2))).toMatchObject(refused);
  expect(all(null, found(null))).toMatchObject({ value: null, causes: ["not available here"] });
});

test("the worst quality counts", () => {
  expect(all("dataQuality", found("OK"), found("BAD", { quality: "BAD" }))).toMatchObject({
    value: "BAD",
    quality: "BAD",
  });
  expect(all("usage", found(1, { quality: "ESTIMATED" }), found(1)).quality).toBe("ESTIMATED");
  expect(all("dataQuality").value).toBe("OK");
});

test("a sum has the number of included vehicles and the causes of the others", () => {
  const absent = found(null, { causes: ["vehicle absent"] });
  expect(all("usage", found(1), absent, found(2))).toEqual({
    value: 3,
    quality: "MISSING",
    causes: ["vehicle absent"],
    days: null,
    included: { vehicles: 2, of: 3 },
  });
  expect(all("usage", absent, absent)).toMatchObject({
    value: null,
    causes: ["vehicle absent"],
    included: { vehicles: 0, of: 2 },
  });
});

test("a summed baseline has the fewest days of its parts", () => {
  expect(all("baseline", found(1, { days: 10 }), found(1, { days: 3 })).days).toBe(3);
});

const sum = (values: readonly (number | null)[]) => all("usage", ...values.map((value) => found(value)));

test("an aggregate is the sum of its parts", () => {
  const parts = fc.array(fc.option(fc.integer({ min: -1_000_000, max: 1_000_000 })), { minLength: 1 });
  fc.assert(
    fc.property(parts, parts, (left, right) => {
      const [whole, a, b] = [sum([...left, ...right]), sum(left), sum(right)];
      expect(Number(whole.value)).toBe(Number(a.value) + Number(b.value));
      expect(whole.included.vehicles).toBe(a.included.vehicles + b.included.vehicles);
    }),
  );
});
