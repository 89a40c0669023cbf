import { dirname, resolve } from "node:path";

import { crossChecks, type ProfileChecks, NATIVE_ONLY } from "./checks.ts";
import { readText, readYaml } from "./document.ts";
import { findings, located, refused, type Refused, sentence, type Finding, type Mistake } from "./explain.ts";
import type { Environment, Place } from "./fields/secret.ts";
import { configFile, configOf, type Config } from "./schema.ts";
import { warnings } from "./warnings.ts";

export type Loaded =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Mistake[] }
  | Refused;

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

/** Reads, checks and resolves a configuration file. Never throws because of its content. */
export function loadConfig(
  file: string,
  env: Environment,
  makes: ProfileChecks = NATIVE_ONLY,
  secrets: SecretsNeed = "needed",
): Loaded {
  const read = readText(file);
  return read.ok ? configFrom(read.text, { env, directory: dirname(resolve(file)) }, makes, secrets) : read;
}
