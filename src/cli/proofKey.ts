import { createPublicKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";

import { readOrMakeProofKey } from "../store/proofKey.ts";
import { configuration } from "./configuration.ts";
import { complain, type ExitCode, say } from "./outcome.ts";

/** `proof key`: the public key that a partner checks our proofs with, as PEM. The private one is made where missing. */
export function proofKey(named: string | undefined, random: (bytes: number) => Buffer): ExitCode {
  const config = configuration(named);
  if (config === null) return 2;
  const key = readOrMakeProofKey(config.state, config.keys.proof, random);
  if (!key.ok) {
    complain(key.reason);
    return 1;
  }
  say(createPublicKey(key.proofKey).export({ format: "pem", type: "spki" }).trimEnd());
  return 0;
}

/** A public key as `proof key` prints it; a text says why it is none. */
export function readPublicKey(path: string): KeyObject | string {
  try {
    const pem = readFileSync(path);
    // Node would make a public key of a private one, which nobody should have sent.
    if (pem.includes("PRIVATE KEY"))
      return `${path} is a private key: give it to nobody, and verify with the public one`;
    const key = createPublicKey(pem);
    return key.asymmetricKeyType === "ed25519"
      ? key
      : `${path} is not an Ed25519 key, as setpointd proof key prints it`;
  } catch (error) {
    const why =
      error instanceof Error && "syscall" in error
        ? error.message
        : "it is not PEM, as setpointd proof key prints it";
    return `${path} cannot be used as a public key: ${why}`;
  }
}
