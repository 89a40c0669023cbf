import { readFileSync } from "node:fs";

import type { Config } from "../config/schema.ts";
import { type Broken, type ShownRow, verifyProof } from "../core/proof/verify.ts";
import { readSiteKey, type SiteKey, storedSiteKey } from "../store/siteKey.ts";
import { configFile, siteConfiguration } from "./configuration.ts";
import { askDaemon, type Failed } from "./daemon.ts";
import { readPublicKey } from "./proofKey.ts";
import { becomeOwner } from "./owner.ts";
import { complain, type ExitCode, say } from "./outcome.ts";
import { enterPrivateFolder } from "./privateFolder.ts";
import { type StateOfSite, withState } from "./storedState.ts";

/** Broken lines that are named; the rest is counted. */
const MOST_NAMED = 20;
/** Rows asked for at a time. */
const PAGE = 10_000;

/** `proof verify FILE`: as far as key and state are at hand, and it says how far that was. */
export async function proofVerify(
  file: string,
  named: string | undefined,
  keyFile: string | undefined,
  publicKeyFile: string | undefined,
): Promise<ExitCode> {
  if (named !== undefined && keyFile !== undefined) {
    complain("-c FILE or --key FILE: the configuration names a key of its own");
    return 2;
  }
  const isConfigured = keyFile === undefined && configFile(named) !== undefined;
  const config = isConfigured ? (siteConfiguration(named)?.config ?? null) : undefined;
  if (config === null) return 2;
  if (config !== undefined) enterPrivateFolder(config.state);
  const publicKey = publicKeyFile === undefined ? null : readPublicKey(publicKeyFile);
  if (typeof publicKey === "string") {
    complain(publicKey);
    return 1;
  }
  const text = textOf(file);
  if (text === null) return 1;
  // The proof and the public key were read before: they may be in a folder of root's.
  const refused = config === undefined ? null : becomeOwner(config.state);
  if (refused !== null) {
    complain(refused);
    return 2;
  }
  const key = keyOf(keyFile, config);
  if (key?.ok === false) {
    complain(key.reason);
    return 1;
  }
  const siteKey = key?.siteKey ?? null;
  const { broken, lines, rows, isSigned } = verifyProof(text, { siteKey, publicKey });
  const compared = config === undefined ? null : await compare(rows, config);
  const wrong = [...broken, ...(compared === "failed" ? [] : (compared?.strange ?? []))];
  if (wrong.length > 0) {
    for (const { line, reason } of wrong.slice(0, MOST_NAMED)) complain(`${file}, line ${line}: ${reason}`);
    if (wrong.length > MOST_NAMED) complain(`and ${wrong.length - MOST_NAMED} more lines`);
    return 1;
  }
  if (compared === "failed") return 1;
  const isAuthentic = siteKey !== null || publicKey !== null;
  say(
    `${file} is ${isAuthentic ? "whole" : "consistent, not authenticated"}: ${lines} lines, ${rows.length} rows of the record, each with its own hash`,
  );
  if (publicKey !== null) say("it was signed with the private key of this public key");
  if (siteKey !== null) say("its seal, and that of the record's head, were made with this site's key");
  if (!isAuthentic)
    complain(
      `not checked: who made it. Whoever changed the file could have computed all hashes anew: name ${isSigned ? "the site's public key (--public-key FILE), or " : ""}the site's key (-c FILE or --key FILE)`,
    );
  if (compared === null)
    complain("not checked: whether its rows are those of the record, as no state is at hand (-c FILE)");
  else say(compared.words);
  return 0;
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    complain(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  }
}

/** Null: neither a key nor a configuration was named. */
function keyOf(file: string | undefined, config: Config | undefined): SiteKey | null {
  if (file !== undefined) return readSiteKey(file);
  return config === undefined ? null : storedSiteKey(config.state, config.keys.site);
}

interface Compared {
  readonly strange: readonly Broken[];
  readonly words: string;
}

/** With the record itself. Null: it cannot be read, "failed": the daemon that has it cannot be asked; which is told. */
async function compare(rows: readonly ShownRow[], site: StateOfSite): Promise<Compared | "failed" | null> {
  const strange: Broken[] = [];
  let kept = 0;
  for (let from = 0; from < rows.length; from += PAGE) {
    const page = rows.slice(from, from + PAGE);
    const hashes = await hashesOf(
      page.map(({ seq }) => seq),
      site,
    );
    if (typeof hashes === "string") {
      complain(hashes);
      return null;
    }
    if ("kind" in hashes) {
      complain(hashes.reason);
      return "failed";
    }
    for (const { line, seq, hash } of page) {
      const known = hashes.get(seq);
      if (known !== undefined) kept += 1;
      if (known !== undefined && known !== hash)
        strange.push({ line, reason: `row ${seq} is not the one of the record` });
    }
  }
  const rest = rows.length - kept;
  const words = `${kept} of its rows are those of the record${rest === 0 ? "" : `; the other ${rest} are not kept there`}`;
  return { strange, words };
}

async function hashesOf(
  seqs: readonly number[],
  site: StateOfSite,
): Promise<ReadonlyMap<number, string> | string | Failed> {
  const answer = await askDaemon(site.state, "POST", "/audit/hashes", { seqs });
  if (answer.kind === "failed") return answer;
  return answer.kind === "answered"
    ? new Map(answer.body as readonly (readonly [number, string])[])
    : withState(site, ({ store }) => store.hashes(seqs));
}
