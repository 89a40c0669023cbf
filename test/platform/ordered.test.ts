import * as fc from "fast-check";
import { expect, test } from "vitest";

import { indexIn, inserted, remove } from "../../src/platform/collections.ts";

interface Numbered {
  readonly at: number;
}
const ascending = (a: Numbered, b: Numbered): number => a.at - b.at;

test("the list stays in order and holds its entries, whatever is added and removed", () => {
  const step = fc.record({ at: fc.nat(5), isRemoved: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let list: Numbered[] = [];
      const kept = new Set<Numbered>();
      for (const { at, isRemoved } of steps) {
        const value = [...kept].find((other) => other.at === at) ?? { at };
        if (isRemoved) expect(remove(list, value, ascending)).toBe(kept.delete(value));
        else {
          const fresh = { at };
          list = inserted(list, fresh, ascending);
          kept.add(fresh);
        }
        expect(list).toEqual(list.toSorted(ascending));
        expect(new Set(list)).toEqual(kept);
        for (const one of kept) expect(list[indexIn(list, one, ascending) ?? -1]).toBe(one);
      }
    }),
  );
});
