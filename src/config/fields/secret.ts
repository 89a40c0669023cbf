import { statSync, readFileSync, existsSync } from "node:fs";
import { resolve, join } from "node:path";
import * as z from "zod";

import { codeOf } from "../../platform/text.ts";
import type { Finding, Path } from "../explain.ts";
import { isExposed } from "./address.ts";

/** Permissions that a secret must not have: any for others, write for the group. */
const OTHERS = 0o027;
/** Permissions that a file of setpointd must not have: any but the owner's. */
const NOT_THE_OWNER = 0o077;

/** `/etc/x, which others can read (mode 0644)`. Null: they cannot, or the file does not exist. */
export const exposedSecret = (path: string): string | null => exposed(path, OTHERS & ~0o001);
export const exposedFile = (path: string): string | null => exposed(path, NOT_THE_OWNER);
/** The group may enter the folder: `setpointd status` needs it. */
export const exposedFolder = (path: string): string | null => exposed(path, OTHERS);

function exposed(path: string, bits: number): string | null {
  try {
    const mode = statSync(path).mode & 0o777;
    if ((mode & bits) === 0) return null;
    const can = (mode & bits & 0o022) === 0 ? "read" : "change";
    return `${path}, which others can ${can} (mode 0${mode.toString(8)})`;
  } catch {
    return null;
  }
}

/** Source of a secret. The secret itself is never in the configuration. */
export type SecretSource =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "env"; readonly name: string };

/** The present text, read again at each use: a rotation needs no restart. Never log it. */
export type Secret = () => string;
/** All valid secrets, newest first. */
export type Secrets = () => readonly string[];

export type Environment = Readonly<Record<string, string | undefined>>;

/** Base of relative paths. */
export interface Place {
  readonly env: Environment;
  /** Directory of the configuration file, absolute. */
  readonly directory: string;
}

/** Reason why a text cannot be used, as the end of a sentence that does not show it. Null: it can. */
type SecretFault = (text: string) => string | null;

/** Opens a source. A secret that cannot be read or used now is reported once. */
export type OpenSecret = (source: SecretSource, path: Path, fault: SecretFault) => Secret;

const EXPECTED =
  "{ file: PATH } or { env: NAME }, never the secret itself: put the text into a file that only setpointd can read";

const kept = [
  z
    .strictObject({ file: z.string().min(1) })
    .transform(({ file }): SecretSource => ({ kind: "file", path: file })),
  z
    .strictObject({
      env: z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of an environment variable, e.g. SETPOINTD_SECRET"),
    })
    .transform(({ env }): SecretSource => ({ kind: "env", name: env })),
] as const;

export const secret = z.union(kept, { error: EXPECTED });

/** A secret. During a rotation: a list, newest first. */
export const secrets = z.union(
  [secret.transform((source): readonly SecretSource[] => [source]), z.array(secret).min(1).max(8)],
  { error: `${EXPECTED}; or a list of these, the newest first` },
);

/** A PEM file: a path, or a source like a secret. */
export const pem = z.union(
  [
    z
      .string()
      .min(1)
      .refine((text) => !text.includes("-----BEGIN"))
      .transform((path): SecretSource => ({ kind: "file", path })),
    ...kept,
  ],
  { error: "the path of a PEM file, or { file: PATH } or { env: NAME }, not the PEM text itself" },
);

const MOST_BYTES = 64 * 1024;

/**
 * Absolute path. Relative paths start in $CREDENTIALS_DIRECTORY if systemd sets it, otherwise beside the
 * configuration.
 */
function secretPath(path: string, { env, directory }: Place): string {
  const found = resolve(env["CREDENTIALS_DIRECTORY"] || directory, path);
  const [, station] = /^station_(.+)$/.exec(path) ?? [];
  // The unit setpointd-ocpp.service passes the files of this folder as credentials of that name.
  const stations = env["STATIONS_DIRECTORY"];
  return station === undefined || stations === undefined || existsSync(found)
    ? found
    : resolve(stations, station);
}

/** `found`: the present state, e.g. `/etc/x, which does not exist`. It never shows a text. */
export type Read =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly found: string };

function readFile(path: string): Read {
  try {
    const { size, mode } = statSync(path);
    // A pipe or device could block the program.
    if ((mode & 0o170_000) !== 0o100_000) return { ok: false, found: `${path}, which is not a file` };
    if (size > MOST_BYTES) return { ok: false, found: `${path}, which is larger than 64 KiB` };
    return { ok: true, text: readFileSync(path, "utf8") };
  } catch (error) {
    return { ok: false, found: `${path}, which ${whyUnreadable(error)}` };
  }
}

/** Reason of a failed read, as the end of a sentence. */
export function whyUnreadable(error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  if (code === "EACCES" || code === "EPERM") return "this user may not read";
  if (code === "EISDIR") return "is a directory";
  return `cannot be read (${String(code ?? error)})`;
}

/** The present text of a source, and its place: a path or `$NAME`. */
export function readSource(
  source: SecretSource,
  place: Place,
): { readonly where: string; readonly read: Read } {
  const where = source.kind === "file" ? secretPath(source.path, place) : `$${source.name}`;
  const raw: Read =
    source.kind === "file" ? readFile(where) : { ok: true, text: place.env[source.name] ?? "" };
  if (!raw.ok) return { where, read: raw };
  // Some editors begin a file with a byte order mark.
  const text = raw.text.replace(/^\uFEFF/, "").replace(/[\r\n]+$/, "");
  if (text.trim() !== "") return { where, read: { ok: true, text } };
  const found = `${where}, which is empty${source.kind === "env" ? " or not set" : ""}`;
  return { where, read: { ok: false, found } };
}

function remedy(source: SecretSource, place: Place): string {
  if (source.kind === "env")
    return `the secret in the environment variable ${source.name}, or { file: PATH }`;
  const path = secretPath(source.path, place);
  return `a file with nothing else in it at ${path}, readable by the user that runs setpointd (e.g. mode 0600)`;
}

/** Shorter secrets can be guessed. */
const SHORT_BYTES = 16;

/** Weak protection: a short text, an address that is no HTTPS, or a file that others can read. */
function doubtsAbout(source: SecretSource, where: string, text: string, path: Path): readonly Finding[] {
  const exposed = source.kind === "file" ? exposedSecret(where) : null;
  const all: Finding[] = [];
  if (exposed !== null) all.push({ path, found: exposed, expected: `only for its user: chmod 600 ${where}` });
  if (isExposed(text))
    all.push({ path, found: `${where}, an address that travels in the clear`, expected: "https://" });
  if (Buffer.byteLength(text) < SHORT_BYTES)
    all.push({
      path,
      found: `${where}, which is shorter than ${SHORT_BYTES} bytes`,
      expected: `at least ${SHORT_BYTES} random bytes, e.g. from openssl rand -base64 32`,
    });
  return all;
}

/** Opens the secrets of a configuration. An unreadable one is reported as a mistake with its remedy. */
export const secretOpener =
  (place: Place, report: (finding: Finding) => void, doubt: (finding: Finding) => void): OpenSecret =>
  (source, path, faultOf) => {
    // Raw bytes would be another secret: a byte that is no text reads as U+FFFD.
    const fault: SecretFault = (text) =>
      text.includes("\uFFFD") ? "which holds bytes that are not UTF-8 text" : faultOf(text);
    const { where, read: first } = readSource(source, place);
    const wrong = first.ok ? fault(first.text) : null;
    if (!first.ok) report({ path, found: first.found, expected: remedy(source, place) });
    else if (wrong !== null)
      report({ path, found: `${where}, ${wrong}`, expected: "the secret as it was given out" });
    else doubtsAbout(source, where, first.text, path).forEach(doubt);
    let last = first.ok ? first.text : "";
    return () => {
      const now = readSource(source, place).read;
      // A file that is being replaced may be absent, empty or cut for a moment: the last good text stays.
      if (now.ok && fault(now.text) === null) last = now.text;
      return last;
    };
  };

/** Opens all sources of a list. */
export function openAll(
  sources: readonly SecretSource[],
  path: Path,
  open: OpenSecret,
  fault: SecretFault = () => null,
): Secrets {
  const all = sources.map((source, index) =>
    open(source, sources.length === 1 ? path : [...path, index], fault),
  );
  return () => all.map((one) => one());
}

/** Opens a list and uses its first secret, the one to send. The others are checked as well. */
export function openFirst(sources: readonly SecretSource[], path: Path, open: OpenSecret): Secret {
  const all = openAll(sources, path, open);
  return () => all()[0] ?? "";
}

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
    return codeOf(error) === "ENOENT" ? null : `${path}, which ${whyUnreadable(error)}`;
  }
}
