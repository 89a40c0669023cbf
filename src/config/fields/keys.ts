import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import type { Finding } from "../explain.ts";
import { exposedSecret, whyUnreadable, type Place } from "./secret.ts";

/** Length of both keys, in bytes. */
const KEY_BYTES = 32;

/** A key that is a systemd credential. */
interface CredentialKey {
  /** Absolute. */
  readonly path: string;
  /** The key at load time. Never log it. */
  readonly read: () => Buffer;
}

/** Keys that are systemd credentials. Null: the key is the file of this name in the state folder. */
export interface KeyCredentials {
  /** Credential `site.key`. */
  readonly site: CredentialKey | null;
  /** Credential `proof.key`. */
  readonly proof: CredentialKey | null;
}

/**
 * Reads `site.key` and `proof.key` from $CREDENTIALS_DIRECTORY, if present. They are read now, because a
 * verb that root runs drops its rights before it opens the state.
 */
export function keyCredentials(
  state: string,
  { env }: Place,
  report: (finding: Finding) => void,
  doubt: (finding: Finding) => void,
): KeyCredentials {
  const directory = env["CREDENTIALS_DIRECTORY"];
  const credential = (name: "site.key" | "proof.key"): CredentialKey | null => {
    const path = directory === undefined || directory === "" ? null : join(directory, name);
    const found = path === null ? null : keyAt(path);
    if (path === null || found === null) return null;
    const key = typeof found === "string" ? Buffer.alloc(KEY_BYTES) : found;
    if (typeof found === "string")
      report({
        path: ["state"],
        found,
        expected: `the ${name} of this site, ${KEY_BYTES} raw bytes, readable by the user that runs setpointd; or no credential of this name`,
      });
    const exposed = exposedSecret(path);
    if (exposed !== null)
      doubt({ path: ["state"], found: exposed, expected: `only for its user: chmod 600 ${path}` });
    const left = join(state, name);
    if (existsSync(left))
      doubt({
        path: ["state"],
        found: `${left} beside the credential ${path}, which is used instead`,
        expected: `no key in the state folder: delete ${left} once setpointd runs with the credential`,
      });
    return { path, read: () => key };
  };
  return { site: credential("site.key"), proof: credential("proof.key") };
}

/** A text: the reason why the key cannot be used. Null: no key. */
function keyAt(path: string): Buffer | string | null {
  try {
    const status = statSync(path);
    // A pipe could block the program.
    if (!status.isFile()) return `${path}, which is not a file`;
    if (status.size !== KEY_BYTES)
      return `${path}, which holds ${status.size} ${status.size === 1 ? "byte" : "bytes"}`;
    return readFileSync(path);
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isMissing ? null : `${path}, which ${whyUnreadable(error)}`;
  }
}
