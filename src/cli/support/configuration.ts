import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { stringify } from "yaml";

import { readYaml } from "../../config/document.ts";
import { type Mistake, type Path, pathText } from "../../config/explain.ts";
import type { Place } from "../../config/fields/secret.ts";
import { REMOVED } from "./redact.ts";

/** A configuration without its secrets, and the secrets themselves. */
interface Stripped {
  readonly text: string;
  /** Texts that must not be in any file of the archive. */
  readonly secrets: readonly Buffer[];
  /** Files of secrets that this user may not read: their texts cannot be searched for. */
  readonly unread: readonly string[];
}

/** Larger files are no secrets. */
const MOST_BYTES = 1024 * 1024;
/** More mistakes than are reported. All values are removed then. */
const MANY_MISTAKES = 100;

const SECRET_KEY = /^(?!.*Url$)(?:.*(?:secret|passw|token|credential|authorization).*|pass|key)$/i;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Environment variables that hold a secret by their name. */
const SECRET_VARIABLE = /PASS|SECRET|TOKEN|KEY|CREDENTIAL|AUTH/i;

/**
 * Removes the secrets from a configuration. Comments are left out: they may hold anything. A value that `check` rejects is
 * removed: it may be a secret in the wrong place.
 */
export function stripConfiguration(
  file: string,
  { env }: Pick<Place, "env">,
  mistakes: readonly Mistake[],
): Stripped {
  const secrets: Buffer[] = [];
  const unread: string[] = [];
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && value.length >= LEAST_KNOWN && SECRET_VARIABLE.test(name))
      secrets.push(Buffer.from(value));
  const refused = (why: string): Stripped => ({ text: `# ${why}\n`, secrets, unread });
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return refused("The configuration cannot be read.");
  }
  const yaml = readYaml(text);
  if (!yaml.ok) return refused("The configuration is no YAML, so its secrets cannot be told from the rest.");
  const directory = dirname(resolve(file));
  const rejected = new Set(mistakes.map(({ path }) => path));
  const isHopeless = mistakes.length >= MANY_MISTAKES;
  const keep = (path: string): boolean => {
    const at = resolve(env["CREDENTIALS_DIRECTORY"] || directory, path);
    if (!existsSync(at)) return false;
    try {
      if (statSync(at).isFile() && statSync(at).size <= MOST_BYTES) {
        const content = readFileSync(at);
        secrets.push(content, Buffer.from(content.toString("utf8").trim()));
      }
    } catch {
      unread.push(at);
    }
    return true;
  };
  const removed = (value: unknown): string => {
    if (typeof value === "string" && value.length >= LEAST_KNOWN) secrets.push(Buffer.from(value));
    return REMOVED;
  };
  const source = (value: object): unknown => {
    if ("file" in value && typeof value.file === "string")
      return keep(value.file) ? { file: value.file } : { file: removed(value.file) };
    if ("env" in value && typeof value.env === "string") {
      const found = ENV_NAME.test(value.env) ? env[value.env] : undefined;
      if (found !== undefined && found !== "") secrets.push(Buffer.from(found));
      return found === undefined ? { env: removed(value.env) } : { env: value.env };
    }
    return null;
  };
  const strip = (value: unknown, path: Path, isWithin: boolean): unknown => {
    if (value === null || value === undefined) return value;
    const key = path.findLast((each) => typeof each === "string") ?? "";
    if (rejected.has(pathText(path)) && path.length > 0) return removed(value);
    if (Array.isArray(value)) return value.map((each, index) => strip(each, [...path, index], isWithin));
    if (typeof value === "object") {
      if (Object.keys(value).length === 1) {
        const kept = source(value);
        if (kept !== null) return kept;
      }
      // A header may carry any secret under any name.
      const within = isWithin || key === "headers";
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, strip(each, [...path, name], within)]),
      );
    }
    if (isHopeless || isWithin) return removed(value);
    if (typeof value === "string" && path[0] === "alarms" && key === "url")
      return withoutPath(value, secrets);
    if (typeof value === "string" && value.includes("-----BEGIN")) return removed(value);
    if (typeof value === "string" && isPemPath(path)) return keep(value) ? value : removed(value);
    return SECRET_KEY.test(key) ? removed(value) : value;
  };
  return { text: stringify(strip(yaml.source.value, [], false)), secrets, unread };
}

/** A shorter value, such as a number, occurs everywhere. */
const LEAST_KNOWN = 4;

/** Certificates and keys are named by their path alone. */
const isPemPath = (path: Path): boolean =>
  path.at(-2) === "tls" && ["ca", "cert", "key", "clientCa"].includes(String(path.at(-1)));

/** The address of a receiver of alarms. Chat services put the secret into its path or query. */
function withoutPath(text: string, secrets: Buffer[]): string {
  const url = URL.parse(text);
  if (url === null) return REMOVED;
  const rest = `${url.pathname}${url.search}`;
  if (rest === "/") return text;
  secrets.push(Buffer.from(rest));
  return `${url.origin}/${REMOVED}`;
}
