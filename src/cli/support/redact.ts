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
  const stripper = new Stripper(file, env, mistakes);
  const { secrets, unread } = stripper;
  const refused = (why: string): Stripped => ({ text: `# ${why}\n`, secrets, unread });
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return refused("The configuration cannot be read.");
  }
  const yaml = readYaml(text);
  if (!yaml.ok) return refused("The configuration is no YAML, so its secrets cannot be told from the rest.");
  return { text: stringify(stripper.strip(yaml.source.value, [], false)), secrets, unread };
}

/** A shorter value, such as a number, occurs everywhere. */
const LEAST_KNOWN = 4;

/** Replaces secrets in the values of a configuration, and collects them. */
class Stripper {
  readonly secrets: Buffer[] = [];
  readonly unread: string[] = [];
  readonly #env: Place["env"];
  /** Folder of files that are named without one. */
  readonly #folder: string;
  readonly #rejected: ReadonlySet<string>;
  readonly #isHopeless: boolean;

  constructor(file: string, env: Place["env"], mistakes: readonly Mistake[]) {
    this.#env = env;
    this.#folder = env["CREDENTIALS_DIRECTORY"] || dirname(resolve(file));
    this.#rejected = new Set(mistakes.map(({ path }) => path));
    this.#isHopeless = mistakes.length >= MANY_MISTAKES;
    for (const [name, value] of Object.entries(env))
      if (value !== undefined && SECRET_VARIABLE.test(name)) this.#add(value);
  }

  /** `isWithin`: the value is part of one whose members are all secrets. */
  strip(value: unknown, path: Path, isWithin: boolean): unknown {
    if (value === null || value === undefined) return value;
    const key = path.findLast((each) => typeof each === "string") ?? "";
    if (this.#rejected.has(pathText(path)) && path.length > 0) return this.#removed(value);
    if (Array.isArray(value)) return value.map((each, index) => this.strip(each, [...path, index], isWithin));
    if (typeof value === "object") {
      // A header may carry any secret under any name.
      const within = isWithin || key === "headers";
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, this.strip(each, [...path, name], within)]),
      );
    }
    // Places of secrets. By mistake one may be the secret itself.
    if (typeof value === "string" && key === "file") return this.#keeps(value) ? value : this.#removed(value);
    if (typeof value === "string" && key === "env") return this.#variable(value);
    if (this.#isHopeless || isWithin) return this.#removed(value);
    if (typeof value === "string" && path[0] === "alarms" && key === "url")
      return withoutPath(value, this.secrets);
    if (typeof value === "string" && value.includes("-----BEGIN")) return this.#removed(value);
    if (typeof value === "string" && isPemPath(path))
      return this.#keeps(value) ? value : this.#removed(value);
    return SECRET_KEY.test(key) ? this.#removed(value) : value;
  }

  /** Collects the secret in an environment variable. Without that variable its name is removed. */
  #variable(name: string): string {
    const found = ENV_NAME.test(name) ? this.#env[name] : undefined;
    if (found !== undefined && found !== "") this.secrets.push(Buffer.from(found));
    return found === undefined ? this.#removed(name) : name;
  }

  /** Collects the secret in a file. False: there is no file. */
  #keeps(path: string): boolean {
    const at = resolve(this.#folder, path);
    if (!existsSync(at)) return false;
    try {
      if (statSync(at).isFile() && statSync(at).size <= MOST_BYTES) {
        const content = readFileSync(at);
        this.secrets.push(content, Buffer.from(content.toString("utf8").trim()));
      }
    } catch {
      this.unread.push(at);
    }
    return true;
  }

  #removed(value: unknown): string {
    if (typeof value === "string") this.#add(value);
    return REMOVED;
  }

  #add(text: string): void {
    if (text.length >= LEAST_KNOWN) this.secrets.push(Buffer.from(text));
  }
}

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
