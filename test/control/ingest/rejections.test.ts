import { expect, test } from "vitest";

import { Rejections } from "../../../src/control/ingest/quarantine.ts";

test("the same malformed input is recorded once, until it is forgotten", () => {
  const rejections = new Rejections();
  const malformed = { kind: "rejected", id: null, path: "ID", reason: "none", raw: "{}" } as const;
  expect([rejections.isNew(malformed), rejections.isNew({ ...malformed })]).toEqual([true, false]);
  for (let n = 0; n < 100_000; n += 1) rejections.isNew({ ...malformed, raw: String(n) });
  expect(rejections.isNew(malformed)).toBe(true);
  rejections.clear();
  expect(rejections.isNew(malformed)).toBe(true);
});
