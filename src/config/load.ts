import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

import { crossChecks, type ProfileChecks, NATIVE_ONLY } from "./checks.ts";
import { readYaml, type Source } from "./document.ts";
import { findings, located, MOST_MISTAKES, sentence, type Finding, type Mistake } from "./explain.ts";
import { whyUnreadable, type Environment, type Place } from "./fields/secret.ts";
import { configFile, configOf, type Config } from "./schema.ts";
import { warnings } from "./warnings.ts";

export type Loaded =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Mistake[] }
  | { readonly ok: false; readonly mistakes: readonly Mistake[] };

/** Enough for 100,000 vehicles. */
const MOST_BYTES = 16 * 1024 * 1024;

const refused = (source: Source, all: readonly Finding[]): Loaded => ({
  ok: false,
  mistakes: all
    .map(located(source))
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    .slice(0, MOST_MISTAKES),
});

/** `unused`: the verb connects to no one, so secrets and certificates may be missing. */
export type SecretsNeed = "needed" | "unused";

/** A configuration from its text. Secrets are read once, to find mistakes now. */
export function configFrom(
  text: string,
  place: Place,
  makes: ProfileChecks = NATIVE_ONLY,
  secrets: SecretsNeed = "needed",
): Loaded {
  const yaml = readYaml(text);
  if (!yaml.ok) return yaml;
  const { source } = yaml;
  const parsed = configFile.safeParse(source.value, { error: sentence });
  if (!parsed.success) return refused(source, findings(parsed.error, source.value));
  const mistakes: Finding[] = [...crossChecks(parsed.data), ...makes.mistakes(parsed.data)];
  const doubts: Finding[] = [...warnings(parsed.data), ...makes.warnings(parsed.data)];
  const config = configOf(
    parsed.data,
    place,
    (finding) => {
      // All other findings are about secrets or certificates.
      if (secrets === "needed" || finding.path[0] === "state") mistakes.push(finding);
    },
    (finding) => doubts.push(finding),
  );
  if (mistakes.length > 0) return refused(source, mistakes);
  return {
    ok: true,
    config: { ...config, chargers: config.chargers.map(makes.applyProfileLimits) },
    warnings: doubts.map(located(source)),
  };
}

const unread = (found: string, expected: string): Loaded => ({
  ok: false,
  mistakes: [{ path: "", line: null, column: null, found, expected }],
});

/** Reads, checks and resolves a configuration file. Never throws because of its content. */
export function loadConfig(
  file: string,
  env: Environment,
  makes: ProfileChecks = NATIVE_ONLY,
  secrets: SecretsNeed = "needed",
): Loaded {
  let bytes: Buffer;
  try {
    if (statSync(file).size > MOST_BYTES)
      return unread("more than 16 MiB", "a configuration of at most 16 MiB");
    bytes = readFileSync(file);
  } catch (error) {
    return unread(
      `a file that ${whyUnreadable(error)}`,
      "the path of a configuration that this user may read",
    );
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return unread("bytes that are not UTF-8 text", "a YAML file saved as UTF-8");
  }
  return configFrom(text, { env, directory: dirname(resolve(file)) }, makes, secrets);
}
