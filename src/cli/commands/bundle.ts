import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join, resolve } from "node:path";

import { loadSite } from "../../daemon/chargerModels.ts";
import { type Instant, iso } from "../../domain/units.ts";
import { file as entry, tarGz } from "../../platform/tar.ts";
import { configFile, environmentOf } from "../configuration.ts";
import { type ExitCode, fail, say, type Verb } from "../output.ts";
import { becomeOwner, enterPrivateFolder } from "../storedState.ts";
import { aDayBefore, lastLog, type Part, stateParts, versions } from "../support/collect.ts";
import { stripConfiguration, Redactor } from "../support/redact.ts";
import { diagnose } from "./doctor.ts";
import { codeOf, messageOf } from "../../platform/text.ts";

const KEYS = ["site.key", "proof.key"];

/** `bundle`: writes an archive for support, without secrets. Works with and without a running daemon. */
async function bundle(
  named: string | undefined,
  target: string,
  log: string | undefined,
  now: Instant,
): Promise<ExitCode> {
  const file = configFile(named);
  if (file === undefined) return fail(2, "which configuration? Name it with -c FILE, or in SETPOINTD_CONFIG");
  const site = loadSite(file, environmentOf(file, process.env));
  if (site.loaded.ok) enterPrivateFolder(site.loaded.config.state);
  const path = resolve(target);
  // Opened before the rights of root are dropped.
  const descriptor = openNew(path);
  if (typeof descriptor === "string") return fail(1, descriptor);
  try {
    const { archive, contents } = await archiveOf(file, site, log, now);
    for (let written = 0; written < archive.length;) written += writeSync(descriptor, archive, written);
    say(`${path}: ${Math.ceil(archive.length / 1000)} kB, readable by you alone`);
    say(contents.trimEnd());
    return 0;
  } catch (error) {
    rmSync(path, { force: true });
    return fail(1, `no archive was written: ${messageOf(error)}`);
  } finally {
    closeSync(descriptor);
  }
}

/** Never over another file. A text: it cannot be written, and why. */
function openNew(path: string): number | string {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  } catch (error) {
    return codeOf(error) === "EEXIST"
      ? `${path} exists already: name another file`
      : `${path} cannot be written: ${messageOf(error)}`;
  }
}

/** The archive, and its table of contents. */
async function archiveOf(
  file: string,
  site: ReturnType<typeof loadSite>,
  log: string | undefined,
  now: Instant,
): Promise<{ readonly archive: Buffer; readonly contents: string }> {
  const { loaded } = site;
  // The journal and the secrets may be readable by root alone.
  const logged = lastLog(log, aDayBefore(now));
  const env = environmentOf(file, process.env);
  const stripped = stripConfiguration(file, { env }, loaded.ok ? [] : loaded.mistakes);
  const keys = loaded.ok ? keysOf(loaded.config.state) : [];
  const denied = loaded.ok ? becomeOwner(loaded.config.state) : null;
  const parts: readonly Part[] = [
    {
      name: "configuration.yaml",
      about: "the configuration, without secrets and comments",
      content: stripped.text,
    },
    versions(),
    logged,
    ...(await siteParts(file, site, denied, now)),
  ];
  const redactor = new Redactor([...stripped.secrets, ...keys]);
  const contents = contentsOf(parts, stripped.unread, now);
  const archive = tarGz(
    [{ name: "CONTENTS.txt", content: contents }, ...parts].flatMap(({ name, content }) =>
      typeof content === "string" ? [entry(name, redactor.text(content), 0o600)] : [],
    ),
    Math.floor(now / 1000),
    "setpointd-bundle/",
  );
  return { archive, contents: redactor.text(contents) };
}

/** Parts from the state and the running daemon. `denied`: why this user may not read the state. Null: it may. */
async function siteParts(
  file: string,
  { loaded, profiles }: ReturnType<typeof loadSite>,
  denied: string | null,
  now: Instant,
): Promise<readonly Part[]> {
  if (!loaded.ok) {
    const mistakes = loaded.mistakes.map(({ path, line, expected }) => ({ path, line, expected }));
    const about = "mistakes in the configuration, without the values";
    return [{ name: "mistakes.json", about, content: JSON.stringify(mistakes, null, 2) }];
  }
  if (denied !== null)
    return [{ name: "status.json", about: "the running daemon and the state", content: { missing: denied } }];
  const { config, warnings } = loaded;
  const parts = await stateParts(config, profiles, aDayBefore(now));
  say("setpointd doctor runs, for up to a minute");
  const diagnosis = await diagnose({ config, profiles, warnings }, file, now, () => {});
  const content = JSON.stringify(diagnosis, null, 2);
  return [...parts, { name: "doctor.json", about: "setpointd doctor --json", content }];
}

/** The keys of the state. They are in no file of the archive, and in no log. */
function keysOf(state: string): readonly Buffer[] {
  return KEYS.flatMap((name) => {
    try {
      return [readFileSync(join(state, name))];
    } catch {
      return [];
    }
  });
}

function contentsOf(parts: readonly Part[], unread: readonly string[], now: Instant): string {
  const had = parts.filter(({ content }) => typeof content === "string");
  const missing = parts.flatMap(({ name, about, content }) =>
    typeof content === "string" ? [] : [`  ${name}: ${about}. Not there: ${content.missing}`],
  );
  return [
    `Support archive of setpointd, ${iso(now)}`,
    ...had.map(({ name, about }) => `  ${name}: ${about}`),
    ...missing,
    "Secrets are removed: those that the configuration names, the keys of the site, and what looks like one.",
    "Names of the site, chargers, vehicles and events, and addresses are still in it. Read it before you send it.",
    ...unread.map((path) => `This user may not read ${path}: its text was not searched for.`),
    "",
  ].join("\n");
}

export const bundleVerb: Verb = (verb, { config, now, done }) => {
  verb
    .argument("<file>", "path of the archive (.tar.gz), which must not exist")
    .option("--log <file>", "log file of the daemon, where it does not go to the journal of systemd")
    .action(async (file: string, { log }: { log?: string }) => {
      done(await bundle(config(), file, log, now()));
    });
};
