import { hardValues, poison } from "./bodies.ts";
import { below, oneOf } from "./chance.ts";

type Mutation = (body: Buffer, at: number, random: () => number) => Buffer;

const LONGEST_CUT = 40;

const spliced = (body: Buffer, at: number, cut: number, put: Buffer | string): Buffer =>
  Buffer.concat([body.subarray(0, at), Buffer.from(put), body.subarray(at + cut)]);

/** After a colon stands a value: what replaces it is often still JSON, and gets past the parser. */
function valueReplaced(body: Buffer, _at: number, random: () => number): Buffer {
  const colons = [...body.keys()].filter((at) => body[at] === 0x3a);
  if (colons.length === 0) return body;
  const colon = oneOf(colons, random);
  const end = body.subarray(colon).findIndex((byte) => byte === 0x2c || byte === 0x7d);
  return spliced(body, colon + 1, end < 0 ? 0 : end - 1, oneOf(hardValues, random));
}

const mutations: readonly Mutation[] = [
  function byteChanged(body, at, random) {
    const changed = Buffer.from(body);
    changed[at] = below(256, random);
    return changed;
  },
  function bitFlipped(body, at, random) {
    const changed = Buffer.from(body);
    changed[at] = (changed[at] ?? 0) ^ (1 << below(8, random));
    return changed;
  },
  (body, at, random) => spliced(body, at, below(LONGEST_CUT, random), ""),
  (body, at, random) => spliced(body, at, 0, oneOf(poison, random)),
  (body, at, random) => spliced(body, at, below(LONGEST_CUT, random), oneOf(poison, random)),
  (body, at, random) => spliced(body, at, 0, body.subarray(at, at + below(LONGEST_CUT * 5, random))),
  (body, at) => body.subarray(0, at),
  function partMoved(body, at, random) {
    const from = below(body.length, random);
    return spliced(body, at, 0, body.subarray(from, from + LONGEST_CUT));
  },
  valueReplaced,
  valueReplaced,
  valueReplaced,
  function deepened(body, _at, random) {
    const levels = below(60, random);
    return Buffer.concat([Buffer.from("[".repeat(levels)), body, Buffer.from("]".repeat(levels))]);
  },
];

/** The body after one to four mutations, one as often as all others together. */
export function mutate(body: Buffer, random: () => number): Buffer {
  let mutated = body;
  for (let count = random() < 0.5 ? 1 : 2 + below(3, random); count > 0; count -= 1)
    mutated = oneOf(mutations, random)(mutated, below(mutated.length, random), random);
  return mutated;
}
