import { createPublicKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { Option } from "commander";

import type { Config } from "../../config/schema.ts";
import type { StateOfSite } from "../../daemon/offline.ts";
import { prove } from "../../daemon/proof.ts";
import { proofKeyOrNew, siteKeyIn, siteKeyOf, type SiteKeyRead } from "../../daemon/stateFolder.ts";
import { eventId, type Instant } from "../../domain/units.ts";
import type { Format } from "../../proof/file.ts";
import { type Broken, type ShownRow, verifyProof } from "../../proof/verify.ts";
import { configuration, configFile, siteConfiguration } from "../configuration.ts";
import { askDaemon, askDaemonAtLength, type Failed } from "../daemonClient.ts";
import { complain, fail, type ExitCode, readText, saySealed, say, type Verb } from "../output.ts";
import {
  becomeOwner,
  enterPrivateFolder,
  keysFromDatabase,
  LONG_PATIENCE_MS,
  withState,
} from "../storedState.ts";

/** `proof EVENT`: prints the history of one event, sealed, from the running daemon or the stored state. */
async function proof(
  named: string | undefined,
  id: string,
  format: Format,
  now: () => Instant,
): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const event = id.normalize("NFC").toWellFormed();
  const reason =
    (await proofByDaemon(config.state, event, format)) ??
    (await withState(config, async ({ store, siteKey }) => {
      const known = (await store.archive.whole([eventId(event)])).get(eventId(event)) ?? null;
      const proven = await prove(event, format, {
        config,
        store,
        siteKey,
        now,
        monotonic: () => performance.now(),
        known,
      });
      if (!proven.ok) return proven.reason;
      for await (const piece of proven.pieces) saySealed(piece.trimEnd());
      return "";
    }));
  if (reason !== "") complain(reason);
  return reason === "" ? 0 : 1;
}

/** Prints the proof as it comes. Empty: it is printed. Null: no daemon runs. Else the reason why it is not, or not whole. */
async function proofByDaemon(state: string, event: string, format: Format): Promise<string | null> {
  let reason = "";
  const print = (line: unknown): void => {
    const { piece, reason: refusal = "" } = line as { readonly piece?: string; readonly reason?: string };
    if (piece === undefined) reason = refusal;
    else saySealed(piece.trimEnd());
  };
  const came = await askDaemonAtLength(state, "/proof", { event, format }, print, LONG_PATIENCE_MS);
  if (came === "absent") return null;
  if (came === "cut") return "the proof is not whole: the daemon ended, or could not read its state";
  return came === "answered" ? reason : came.reason;
}

/** `proof key`: prints the public key (PEM) for verifying our proofs. Creates the private key if there is none. */
async function proofKey(named: string | undefined, random: (bytes: number) => Buffer): Promise<ExitCode> {
  const config = configuration(named);
  if (config === null) return 2;
  const key = (await keysFromDatabase(config)) ?? proofKeyOrNew(config, random);
  if (!key.ok) return fail(1, key.reason);
  say(createPublicKey(key.proofKey).export({ format: "pem", type: "spki" }).trimEnd());
  return 0;
}

/** Reads a public key as `proof key` prints it. A string is the reason why it cannot be used. */
function readPublicKey(path: string): KeyObject | string {
  try {
    const pem = readFileSync(path);
    // Node derives a public key from a private one. A private key must not be passed around.
    if (pem.includes("PRIVATE KEY"))
      return `${path} is a private key: keep it secret, and verify with the public one`;
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

/** Cap on broken lines that are printed. The rest is counted. */
const MAX_NAMED = 20;
/** Rows per request. */
const PAGE = 10_000;

/** `proof verify FILE`: checks as much as the given key and state allow, and prints what was not checked. */
async function proofVerify(
  file: string,
  named: string | undefined,
  keyFile: string | undefined,
  publicKeyFile: string | undefined,
): Promise<ExitCode> {
  if (named !== undefined && keyFile !== undefined)
    return fail(2, "-c FILE or --key FILE: the configuration names a key of its own");
  const isConfigured = keyFile === undefined && configFile(named) !== undefined;
  const config = isConfigured ? (siteConfiguration(named)?.config ?? null) : undefined;
  if (config === null) return 2;
  if (config !== undefined) enterPrivateFolder(config.state);
  const publicKey = publicKeyFile === undefined ? null : readPublicKey(publicKeyFile);
  if (typeof publicKey === "string") return fail(1, publicKey);
  const text = readText(file);
  if (text === null) return 1;
  // Proof and public key are read before root gives up its rights: they may be in a folder of root.
  const refused = config === undefined ? null : becomeOwner(config.state);
  if (refused !== null) return fail(2, refused);
  const key = await keyOf(keyFile, config);
  if (key?.ok === false) return fail(1, key.reason);
  const siteKey = key?.siteKey ?? null;
  const { broken, lines, rows, isSigned } = verifyProof(text, { siteKey, publicKey });
  const compared = config === undefined ? null : await compare(rows, config);
  const wrong = [...broken, ...(compared === "failed" ? [] : (compared?.strange ?? []))];
  if (wrong.length > 0) {
    for (const { line, reason } of wrong.slice(0, MAX_NAMED)) complain(`${file}, line ${line}: ${reason}`);
    if (wrong.length > MAX_NAMED) complain(`and ${wrong.length - MAX_NAMED} more lines`);
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
      `not checked: who created it. Anyone who changed the file could have computed all hashes again: name ${isSigned ? "the site's public key (--public-key FILE), or " : ""}the site's key (-c FILE or --key FILE)`,
    );
  if (compared === null)
    complain("not checked: whether its rows are those of the record, as no state is at hand (-c FILE)");
  else say(compared.message);
  return 0;
}

/** Null: neither a key nor a configuration was named. */
async function keyOf(file: string | undefined, config: Config | undefined): Promise<SiteKeyRead | null> {
  if (file !== undefined) return siteKeyIn(file);
  return config === undefined ? null : ((await keysFromDatabase(config)) ?? siteKeyOf(config));
}

interface Compared {
  readonly strange: readonly Broken[];
  readonly message: string;
}

/** Compares rows with the record. Null: the record cannot be read. "failed": the daemon gave none. Prints the reason. */
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
  const message = `${kept} of its rows are those of the record${rest === 0 ? "" : `; the other ${rest} are no longer stored`}`;
  return { strange, message };
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

const VERIFY_HELP = `
Exit code 0: no mistake was found in the parts that could be checked; the others are listed on standard error. Without
any key only consistency is checked, which a forger can produce. 1: a line was edited, the file or the key cannot be
read, or a running daemon did not give its record.`;

export const proofVerb: Verb = (verb, { config, now, randomBytes, done }) => {
  const proofs = verb.usage("<event> [--format json|csv], or show <event>, or verify <file>, or key");
  proofs
    .command("show", { isDefault: true })
    .description(
      "print everything about one event: setpoints requested, sent, followed, measured and reported, and the rows of the record; short form: proof EVENT (for an event named like a verb: proof show verify)",
    )
    .argument("<event>", "id of the event")
    .addOption(
      new Option("--format <format>", "json, or csv for a spreadsheet: the same facts under the same seal")
        .choices(["json", "csv"])
        .default("json"),
    )
    .action(async (event: string, { format }: { format: "json" | "csv" }) => {
      done(await proof(config(), event, format, now));
    });
  proofs
    .command("verify")
    .description(
      "find edited lines in a proof; with the site's key also forged ones, and with the state also rows that differ from the record",
    )
    .argument("<file>", "output of proof; - reads standard input")
    .option("--key <file>", "the site's key, where no configuration is available")
    .option("--public-key <file>", "the site's public key, as printed by proof key: for a partner")
    .addHelpText("after", VERIFY_HELP)
    .action(async (file: string, { key, publicKey }: { key?: string; publicKey?: string }) => {
      done(await proofVerify(file, config(), key, publicKey));
    });
  proofs
    .command("key")
    .description("print the public key (PEM) for verifying proofs of this site")
    .action(async () => {
      done(await proofKey(config(), randomBytes));
    });
};
