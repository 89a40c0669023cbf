import { from, lastValueFrom, toArray } from "rxjs";
import { expect, test } from "vitest";

import { batchPerTick } from "../../src/platform/scheduling.ts";
import { aDepot } from "../support/aDepot.ts";

test("what arrives within one turn of the loop is handled together, in order", async () => {
  const turns = await lastValueFrom(from([1, 2, 3]).pipe(batchPerTick(), toArray()));
  expect(turns.filter(({ length }) => length > 0)).toEqual([[1, 2, 3]]);
});

test("a burst of deliveries, one for each vehicle, costs one commit", async () => {
  const depot = await aDepot().withVehicles(9).running();
  const bodies = Array.from({ length: 9 }, (_, index) =>
    depot.has({ id: `EV-${index}`, start: "08:00", vehicles: [`v${index + 1}`] }),
  );
  const before = depot.commits();
  const answers = await depot.postTogether(bodies);
  expect(answers.every(({ kind }) => kind === "taken")).toBe(true);
  expect(depot.commits() - before).toBe(1);
});
