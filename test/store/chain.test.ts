import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";

import { followChain, GENESIS, rowHash, type Cells, type ChainRow } from "../../src/store/chain.ts";

function chainOf(words: readonly string[]): ChainRow[] {
  const rows: ChainRow[] = [];
  for (const [index, text] of words.entries()) {
    const cells: Cells = [index + 1, 1000, "decision", "bay-01", null, "EV-7731", null, text];
    const previous = rows.at(-1)?.hash ?? GENESIS.hash;
    rows.push({ cells, facts: '{"a":1}', hash: rowHash(previous, cells, '{"a":1}') });
  }
  return rows;
}

const someWords = fc.array(fc.string(), { minLength: 2, maxLength: 8 });

test("a row's hash can be recomputed by anyone from the record alone", () => {
  const content = JSON.stringify([1, 1000, "decision", "bay-01", null, "EV-7731", null, "16 A", { a: 1 }]);
  const expected = createHash("sha256")
    .update(`${"0".repeat(64)}\n${content}`)
    .digest("hex");
  expect(chainOf(["16 A"])[0]?.hash).toBe(expected);
});

test("an untouched record always verifies, whatever was written", () => {
  fc.assert(
    fc.property(someWords, (words) => {
      const rows = chainOf(words);
      const head = { seq: rows.length, hash: rows.at(-1)?.hash };
      expect(followChain(GENESIS, rows)).toEqual({ ok: true, rows: rows.length, head });
    }),
  );
});

test("an edited row is always found, and named", () => {
  fc.assert(
    fc.property(someWords, fc.nat(), (words, pick) => {
      const rows = chainOf(words);
      const at = pick % rows.length;
      const row = rows[at];
      if (row === undefined) throw new Error("no row");
      const [seq, when, kind, charger, vehicle, event, command, text] = row.cells;
      rows[at] = { ...row, cells: [seq, when, kind, charger, vehicle, event, command, `${text}!`] };
      expect(followChain(GENESIS, rows)).toMatchObject({ ok: false, seq: at + 1 });
    }),
  );
});

test("a removed row is always found, and named", () => {
  fc.assert(
    fc.property(someWords, fc.nat(), (words, pick) => {
      const rows = chainOf(words);
      const at = pick % (rows.length - 1);
      rows.splice(at, 1);
      const found = followChain(GENESIS, rows);
      expect(found).toMatchObject({ ok: false, seq: at + 1 });
      expect(found).toHaveProperty("reason", `row ${at + 1} is missing: the next one is ${at + 2}`);
    }),
  );
});
