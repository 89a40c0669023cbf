import { createHmac, createPublicKey, type KeyObject, sign, verify } from "node:crypto";

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

/** What is signed: over everything above, as the seal is, and told apart from whatever else a key may sign. */
const signedText = (print: string): Buffer => Buffer.from(`setpointd proof\n${print}`);

/** Ed25519, hex. Anyone who has the public key can check it, and only the holder of the private one make it. */
const signatureOf = (proofKey: KeyObject, print: string): string =>
  sign(null, signedText(print), proofKey).toString("hex");

export const isSignedBy = (publicKey: KeyObject, print: string, signature: string): boolean =>
  verify(null, signedText(print), publicKey, Buffer.from(signature, "hex"));

/** The public key as it is passed around: base64 of its SPKI form. */
const publicText = (key: KeyObject): string =>
  createPublicKey(key).export({ format: "der", type: "spki" }).toString("base64");

/** The facts with their prints, then the seal and the signature; one at a time, as there may be very many. */
export function* sealed(facts: Iterable<Fact>, siteKey: Uint8Array, proofKey: KeyObject): Generator<Printed> {
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
  yield printed(
    fact("seal", "signature", {
      hash: signatureOf(proofKey, print),
      words: `Ed25519 over the print of the line above; this site's public key should be ${publicText(proofKey)}`,
    }),
  );
}
