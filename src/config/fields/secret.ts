import { statSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import * as z from "zod";

import type { Finding, Path } from "../explain.ts";

/** Permission bits of the others, and the right of the group to write: a secret may be the group's to read. */
const OTHERS = 0o027;
/** Of a file that setpointd makes for its owner alone. */
const NOT_THE_OWNER = 0o077;

/** `/etc/x, which others can read (mode 0644)`; null: they cannot, or there is nothing. */
export const exposedSecret = (path: string): string | null => exposed(path, OTHERS & ~0o001);
export const exposedFile = (path: string): string | null => exposed(path, NOT_THE_OWNER);
/** A folder that the group may look into is for `setpointd status`. */
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

/** Where a secret is kept. The text itself never stands in the configuration. */
export type SecretSource =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "env"; readonly name: string };

/** The text as it is now: read again at each use, so that a rotation needs no restart. Never log what it returns. */
export type Secret = () => string;
/** All that are valid now, the newest first. */
export type Secrets = () => readonly string[];

export type Environment = Readonly<Record<string, string | undefined>>;

/** What relative paths are relative to. */
export interface Place {
  readonly env: Environment;
  /** Of the configuration file, absolute. */
  readonly directory: string;
}

/** Why a text cannot be used, as the end of a sentence that does not show it; null: it can. */
type SecretFault = (text: string) => string | null;

/** Turns a source into a function, and reports it once if it cannot be read or used now. */
export type OpenSecret = (source: SecretSource, path: Path, fault: SecretFault) => Secret;

const EXPECTED =
  "{ file: PATH } or { env: NAME }, never the secret itself: put the text into a file that only setpointd can read";

const kept = [
  z
    .strictObject({ file: z.string().min(1) })
    .transform(({ file }): SecretSource => ({ kind: "file", path: file })),
  z
    .strictObject({ env: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/) })
    .transform(({ env }): SecretSource => ({ kind: "env", name: env })),
] as const;

const secret = z.union(kept, { error: EXPECTED });

/** One secret or, while it is being rotated, a list with the newest first. */
export const secrets = z.union(
  [secret.transform((source): readonly SecretSource[] => [source]), z.array(secret).min(1).max(8)],
  { error: `${EXPECTED}; or a list of these, the newest first` },
);

/** A PEM file: its path, or a source as for a secret. */
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

/** Absolute; a relative path is in $CREDENTIALS_DIRECTORY where systemd sets one, else beside the configuration. */
const secretPath = (path: string, place: Place): string =>
  resolve(place.env["CREDENTIALS_DIRECTORY"] || place.directory, path);

/** `found` is what stands there instead, e.g. `/etc/x, which does not exist`; it never shows a text that was read. */
export type Read =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly found: string };

function readFile(path: string): Read {
  try {
    const { size, mode } = statSync(path);
    // A pipe or device could block the whole program or never end.
    if ((mode & 0o170_000) !== 0o100_000) return { ok: false, found: `${path}, which is not a file` };
    if (size > MOST_BYTES) return { ok: false, found: `${path}, which is larger than 64 KiB` };
    return { ok: true, text: readFileSync(path, "utf8") };
  } catch (error) {
    return { ok: false, found: `${path}, which ${whyUnreadable(error)}` };
  }
}

/** The reason of a failed read, as the end of a sentence. */
export function whyUnreadable(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOENT" || code === "ENOTDIR") return "does not exist";
  if (code === "EACCES" || code === "EPERM") return "this user may not read";
  if (code === "EISDIR") return "is a directory";
  return `cannot be read (${code === "" ? String(error) : code})`;
}

/** What a source holds now, and where that is: a path or `$NAME`. */
export function readSource(
  source: SecretSource,
  place: Place,
): { readonly where: string; readonly read: Read } {
  const where = source.kind === "file" ? secretPath(source.path, place) : `$${source.name}`;
  const raw: Read =
    source.kind === "file" ? readFile(where) : { ok: true, text: place.env[source.name] ?? "" };
  if (!raw.ok) return { where, read: raw };
  const text = raw.text.replace(/[\r\n]+$/, "");
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

/** Shorter ones can be guessed. */
const SHORT_BYTES = 16;

/** What works, but protects little: a short text, a file that others can read. */
function doubtsAbout(source: SecretSource, where: string, text: string, path: Path): readonly Finding[] {
  const exposed = source.kind === "file" ? exposedSecret(where) : null;
  const all: Finding[] = [];
  if (exposed !== null) all.push({ path, found: exposed, expected: `only for its user: chmod 600 ${where}` });
  if (Buffer.byteLength(text) < SHORT_BYTES)
    all.push({
      path,
      found: `${where}, which is shorter than ${SHORT_BYTES} bytes`,
      expected: `at least ${SHORT_BYTES} random bytes, e.g. from openssl rand -base64 32`,
    });
  return all;
}

/** Opens secrets for one configuration; what cannot be read is reported as a mistake with its remedy. */
export const secretOpener =
  (place: Place, report: (finding: Finding) => void, doubt: (finding: Finding) => void): OpenSecret =>
  (source, path, fault) => {
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

/** All sources of a list. */
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

/** What we send ourselves can only be one: the first of the list. The others are checked, to be readable later. */
export function openFirst(sources: readonly SecretSource[], path: Path, open: OpenSecret): Secret {
  const all = openAll(sources, path, open);
  return () => all()[0] ?? "";
}
