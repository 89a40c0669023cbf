import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import * as z from "zod";

import type { Millis } from "../../domain/units.ts";
import { codeOf } from "../../platform/text.ts";
import type { Finding } from "../explain.ts";
import { duration } from "../fields/quantities.ts";
import {
  exposedFile,
  exposedFolder,
  openAll,
  type OpenSecret,
  type Place,
  type Secret,
  secret,
  secrets,
} from "../fields/secret.ts";

const SCHEMA = "a name of lower-case letters, digits and _, e.g. setpointd";
const folder = z.string().min(1).prefault("./state");

/** Keys of `state` with a database. */
export const databaseSection = {
  folder: folder.describe(
    "Directory of keys, users and sockets of this process, as state alone names it. Default ./state.",
  ),
  postgres: z.strictObject({
    url: secret.describe(
      "Address of the database with user and password, postgres://USER:PASSWORD@HOST:PORT/DATABASE: { file: PATH } or { env: NAME }. Required.",
    ),
    schema: z
      .string({ error: SCHEMA })
      .regex(/^[a-z_][a-z0-9_]{0,62}$/, { error: SCHEMA })
      .prefault("setpointd")
      .describe("Schema of the tables in that database; it is made at the first start. Default setpointd."),
    siteKeys: secrets
      .optional()
      .describe(
        "Key of the operator that encrypts the site's keys in the database: 32 random bytes in base64, from openssl rand -base64 32. To rotate it: a list, the newest first. Default: site.key and proof.key are files in the folder of each machine.",
      ),
    lease: duration("1s", "5m")
      .prefault("10s")
      .describe(
        "How long a process leads without renewing its lease. A stand-in takes over after it. Default 10s.",
      ),
  }),
};

/** `state`: a folder, or a database that several processes share. */
export const stateSection = z.union(
  [
    folder,
    z.strictObject({
      folder: databaseSection.folder,
      postgres: databaseSection.postgres
        .optional()
        .describe(
          "State in PostgreSQL 15 or later. Several processes on it are one site with stand-ins. Default: in the folder.",
        ),
    }),
  ],
  { error: "a directory, e.g. ./state, or a section with postgres" },
);

/** The database of the state. */
export interface DatabaseConfig {
  readonly url: Secret;
  readonly schema: string;
  /** Null: the keys of the site are files. */
  readonly siteKeys: (() => readonly Buffer[]) | null;
  readonly lease: Millis;
}

/** Null: the state is a folder. */
export function databaseOf(state: z.infer<typeof stateSection>, open: OpenSecret): DatabaseConfig | null {
  if (typeof state === "string" || state.postgres === undefined) return null;
  const { url, schema, siteKeys, lease } = state.postgres;
  const path = ["state", "postgres"];
  const texts = siteKeys === undefined ? null : openAll(siteKeys, [...path, "siteKeys"], open, notAKey);
  return {
    url: open(url, [...path, "url"], notAUrl),
    schema,
    siteKeys: texts === null ? null : () => texts().map((text) => Buffer.from(text, "base64")),
    lease,
  };
}

/** AES-256 has keys of this length. */
const OPERATOR_KEY_BYTES = 32;

const notAKey = (text: string): string | null =>
  Buffer.from(text, "base64").length === OPERATOR_KEY_BYTES && /^[A-Za-z0-9+/]{43}=$/.test(text.trim())
    ? null
    : `which is not ${OPERATOR_KEY_BYTES} bytes in base64, as openssl rand -base64 32 makes them`;

/** The text is never shown: it may hold a password. */
function notAUrl(text: string): string | null {
  if (!/^postgres(ql)?:\/\//.test(text)) return "which has no address that begins with postgres://";
  const url = URL.parse(text);
  if (url === null || url.host.includes(","))
    return "whose address has several hosts, or a character such as / or # in the password without its %2F or %23";
  return url.pathname.length > 1 ? null : "which names no database after the host";
}

/**
 * Absolute path. Relative paths start in $STATE_DIRECTORY (its first entry), otherwise beside the
 * configuration.
 */
export function statePath(path: string, place: Place): string {
  const base = place.env["STATE_DIRECTORY"]?.split(":")[0] || place.directory;
  return resolve(base, path);
}

/** The key and the record. */
const FILES = ["site.key", "setpointd.db"];

const EXPECTED = "a directory of its own for this daemon, which is made if it is missing, e.g. ./state";

/**
 * Socket for `setpointd status`: in $RUNTIME_DIRECTORY, which the daemon's group may enter, otherwise in
 * the state folder.
 */
export const statusSocketPath = (state: string, { env }: Place): string =>
  resolve(env["RUNTIME_DIRECTORY"]?.split(":")[0] || state, "status.sock");

/** As `statePath`. Warns if others can read its files. Reports a file in the place of the directory. */
export function stateDirectory(
  path: string,
  place: Place,
  report: (finding: Finding) => void,
  doubt: (finding: Finding) => void,
): string {
  const state = statePath(path, place);
  const found = obstacle(state);
  if (found !== null) report({ path: ["state"], found, expected: EXPECTED });
  const exposed = [exposedFolder(state), ...FILES.map((name) => exposedFile(join(state, name)))];
  for (const found of exposed)
    if (found !== null)
      doubt({ path: ["state"], found, expected: "for the user that runs setpointd alone: chmod -R go= it" });
  return state;
}

/** `check` may run as another user, so it cannot test whether the daemon may write here. */
function obstacle(state: string): string | null {
  try {
    return statSync(state).isDirectory() ? null : `${state}, which is not a directory`;
  } catch (error) {
    return codeOf(error) === "ENOTDIR" ? `${state}, where a file stands in the way` : null;
  }
}
