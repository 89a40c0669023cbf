import { createHash } from "node:crypto";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import * as z from "zod";

import type { Instant } from "../domain/units.ts";
import { codeOf, messageOf } from "../platform/text.ts";
import { readOwn, replaceFile } from "../store/files.ts";

/*
 * The configurations that ran, in `configurations.json` of the state folder, and the rules of which one a start takes.
 *
 *              the file, unless a change or a rollback says otherwise
 *                                  |
 *     apply, rollback              v            starts
 *   running ----------> change under way -----------------> running; a rollback stays in force
 *      ^                           |                          until the file changes
 *      |   does not start, or      |
 *      |   two processes ended     |
 *      `---------------------------'  the one before; it stays in force until the file changes
 *
 * Each arrow is one write that replaces the file whole. A process that ends anywhere continues from the last write.
 */

const FILE = "configurations.json";
/** Configurations that are kept, the running one included. */
export const MOST_KEPT = 10;
/** Processes that may end during the start of one configuration before the one before it is taken. */
const MOST_TRIES = 2;

/** First digits of the SHA-256 of the text. */
const fingerprint = z.string().regex(/^[0-9a-f]{12}$/);

export const fingerprintOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 12);

/** Gzip, in base64. */
const packed = z.string();

const person = { at: z.number(), by: z.string(), reason: z.string() };

const inForce = z.object({
  fingerprint,
  /** Fingerprint of the file beside which it was put in force. Another file ends that. */
  file: fingerprint,
  because: z.enum(["rollback", "fallback"]),
  ...person,
});

const kept = z.object({
  version: z.literal(1),
  /** The newest first. */
  ran: z.array(
    z.object({
      fingerprint,
      text: packed,
      at: z.number(),
      by: z.string().nullable(),
      reason: z.string().nullable(),
    }),
  ),
  inForce: inForce.nullable(),
  /** A change that is under way. */
  change: z
    .object({
      kind: z.enum(["apply", "rollback"]),
      fingerprint,
      text: packed,
      from: fingerprint,
      file: fingerprint,
      /** The configuration in force before. */
      before: inForce.nullable(),
      tries: z.int(),
      ...person,
    })
    .nullable(),
  /** The last change. */
  last: z
    .object({
      kind: z.enum(["apply", "rollback"]),
      fingerprint,
      from: fingerprint,
      file: fingerprint,
      result: z.enum(["running", "fellBack"]),
      /** Why it does not run. Null: it did. */
      failure: z.string().nullable(),
      /** Ms from the begin of the stop to the first evaluation. Null: not measured. */
      tookMs: z.number().nullable(),
      ...person,
    })
    .nullable(),
});

/** The configurations that ran, and a change that is under way. */
export type KeptConfigurations = Readonly<z.infer<typeof kept>>;

type Change = NonNullable<KeptConfigurations["change"]>;

export const NOTHING_KEPT: KeptConfigurations = {
  version: 1,
  ran: [],
  inForce: null,
  change: null,
  last: null,
};

/** The configuration of a start. `text` null: the file. */
export interface Choice {
  readonly text: string | null;
  /** The kept configurations as they have to be stored before the start. */
  readonly kept: KeptConfigurations;
}

/** The configuration that a process starts with. `file`: fingerprint of the file now. */
export function chooseAtStart(known: KeptConfigurations, file: string): Choice {
  const { change } = known;
  if (change !== null && change.file === file) {
    if (change.tries >= MOST_TRIES) {
      const back = fallBack(known, `the process ended ${change.tries} times while it started`);
      return { text: inForceText(back, file), kept: back };
    }
    return { text: unpack(change.text), kept: tried(known) };
  }
  const rest = change === null ? known : { ...known, change: null };
  return { text: inForceText(rest, file), kept: rest };
}

function inForceText({ inForce: held, ran }: KeptConfigurations, file: string): string | null {
  if (held === null || held.file !== file) return null;
  const found = ran.find((each) => each.fingerprint === held.fingerprint);
  return found === undefined ? null : unpack(found.text);
}

/** A change begins: from the configuration that runs to another text. */
export const changing = (
  known: KeptConfigurations,
  { text, ...change }: Omit<Change, "fingerprint" | "text" | "before" | "tries"> & { readonly text: string },
): KeptConfigurations => ({
  ...known,
  change: {
    ...change,
    fingerprint: fingerprintOf(text),
    text: pack(text),
    before: known.inForce,
    tries: 0,
  },
});

/** The start of the changed configuration is tried by this process. */
export const tried = (known: KeptConfigurations): KeptConfigurations =>
  known.change === null ? known : { ...known, change: { ...known.change, tries: known.change.tries + 1 } };

/** The changed configuration did not start: the one before stays in force until the file changes. */
export function fallBack(known: KeptConfigurations, failure: string): KeptConfigurations {
  const { change } = known;
  if (change === null) return known;
  const { kind, fingerprint: to, from, file, before, at, by, reason } = change;
  const held = before?.fingerprint === from && before.file === file ? before : null;
  return {
    ...known,
    change: null,
    // The file itself needs nothing to stay in force.
    inForce:
      held ?? (from === file ? null : { fingerprint: from, file, because: "fallback", at, by, reason }),
    last: { kind, fingerprint: to, from, file, result: "fellBack", failure, tookMs: null, at, by, reason },
  };
}

/** A configuration runs. Returns what is known already where nothing changed, so that a restart writes nothing. */
export function running(
  known: KeptConfigurations,
  text: string,
  now: Instant,
  tookMs: number | null,
): KeptConfigurations {
  const own = fingerprintOf(text);
  const { change } = known;
  if (change === null || change.fingerprint !== own) {
    const isKnown = known.ran[0]?.fingerprint === own;
    const held = known.inForce?.fingerprint === own ? known.inForce : null;
    if (isKnown && held === known.inForce && change === null) return known;
    const entry = { fingerprint: own, text: pack(text), at: now, by: null, reason: null };
    return {
      ...known,
      ran: isKnown ? known.ran : withNewest(known.ran, entry),
      inForce: held,
      change: null,
      last: isKnown ? known.last : null,
    };
  }
  const { kind, from, file, at, by, reason } = change;
  return {
    ...known,
    ran: withNewest(known.ran, { fingerprint: own, text: change.text, at: now, by, reason }),
    inForce:
      kind === "apply" || own === file
        ? null
        : { fingerprint: own, file, because: "rollback", at, by, reason },
    change: null,
    last: { kind, fingerprint: own, from, file, result: "running", failure: null, tookMs, at, by, reason },
  };
}

const withNewest = (
  ran: KeptConfigurations["ran"],
  entry: KeptConfigurations["ran"][number],
): KeptConfigurations["ran"] =>
  [entry, ...ran.filter((each) => each.fingerprint !== entry.fingerprint)].slice(0, MOST_KEPT);

/** The text of a configuration that ran. Null: it is not kept. */
export function keptText({ ran }: Pick<KeptConfigurations, "ran">, wanted: string): string | null {
  const found = ran.find((each) => each.fingerprint === wanted);
  return found === undefined ? null : unpack(found.text);
}

const pack = (text: string): string => gzipSync(text).toString("base64");
const unpack = (text: string): string => gunzipSync(Buffer.from(text, "base64")).toString();

/** The stored file. A text: why it cannot be used; a daemon goes on without. */
export function readKept(state: string): KeptConfigurations | string {
  const path = join(state, FILE);
  try {
    const parsed = kept.safeParse(JSON.parse(readOwn(path).toString()));
    return parsed.success ? parsed.data : `${path} is not as setpointd writes it`;
  } catch (error) {
    return codeOf(error) === "ENOENT" ? NOTHING_KEPT : `${path}: ${messageOf(error)}`;
  }
}

/** Stores the file, mode 0600: on return it survives a power cut. A text: the reason why it cannot be stored. */
export function storeKept(state: string, known: KeptConfigurations): string | null {
  try {
    replaceFile(join(state, FILE), JSON.stringify(known));
    return null;
  } catch (error) {
    return messageOf(error);
  }
}
