import { readFileSync, statSync } from "node:fs";
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type YAMLParseError,
} from "yaml";
import { shipped } from "../platform/packageRoot.ts";
import type { Path, Refused } from "./explain.ts";
import { whyUnreadable } from "./fields/secret.ts";

/** Enough for 100,000 vehicles. */
const MOST_BYTES = 16 * 1024 * 1024;

/** The text of a configuration file. */
export function readText(file: string): Refused | { readonly ok: true; readonly text: string } {
  let bytes: Buffer;
  try {
    if (statSync(file).size > MOST_BYTES)
      return whole("more than 16 MiB", "a configuration of at most 16 MiB");
    bytes = readFileSync(file);
  } catch (error) {
    return whole(
      `a file that ${whyUnreadable(error)}`,
      "the path of a configuration that this user may read",
    );
  }
  try {
    return { ok: true, text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return whole("bytes that are not UTF-8 text", "a YAML file saved as UTF-8");
  }
}

/** A parsed YAML text, with the lines of its values. */
export interface Source {
  readonly value: unknown;
  /** Line of the deepest part of `path` in the file, from 1. Null: no part. */
  readonly lineOf: (path: Path) => number | null;
}

export type Read = { readonly ok: true; readonly source: Source } | Refused;

/** A mistake of the whole file. */
const whole = (found: string, expected: string): Refused => ({
  ok: false,
  mistakes: [{ path: "", line: null, column: null, found, expected }],
});

/** Offset of the deepest known part of `path`. */
function offsetOf(document: Document.Parsed, path: Path): number | null {
  let node: unknown = document.contents;
  let offset: number | null = null;
  for (const key of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((entry) => isScalar(entry.key) && String(entry.key.value) === String(key));
      if (pair === undefined) return offset;
      offset = (isScalar(pair.key) ? pair.key.range?.[0] : undefined) ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof key === "number") {
      node = node.items[key];
      offset = rangeStart(node) ?? offset;
    } else return offset;
  }
  return offset;
}

const rangeStart = (node: unknown): number | null =>
  isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? (node.range?.[0] ?? null) : null;

/** The expected content, for messages. */
interface Kind {
  readonly what: string;
  /** An example to copy. */
  readonly example: string;
}

const CONFIGURATION: Kind = { what: "a configuration", example: shipped("config/example.yaml") };

/** YAML reads 000001 as the number 1, which is another charger. It is kept as text. */
const LEADING_ZERO = /^[-+]?0\d+(e[-+]?\d+)?$/i;

function keepLeadingZeros(document: Document.Parsed): void {
  visit(document, {
    Scalar(_, node) {
      const { source = "", tag, type, value } = node;
      if (typeof value === "number" && type === "PLAIN" && tag === undefined && LEADING_ZERO.test(source))
        node.value = source;
    },
  });
}

/** Cuts the quoted source, or the advice to programmers, off a message. */
const withoutSource = (message: string): string => message.replace(/(: ["'`]|;).*$/s, "");

/** A wrong indentation causes further errors. Only the first of these is shown. */
const OF_INDENTATION: ReadonlySet<string> = new Set([
  "BAD_INDENT",
  "BLOCK_AS_IMPLICIT_KEY",
  "MULTILINE_IMPLICIT_KEY",
  "TAB_AS_INDENT",
]);

/** Errors that can follow from a wrong indentation. */
const FROM_INDENTATION: ReadonlySet<string> = new Set(["NON_STRING_KEY", "MISSING_CHAR"]);

/** The first three errors that do not follow from one another. */
function apart(errors: readonly YAMLParseError[]): readonly YAMLParseError[] {
  const first = errors.find(({ code }) => OF_INDENTATION.has(code));
  const follows = ({ code }: YAMLParseError): boolean =>
    OF_INDENTATION.has(code) || (first !== undefined && FROM_INDENTATION.has(code));
  return errors.filter((error) => error === first || !follows(error)).slice(0, 3);
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/**
 * The line to correct, from 1. The parser joins a line that is indented too far with the value above it,
 * and reports the line of that value.
 */
function lineToMend(text: string, code: string, reported: number): number {
  if (code !== "BLOCK_AS_IMPLICIT_KEY" && code !== "MULTILINE_IMPLICIT_KEY") return reported;
  const lines = text.split("\n");
  const indent = indentOf(lines[reported - 1] ?? "");
  const next = lines.findIndex(
    (line, index) => index >= reported && line.trim() !== "" && !line.trimStart().startsWith("#"),
  );
  return next !== -1 && indentOf(lines[next] ?? "") > indent ? next + 1 : reported;
}

/** Offset of the first alias whose anchor does not stand before it. Null: there is none. */
function unresolvedAlias(document: Document.Parsed): number | null {
  const anchors = new Set<string>();
  let offset: number | null = null;
  visit(document, {
    Node(_, node) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.add(node.anchor);
      } else if (!anchors.has(node.source)) {
        offset = rangeStart(node);
        return visit.BREAK;
      }
      return undefined;
    },
  });
  return offset;
}

function parse(text: string, { example }: Kind): Read {
  const lines = new LineCounter();
  // Pretty messages quote the source, which may hold a secret.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    logLevel: "error",
    stringKeys: true,
  });
  if (document.errors.length > 0) {
    const mistakes = apart(document.errors).map((error) => {
      const { line: reported, col } = lines.linePos(error.pos[0]);
      const line = lineToMend(text, error.code, reported);
      return {
        path: "",
        line,
        column: line === reported ? col : 1,
        found: `broken YAML: ${withoutSource(error.message)}`,
        expected: `YAML such as key: value, indented with as many spaces as its neighbours; ${example} is an example`,
      };
    });
    return { ok: false, mistakes };
  }
  const alias = unresolvedAlias(document);
  if (alias !== null) {
    const { line, col } = lines.linePos(alias);
    const found = "broken YAML: an alias (it begins with *) without its anchor";
    const expected = "quotes around a text that begins with *, or the anchor before it";
    return { ok: false, mistakes: [{ path: "", line, column: col, found, expected }] };
  }
  keepLeadingZeros(document);
  const lineOf = (path: Path): number | null => {
    const offset = offsetOf(document, path);
    return offset === null ? null : lines.linePos(offset).line;
  };
  return { ok: true, source: { value: document.toJS(), lineOf } };
}

/** Reads YAML 1.2. Never throws, whatever the text. */
export function readYaml(text: string, kind: Kind = CONFIGURATION): Read {
  try {
    const read = parse(text, kind);
    if (!read.ok || read.source.value !== null) return read;
    return whole("an empty file", `${kind.what}; ${kind.example} is one to copy`);
  } catch {
    // The library throws on endless aliases and on brackets nested thousands deep.
    return whole("YAML that is nested or aliased too deeply", `${kind.what}; ${kind.example} is an example`);
  }
}

/** Keys of the first level, in any style of YAML, JSON included. A file with a mistake may still show them. */
export function firstKeys(text: string): ReadonlySet<string> {
  const found = [...text.matchAll(/^(["']?)([\w-]+)\1\s*:/gm)].flatMap(([, , key]) => key ?? []);
  if (found.length > 0) return new Set(found);
  const read = readYaml(text);
  const value: unknown = read.ok ? read.source.value : null;
  return new Set(typeof value === "object" && value !== null ? Object.keys(value) : []);
}

/** A place at which two configurations differ. It never has a value, which may be a secret. */
export interface Difference {
  readonly path: Path;
  readonly change: "added" | "removed" | "changed";
}

/**
 * Differences of two parsed configurations, in the order of the second. Entries of a list are matched by their id, so
 * that one that was added does not shift the others.
 */
export function differences(before: unknown, after: unknown, path: Path = []): readonly Difference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const [old, fresh] = [membersOf(before), membersOf(after)];
  if (old === null || fresh === null)
    return [{ path, change: before === undefined ? "added" : after === undefined ? "removed" : "changed" }];
  return [...new Set([...fresh.keys(), ...old.keys()])].flatMap((key) =>
    differences(old.get(key), fresh.get(key), [...path, key]),
  );
}

/** Members of a section, or entries of a list by their id. Null: a single value. */
function membersOf(value: unknown): ReadonlyMap<PropertyKey, unknown> | null {
  if (typeof value !== "object" || value === null) return null;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  const ids = value.map((entry: unknown) =>
    typeof entry === "object" ? Reflect.get(entry ?? {}, "id") : null,
  );
  return ids.every((id) => typeof id === "string") && new Set(ids).size === ids.length
    ? new Map(value.map((entry: unknown, index) => [String(ids[index]), entry]))
    : null;
}
