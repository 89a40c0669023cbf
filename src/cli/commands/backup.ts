import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";

import type { StateOfSite } from "../../daemon/offline.ts";
import type { Instant } from "../../domain/units.ts";
import { fileFault, type Fault, refused, isFault } from "../../store/fault.ts";
import { copyFiles, placeCopy, settleCopy } from "../../store/sqlite/backup.ts";
import { readOwn, replaceFile } from "../../store/files.ts";
import { PROOF_KEY, type SiteKey, storedSiteKey } from "../../store/keys.ts";
import { MAX_PAGES, missingStateReason } from "../../store/sqlite/open.ts";
import { siteConfiguration } from "../configuration.ts";
import { askDaemon } from "../daemonClient.ts";
import { type ExitCode, fail, say, type Verb } from "../output.ts";
import { refuseLinks, withState } from "../storedState.ts";

const refuse = (reason: string): ExitCode => fail(1, `no backup was made: ${reason}`);

/** `backup`: copies the stored state into one file, with the site key beside it. A running daemon continues. */
async function backup(named: string | undefined, file: string, now: () => Instant): Promise<ExitCode> {
  // The rights of root are kept: root may write where the owner of the state may not.
  const config = siteConfiguration(named)?.config ?? null;
  if (config === null) return 2;
  const refusal = refuseLinks(config.state);
  if (refusal !== null) return refuse(refusal);
  const path = resolve(file);
  let draft: string | null = null;
  const tidy = (): void => {
    if (draft !== null) rmSync(draft, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));
  process.once("exit", tidy);
  try {
    if (config.database !== null)
      return refuse("the state is in PostgreSQL: copy it with pg_dump, or as docs/two-gateways.md says");
    const missing = missingStateReason(config.state);
    if (missing !== null) return refuse(missing);
    const key = storedSiteKey(config.state, config.keys.site);
    if (!key.ok) return refuse(key.reason);
    const { siteKey, origin } = key;
    const folder = realpathSync(dirname(path));
    if (`${folder}${sep}`.startsWith(`${realpathSync(config.state)}${sep}`))
      return refuse(`${path} is in the folder of the state itself`);
    for (const existing of [path, `${path}.key`, `${path}.proof-key`].filter((each) => existsSync(each)))
      return refuse(`${existing} exists already: name another file, or move it away`);
    draft = mkdtempSync(`${path}.`);
    const fault = await copyStored(config, draft);
    const place = { directory: draft, siteKey, origin, maxPages: MAX_PAGES, older: "refuse" } as const;
    const copied = fault ?? settleCopy(place, now());
    if (isFault(copied)) return refuse(copied.reason);
    placeCopy(draft, path);
    const keys = [keepSiteKey(path, key), keepProofKey(path, config)];
    say(`${path}: ${copied.rows} rows of the record, ${copied.events} events`);
    for (const line of keys) if (line !== null) say(line);
    return 0;
  } catch (error) {
    return refuse(fileFault(error).reason);
  } finally {
    tidy();
  }
}

/** Copies the site key. A key from a credential is not copied in clear text. */
function keepSiteKey(path: string, { siteKey, origin }: SiteKey & { readonly ok: true }): string {
  if (origin.isCredential)
    return `site.key is not in this backup: it is the credential ${origin.path}. Keep a copy of that key elsewhere: both are needed to restore`;
  replaceFile(`${path}.key`, siteKey);
  return `${path}.key: the site key, a secret; both are needed to restore`;
}

/** `keepSiteKey` for the proof key. Null: there is none yet. */
function keepProofKey(path: string, { state, keys }: StateOfSite): string | null {
  if (keys.proof !== null) return `proof.key is not in this backup: it is the credential ${keys.proof.path}`;
  const proofKey = join(state, PROOF_KEY);
  if (!existsSync(proofKey)) return null;
  replaceFile(`${path}.proof-key`, readOwn(proofKey));
  return `${path}.proof-key: signs proofs, a secret too`;
}

/** Null: the files were copied, and only commits have changed them meanwhile. */
async function copyStored(site: StateOfSite, draft: string): Promise<Fault | null> {
  const { state } = site;
  const begun = await askDaemon(state, "POST", "/backup/begin");
  if (begun.kind === "absent") {
    const done = await withState(site, () => copyFiles(state, draft), { older: "refuse" });
    return typeof done === "string" ? refused(done) : null;
  }
  if (begun.kind === "failed") return refused(begun.reason);
  if (!isOk(begun.body))
    return refused("another backup is being made, or was cut short within the last 10 min");
  const copied = attempt(() => copyFiles(state, draft));
  const ended = await askDaemon(state, "POST", "/backup/end");
  if (copied !== null) return copied;
  if (ended.kind === "failed") return refused(ended.reason);
  const stayed = ended.kind === "answered" && isOk(ended.body);
  return stayed ? null : refused("the state was moved while it was copied: try again");
}

/** Null: copied. */
function attempt(copy: () => void): Fault | null {
  try {
    copy();
    return null;
  } catch (error) {
    return fileFault(error);
  }
}

const isOk = (body: unknown): boolean =>
  typeof body === "object" && body !== null && "ok" in body && body.ok === true;

export const backupVerb: Verb = (verb, { config, now, done }) => {
  verb
    .argument("<file>", "path of the copy; FILE.key gets the site key, a secret. To restore: docs/backup.md")
    .action(async (file: string) => {
      done(await backup(config(), file, now));
    });
};
