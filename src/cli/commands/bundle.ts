import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join, resolve } from "node:path";

import { loadSite } from "../../daemon/chargerModels.ts";
import { type Instant, iso } from "../../domain/units.ts";
import { file as entry, tarGz } from "../../platform/tar.ts";
import { configFile, environmentOf } from "../configuration.ts";
import { complain, type ExitCode, say, type Verb } from "../output.ts";
import { becomeOwner, enterPrivateFolder } from "../storedState.ts";
import { aDayBefore, lastLog, type Part, stateParts, versions } from "../support/collect.ts";
import { stripConfiguration, Redactor } from "../support/redact.ts";
import { diagnose } from "./doctor.ts";
import { messageOf } from "../../platform/text.ts";

const KEYS = ["site.key", "proof.key"];

/** `bundle`: writes an archive for support, without secrets. Works with and without a running daemon. */
async function bundle(
  named: string | undefined,
  target: string,
  log: string | undefined,
  now: Instant,
): Promise<ExitCode> {
  const file = configFile(named);
  if (file === undefined) {
    complain("which configuration? Name it with -c FILE, or in SETPOINTD_CONFIG");
    return 2;
  }
  const env = environmentOf(file, process.env);
  const { loaded, profiles } = loadSite(file, env);
  if (loaded.ok) enterPrivateFolder(loaded.config.state);
  const path = resolve(target);
  let descriptor: number;
  try {
    // Opened before the rights of root are dropped, and never over another file.
    descriptor = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    complain(
      code === "EEXIST"
        ? `${path} exists already: name another file`
        : `${path} cannot be written: ${messageOf(error)}`,
    );
    return 1;
  }
  try {
    // The journal and the secrets may be readable by root alone.
    const logged = lastLog(log, aDayBefore(now));
    const mistakes = loaded.ok ? [] : loaded.mistakes;
    const { text, secrets, unread } = stripConfiguration(file, { env }, mistakes);
    const known = [...secrets, ...(loaded.ok ? keysOf(loaded.config.state) : [])];
    const denied = loaded.ok ? becomeOwner(loaded.config.state) : null;
    const parts: Part[] = [
      { name: "configuration.yaml", about: "the configuration, without secrets and comments", content: text },
      versions(),
      logged,
    ];
    if (!loaded.ok)
      parts.push({
        name: "mistakes.json",
        about: "mistakes in the configuration, without the values",
        content: JSON.stringify(
          mistakes.map(({ path: where, line, expected }) => ({ path: where, line, expected })),
          null,
          2,
        ),
      });
    else if (denied !== null)
      parts.push({
        name: "status.json",
        about: "the running daemon and the state",
        content: { missing: denied },
      });
    else {
      const { config } = loaded;
      parts.push(...(await stateParts(config, profiles, aDayBefore(now))));
      say("setpointd doctor runs, for up to a minute");
      const site = { config, profiles, warnings: loaded.warnings };
      const diagnosis = await diagnose(site, file, now, () => {});
      parts.push({
        name: "doctor.json",
        about: "setpointd doctor --json",
        content: JSON.stringify(diagnosis, null, 2),
      });
    }
    const redactor = new Redactor(known);
    const contents = contentsOf(parts, unread, now);
    const archive = tarGz(
      [{ name: "CONTENTS.txt", content: contents }, ...parts].flatMap(({ name, content }) =>
        typeof content === "string" ? [entry(name, redactor.text(content), 0o600)] : [],
      ),
      Math.floor(now / 1000),
      "setpointd-bundle/",
    );
    for (let written = 0; written < archive.length;) written += writeSync(descriptor, archive, written);
    say(`${path}: ${Math.ceil(archive.length / 1000)} kB, readable by you alone`);
    say(redactor.text(contents.trimEnd()));
    return 0;
  } catch (error) {
    rmSync(path, { force: true });
    complain(`no archive was written: ${messageOf(error)}`);
    return 1;
  } finally {
    closeSync(descriptor);
  }
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
