import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { stringify } from "yaml";

import { readYaml } from "../../config/document.ts";
import { type Mistake, type Path, pathText } from "../../config/explain.ts";
import type { Place } from "../../config/fields/secret.ts";

/** Stands in the place of a secret. */
const REMOVED = "[removed]";

/** A shorter text is found by chance in other texts, and would spoil them. */
const SHORTEST = 4;

/** Forms of a secret that a log or an encoder may show. */
function formsOf(secret: Buffer): readonly string[] {
  const text = secret.toString("utf8");
  const isText = Buffer.from(text).equals(secret);
  const encoded = ["base64", "base64url", "hex"] as const;
  return [
    ...(isText ? [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text.toWellFormed())] : []),
    ...(isText
      ? text.split(/\r?\n/).filter((line) => line.length >= LONG_LINE && !line.startsWith("-----"))
      : []),
    ...encoded.map((encoding) => secret.toString(encoding).replace(/=+$/, "")),
    secret.toString("hex").toUpperCase(),
  ].filter((form) => form.length >= SHORTEST);
}

/** A line of a PEM text is a secret by itself. */
const LONG_LINE = 20;

/** Names of members and fields whose value is a secret. */
const SECRET_NAME =
  "(?:[\\w.-]*(?:pass(?:word|wd|phrase)?|pwd|secret|credential|api[-_]?key|private[-_]?key|site[-_.]?key|proof[-_.]?key|authorization|cookie|signature)s?|(?:[\\w.-]*[_.-])?token|[a-z]+Token)";

/** A value behind a secret's name: in quotes, in quotes within a quoted text, or bare. */
const VALUE = String.raw`(\\"(?:(?!\\").)*\\"|"(?:[^"\\]|\\.)*"|'[^']*'|(?:\\.|[^\s"'{}\[\],;&\\])+)`;
const MEMBER = new RegExp(
  String.raw`((?:\\?["'])?(?<![\w/.-])${SECRET_NAME}(\\?["'])?[ \t]*[:=][ \t]*)${VALUE}`,
  "gi",
);

/** Counts and absence are no secrets. */
const HARMLESS = /^(?:null|true|false|\d{1,3})$/;

/** Keeps the quotes, so that JSON stays JSON. */
function withoutValue(member: string, name: string, quote: string | undefined, value: string): string {
  if (HARMLESS.test(value)) return member;
  const own = /^\\?["']/.exec(value)?.[0] ?? quote ?? "";
  return `${name}${own}${REMOVED}${own}`;
}

/** Shapes of secrets that are not known by their value. */
const SHAPES: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [
    /-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----|(?:\\[nr]|[\w+/=\s-])*)/g,
    REMOVED,
  ],
  // The user and the password of a URL. A password may hold any character, also @ and /.
  [/\b([a-z][a-z\d+.-]*:\/\/)[^\s"'<>]*@/gi, `$1${REMOVED}@`],
  [
    /([?&](?:once|token|access_token|code|key|sig|signature|secret|password)=)[^&\s"'<>\\]+/gi,
    `$1${REMOVED}`,
  ],
  [/\b(Bearer|Basic|Digest)\s+[\w.~+/=-]{8,}/gi, `$1 ${REMOVED}`],
  [/\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?/g, REMOVED],
  [/\bwhsec_[\w+/=-]{8,}/g, REMOVED],
  // Tokens of the operator's listener.
  [/\bsetpointd_(?=[\w-]*[A-Z\d])[\w-]{43}/g, REMOVED],
];

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

/** Removes secrets from texts: the known ones in every form, and what has the shape of one. */
export class Redactor {
  readonly #known: RegExp | null;

  constructor(secrets: Iterable<Buffer>) {
    const forms = [...new Set([...secrets].flatMap(formsOf))].toSorted((a, b) => b.length - a.length);
    this.#known = forms.length === 0 ? null : new RegExp(forms.map(escaped).join("|"), "g");
  }

  text(text: string): string {
    const known = this.#known === null ? text : text.replace(this.#known, REMOVED);
    return SHAPES.reduce((left, [pattern, replacement]) => left.replace(pattern, replacement), known).replace(
      MEMBER,
      withoutValue,
    );
  }
}

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
