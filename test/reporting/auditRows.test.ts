import { expect, test } from "vitest";

import { triedRow } from "../../src/reporting/auditRows.ts";
import { NOON, reportRecord } from "../store/sqlite/words.ts";

const before = reportRecord("EV-1/0/0");
const wordsOf = (...args: Parameters<typeof triedRow>): readonly string[] =>
  triedRow(...args).flatMap((change) => (change.kind === "audit" ? [change.entry.words] : []));

const sent = (attempts: number) =>
  wordsOf(before, { ...before, state: "sent", status: 201, nextTry: null, attempts }, NOON);

test("a report that needed a second try says so, one that went at once does not", () => {
  expect(sent(1)).toEqual(["report EV-1/0/0 sent: 1 vehicle, 4.2 kWh (HTTP 201)"]);
  expect(sent(2)).toEqual(["report EV-1/0/0 sent: 1 vehicle, 4.2 kWh (HTTP 201, after 2 tries)"]);
});

test("of repeated failures the first and the last are on record", () => {
  const failed = { ...before, attempts: 1, reason: "HTTP 503" };
  expect(wordsOf(before, failed, NOON)).toEqual([
    "report EV-1/0/0 was not delivered: HTTP 503; it will be tried again",
  ]);
  expect(wordsOf(failed, { ...failed, attempts: 2 }, NOON)).toEqual([]);
  expect(wordsOf(failed, { ...failed, attempts: 3, nextTry: null }, NOON)).toEqual([
    "report EV-1/0/0 was not delivered: HTTP 503; it is not tried any more",
  ]);
});
