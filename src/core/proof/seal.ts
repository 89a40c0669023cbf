import { createHmac } from "node:crypto";

import { chainHash } from "../chain.ts";
import { type Fact, fact, type Printed } from "./fact.ts";
import { canonical } from "./spelling.ts";

/** Before the first line. */
export const START = "0".repeat(64);

/** Binds a fact to the line before it, so that an edited, added or missing line shows, and where. */
export const printOf = (previous: string, fact: Fact): string => chainHash(previous, canonical(fact));

/** Over the last print and so over everything: anyone can compute prints, but only the holder of the site key this. */
export const sealOf = (siteKey: Uint8Array, print: string): string =>
  createHmac("sha256", siteKey).update(`proof\n${print}`).digest("hex");

/** The facts with their prints, and the seal as the last line; one at a time, as there may be very many. */
export function* sealed(facts: Iterable<Fact>, siteKey: Uint8Array): Generator<Printed> {
  let print = START;
  const printed = (fact: Fact): Printed => {
    print = printOf(print, fact);
    return { fact, print };
  };
  for (const each of facts) yield printed(each);
  yield printed(
    fact("seal", "seal", {
      hash: sealOf(siteKey, print),
      words: "HMAC-SHA256 with the site's key over the print of the line above, which stands for all lines",
    }),
  );
}
