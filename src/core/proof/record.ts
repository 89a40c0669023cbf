import { numberOf, type RecordRow, textOf } from "../audit.ts";
import { type Fact, fact } from "./fact.ts";

/** What of the record concerns one event, in order, and what vouches for it. */
export interface EventRecord {
  readonly rows: readonly RecordRow[];
  /** The end of the whole record at the time, sealed with the site's key. */
  readonly head: { readonly seq: number; readonly hash: string; readonly seal: string };
  /** The checkpoint that pruning left in the place of all rows up to `facts.through`; null: nothing was pruned. */
  readonly checkpoint: RecordRow | null;
}

/** The rows themselves, so that anyone can hash each anew, and the sealed end of the chain that they are in. */
export const recordFacts = ({ rows, head, checkpoint }: EventRecord): readonly Fact[] => [
  ...(checkpoint === null ? [] : prunedFacts(checkpoint)),
  ...rows.map(({ seq, hash, previous, text }) => fact("record", "row", { seq, hash, previous, words: text })),
  fact("record", "head", {
    seq: head.seq,
    hash: head.hash,
    words: "the last row of the record when this was made",
  }),
  fact("record", "head seal", { hash: head.seal, words: "HMAC-SHA256 of the head with the site's key" }),
];

const prunedFacts = ({ facts, seq }: RecordRow): readonly Fact[] => [
  fact("record", "pruned", {
    seq,
    hash: textOf(facts, "hash"),
    value: numberOf(facts, "through"),
    words: `rows 1 to ${numberOf(facts, "through")} are no longer kept: if they said anything of this event, it is not here`,
  }),
];
