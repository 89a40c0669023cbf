import { expect, test } from "vitest";

import { aDepot } from "../support/aDepot.ts";

const bad = (id: string) => ({ ID: id, intervalPeriod: { start: "soon" }, payload: {} });

test("F39: one bad event in a list is on record by its id", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const good = depot.has({ id: "EV-1", start: "08:00" });
  await depot.post([good, bad("EV-2")]);
  expect(depot.audit("rejected")).toEqual([
    expect.stringMatching(/^event EV-2 in a webhook was set aside: \[1\]\.intervalPeriod/),
  ]);
});

test("F12: a body full of rubbish is counted whole, and takes twenty rows of the record and one for the rest", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const body = Array.from({ length: 3000 }, (_, index) => bad(`EV-${index}`));
  expect(await depot.post(body)).toMatchObject({ kind: "taken", taken: { rejected: 3000 } });
  const rows = depot.audit("rejected");
  expect(rows).toHaveLength(21);
  expect(rows[19]).toContain("event EV-19 ");
  expect(rows[20]).toMatch(/^2980 more in the same webhook were set aside, the next: \[20\]\./);
  // The same again is no news, but for what is new in it.
  await depot.post([...body, bad("EV-new")]);
  expect(depot.audit("rejected").slice(21)).toEqual([expect.stringContaining("event EV-new ")]);
});

test("twenty-one bad events are twenty rows and one", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  await depot.post(Array.from({ length: 21 }, (_, index) => bad(`EV-${index}`)));
  expect(depot.audit("rejected").at(-1)).toMatch(/^1 more in the same webhook/);
  expect(depot.audit("rejected")).toHaveLength(21);
});
