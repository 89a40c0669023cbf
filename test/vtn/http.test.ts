import * as fc from "fast-check";
import { expect, test } from "vitest";

import { Body } from "../../src/vtn/http.ts";

const bytes = fc.uint8Array({ maxLength: 12, max: 3 }).map((array) => Buffer.from(array));

function received(expected: Buffer | null, pieces: readonly Buffer[]): Buffer {
  const body = new Body(expected);
  for (const piece of pieces) body.add(piece);
  return body.whole();
}

test("a body is read as it was sent, whatever its framing and however it is cut", () => {
  fc.assert(
    fc.property(fc.option(bytes), fc.array(bytes, { maxLength: 4 }), (expected, pieces) => {
      const body = received(expected, pieces);
      const came = Buffer.concat(pieces);
      expect(body.equals(came)).toBe(true);
      expect(body === expected).toBe(expected !== null && expected.equals(came));
    }),
    { numRuns: 2000 },
  );
});

test("however it is cut, the expected body is that very buffer", () => {
  fc.assert(
    fc.property(bytes, fc.nat(12), fc.nat(12), (expected, one, other) => {
      const cuts = [0, Math.min(one, other), Math.max(one, other), expected.length];
      const pieces = cuts.slice(1).map((end, index) => Buffer.from(expected.subarray(cuts[index], end)));
      expect(received(expected, pieces)).toBe(expected);
    }),
  );
});
