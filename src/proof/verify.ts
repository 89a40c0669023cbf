import type { KeyObject } from "node:crypto";

import { chainHash, headSeal } from "../domain/audit.ts";
import {
  type Fact,
  type Printed,
  isSignedBy,
  printOf,
  sealOf,
  START,
  formatOf,
  LINE_FORMATS,
} from "./file.ts";

/** An edited line of a proof file. Lines count from 1. */
export interface Broken {
  readonly line: number;
  readonly reason: string;
}

/** Row of the record in a proof. */
export interface ShownRow {
  readonly line: number;
  readonly seq: number;
  readonly hash: string;
}

/** Result of checking a proof line by line. */
export interface Verification {
  readonly lines: number;
  readonly broken: readonly Broken[];
  /** Rows for comparison with the record. */
  readonly rows: readonly ShownRow[];
  /** True: there is a signature, by whatever key. */
  readonly isSigned: boolean;
}

/** Keys for checking a proof. Null: not available. */
export interface ProofKeys {
  readonly siteKey: Uint8Array | null;
  readonly publicKey: KeyObject | null;
}

/** A readable line with its number. */
interface Line extends Printed {
  readonly line: number;
}

/**
 * Verifies a proof: spelling and print of each line, and the hash of each row of the record. With the site key also the
 * seals, with the public key also the signature. Without a key, a forger could have computed all prints again.
 */
export function verifyProof(text: string, { siteKey, publicKey }: ProofKeys): Verification {
  const broken: Broken[] = [];
  const lines = read(text, broken);
  const shown = lines.flatMap(({ line, fact }) => rowIn(fact, line));
  const last = lines.at(-1);
  const signature = last?.fact.what === "signature" ? last : null;
  const signed = signature === null ? lines : lines.slice(0, -1);
  const found = [
    ...broken,
    ...unbound(lines),
    ...unhashed(shown),
    ...unsealed(signed, siteKey),
    ...unsigned(signed, signature, publicKey),
  ];
  const known = new Map(found.toReversed().map((each) => [each.line, each]));
  return {
    lines: lines.length,
    broken: [...known.values()].toSorted((a, b) => a.line - b.line),
    rows: shown,
    isSigned: signature !== null,
  };
}

/** `lines`: all lines above the signature. */
function unsigned(
  lines: readonly Line[],
  signature: Line | null,
  publicKey: KeyObject | null,
): readonly Broken[] {
  if (publicKey === null) return [];
  const above = lines.at(-1);
  if (above === undefined || signature === null)
    return [{ line: (above?.line ?? 0) + 1, reason: "is missing: this proof is not signed" }];
  return isSignedBy(publicKey, above.print, signature.fact.hash ?? "")
    ? []
    : [
        {
          line: signature.line,
          reason: "the signature was not made with the private key of this public key",
        },
      ];
}

/** Reads the lines. Another spelling of the same fact counts as edited. */
function read(text: string, broken: Broken[]): readonly Line[] {
  const written = text.split("\n");
  const { heading, write, read } = LINE_FORMATS[formatOf(written)];
  if (written.pop() !== "") broken.push({ line: written.length + 1, reason: "was cut off" });
  const lines: Line[] = [];
  written.forEach((raw, index) => {
    const line = index + 1;
    if (index < heading.length) {
      if (raw !== heading[index])
        broken.push({ line, reason: "was changed: it is not the heading of a proof" });
      return;
    }
    const printed = read(raw);
    const place = { isFirst: index === heading.length, isLast: line === written.length };
    if (printed !== null) lines.push({ ...printed, line });
    if (printed === null || write(printed, place) !== raw)
      broken.push({ line, reason: "was changed: it is not written as a proof is" });
  });
  return lines;
}

/** Checks the chain. After a broken line it continues from that line's own print, so that one edit breaks one line. */
function unbound(lines: readonly Line[]): readonly Broken[] {
  let [before, alternative] = [START, START];
  return lines.flatMap(({ line, fact, print }): readonly Broken[] => {
    const expected = printOf(before, fact);
    const isBound = print === expected || print === printOf(alternative, fact);
    [before, alternative] = [print, expected];
    if (isBound) return [];
    return [{ line, reason: `${nameOf(fact)} was changed, or a line before it was taken out or put in` }];
  });
}

function unhashed(rows: readonly (ShownRow & Texted)[]): readonly Broken[] {
  return rows.flatMap(({ line, seq, hash, previous, text }, index): readonly Broken[] => {
    const before = rows[index - 1];
    if (chainHash(previous, text) !== hash || !text.startsWith(`[${seq},`))
      return [{ line, reason: `row ${seq} does not have its own hash` }];
    const follows = before?.seq !== seq - 1 || before.hash === previous;
    return follows ? [] : [{ line, reason: `row ${seq} does not follow row ${before.seq}` }];
  });
}

function unsealed(lines: readonly Line[], siteKey: Uint8Array | null): readonly Broken[] {
  const [above, end] = [lines.at(-2), lines.at(-1)];
  if (above === undefined || end?.fact.section !== "seal")
    return [{ line: (end?.line ?? 0) + 1, reason: "is missing: a proof ends with its seal" }];
  if (siteKey === null) return [];
  const isOurs = end.fact.hash === sealOf(siteKey, above.print);
  const head = lines.find(({ fact }) => fact.what === "head")?.fact;
  const headIsOurs = lines.some(
    ({ fact }) =>
      fact.what === "head seal" && fact.hash === headSeal(siteKey, head?.seq ?? 0, head?.hash ?? ""),
  );
  if (!isOurs) return [{ line: end.line, reason: "the seal was not made with this site's key" }];
  return headIsOurs
    ? []
    : [{ line: end.line, reason: "the head of the record was not sealed with this key" }];
}

interface Texted {
  readonly previous: string;
  readonly text: string;
}

const rowIn = (
  { what, section, seq, hash, previous, words }: Fact,
  line: number,
): readonly (ShownRow & Texted)[] =>
  section === "record" &&
  what === "row" &&
  seq !== null &&
  hash !== null &&
  previous !== null &&
  words !== null
    ? [{ line, seq, hash, previous, text: words }]
    : [];

const nameOf = ({ section, what, vehicle, seq }: Fact): string =>
  `"${what}" of ${vehicle ?? section}${seq === null ? "" : ` (row ${seq} of the record)`}`;
