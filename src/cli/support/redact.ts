/** Stands in the place of a secret. */
export const REMOVED = "[removed]";

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
