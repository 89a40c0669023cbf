import type { Database } from "./database.ts";
import { faultOf } from "./database.ts";
import { encodingFault, KNOWN_VERSION, POOLED, type Unfit, versionFault, versionOf } from "./schema.ts";
import { readKeys } from "./siteKeys.ts";

/** Finding about the database. `expected`: the remedy. */
export type Inspected =
  | { readonly ok: true; readonly found: string }
  | { readonly ok: false; readonly found: string; readonly expected: string };

/** True if the database has a state of the site. Nothing is created. */
export async function hasState(database: Database, site: string): Promise<boolean> {
  if ((await versionOf(database)) === null) return false;
  return (await database.query("SELECT 1 FROM site WHERE id = $1", [site])).length > 0;
}

/** Checks the database of a fleet without a change. `isCurrent` false: its sites cannot be read by this version. */
export async function inspectSchema(
  database: Database,
  schema: string,
): Promise<Inspected & { readonly isCurrent: boolean }> {
  try {
    const version = await versionOf(database);
    if (version !== null && version > KNOWN_VERSION) return { ...newer(version), isCurrent: false };
    const unfit = await unfitIn(database, schema);
    if (unfit !== null) return { ok: false, ...unfit, isCurrent: version === KNOWN_VERSION };
    if (version === KNOWN_VERSION) return { ok: true, found: "the database answers", isCurrent: true };
    const found =
      version === null
        ? firstStart(schema)
        : `the database answers; its schema ${version} is raised to ${KNOWN_VERSION} at the next start`;
    return { ok: true, found, isCurrent: false };
  } catch (error) {
    return { ...refused(error), isCurrent: false };
  }
}

/** The first reason why a start on this database fails, or is not to be relied on. Null: none is known. */
async function unfitIn(database: Database, schema: string): Promise<Unfit | null> {
  if (await database.isPooled()) return POOLED;
  const [row] = await database.query(MAY_WRITE, [schema]);
  if (row?.["readonly"] === "on") return { found: READ_ONLY, expected: remedyOf("25006") };
  if (row?.["may"] !== true)
    return { found: `this user may not write in the schema ${schema}`, expected: remedyOf("42501") };
  return (await encodingFault(database)) ?? (await versionFault(database));
}

const READ_ONLY = "the server takes no writes: it is a replica, or writes are switched off for this user";

const MAY_WRITE = `SELECT current_setting('transaction_read_only') AS readonly, CASE
    WHEN to_regclass('site') IS NOT NULL THEN has_table_privilege('site', 'UPDATE')
    WHEN to_regnamespace($1::text) IS NULL THEN has_database_privilege(current_database(), 'CREATE')
    ELSE has_schema_privilege($1::text, 'CREATE') AND has_schema_privilege($1::text, 'USAGE') END AS may`;

/** An error of the database as a finding. A bug is thrown. */
export function refused(error: unknown): Inspected & { readonly ok: false } {
  const { reason, code } = faultOf(error);
  return { ok: false, found: reason, expected: remedyOf(code) };
}

const firstStart = (schema: string): string =>
  `the database answers; the schema ${schema} is made at the first start`;

const newer = (version: number): Inspected & { readonly ok: false } => ({
  ok: false,
  found: `schema ${version}, and this program knows up to ${KNOWN_VERSION}`,
  expected: "the newest version of setpointd on every machine of the site",
});

/** Checks the database of a site without a change. */
export async function inspect(
  database: Database,
  schema: string,
  site: string,
  operatorKeys: readonly Buffer[] | null,
): Promise<Inspected> {
  try {
    const version = await versionOf(database);
    if (version !== null && version > KNOWN_VERSION) return newer(version);
    const unfit = await unfitIn(database, schema);
    if (unfit !== null) return { ok: false, ...unfit };
    if (version === null) return { ok: true, found: firstStart(schema) };
    const [row] = await database.query(LEADER, [site]);
    const { leader = null, epoch = null } = row ?? {};
    if (row === undefined) return { ok: true, found: `the database answers; the site ${site} is new there` };
    const wrong = await wrongOperatorKey(database, site, operatorKeys);
    if (wrong !== null) return { ok: false, found: wrong, expected: RIGHT_KEY };
    return {
      ok: true,
      found:
        leader === null
          ? `the database answers; no process leads the site ${site}`
          : `the database answers; ${String(leader)} leads the site ${site} with epoch ${String(epoch)}`,
    };
  } catch (error) {
    return refused(error);
  }
}

const RIGHT_KEY =
  "in state.postgres.siteKeys the key of the operator that the other process has; during a rotation both, the newest first";

/** Why these keys of the operator do not decrypt the keys of the site. Null: they do, or the keys are files. */
async function wrongOperatorKey(
  database: Database,
  site: string,
  operatorKeys: readonly Buffer[] | null,
): Promise<string | null> {
  const found = operatorKeys === null ? null : await readKeys(database, site, operatorKeys);
  return typeof found === "string" ? found : null;
}

const LEADER =
  "SELECT CASE WHEN lease_until > clock_timestamp() THEN leader END AS leader, epoch FROM site WHERE id = $1";

/** Remedy of a fault with this SQLSTATE or system code. */
export function remedyOf(code: string): string {
  switch (code) {
    case "28P01":
    case "28000":
      return "the user and the password of the address, and a line for them in pg_hba.conf";
    case "3D000":
      return "the name of an existing database after the host of the address";
    case "42501":
    case "3F000":
      return "the owner of the schema as user, or GRANT CREATE ON DATABASE (the schema is missing), GRANT USAGE, CREATE ON SCHEMA (it is there)";
    case "25006":
      return "an address that leads to the primary server, and a user without default_transaction_read_only";
    case "53300":
      return "a higher max_connections, or CONNECTION LIMIT of the user or the database: setpointd run uses up to five, a process of a fleet up to 20";
    case "42P05":
    case "26000":
      return "a pooler that lends its connections for a session: pool_mode = session of PgBouncer";
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
      return "an address that ends with &sslrootcert=FILE, the certificate of the server's authority";
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return "a certificate of the server that is valid now, and a right clock of this machine";
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return "the host of the address as the certificate of the server names it";
    default:
      return "the host and the port of the address, a running server, and a firewall that lets both through";
  }
}
