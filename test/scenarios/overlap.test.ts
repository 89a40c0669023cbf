import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

test("460 events in force for the same 200 vehicles: the next one costs each a row of the usual size", async () => {
  const depot = await aDepot().withVehicles(200).startingAt("08:00").running();
  const asks = (id: string, amperes: number, priority: number) =>
    depot.deliver({ id, start: "07:59", minutes: 600, amperes, priority });
  await asks("EV-FIRST", 10, 100);
  await depot.passes(1_000);
  const alone = depot.rowSizes("decision");
  expect(alone).toHaveLength(200);

  for (let index = 0; index < 460; index += 1) await asks(`EV-${index}`, 12, 1_000 + index);
  expect(depot.rowSizes("decision")).toHaveLength(200);
  await asks("EV-LAST", 9, 1);
  await depot.passes(1_000);
  const crowded = depot.rowSizes("decision").slice(200);
  expect(crowded).toHaveLength(200);
  expect(Math.max(...crowded)).toBeLessThan(Math.max(...alone) + 1_500);
  expect(depot.audit("decision").at(-1)).toMatch(
    /; overrules EV-FIRST, EV-0, EV-1, EV-2, EV-3 and 456 more$/,
  );
});
