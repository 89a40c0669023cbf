import { createHash, randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { closeSync, openSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import * as z from "zod";

import { after, type Instant, instant, iso, type Millis, fromIso } from "../domain/units.ts";
import { codeOf, messageOf } from "../platform/text.ts";

/** Roles, the least powerful first. Each may do all that the ones before it may. */
export const ROLES = ["viewer", "operator", "integrator"] as const;
export type Role = (typeof ROLES)[number];

export const includesRole = (role: Role, needed: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** A person or a program that may use the operator's listener. */
export interface Account {
  readonly name: string;
  readonly role: Role;
}

/** Cost of scrypt: 32 MiB and some 0.2 s on a gateway. Stored with each hash, so that it can be raised later. */
const COST = { N: 2 ** 15, r: 8, p: 3 } as const;
const HASH_BYTES = 32;
/** Scrypt needs 128 * N * r bytes, and a little more. */
const MEMORY = 2 * 128 * COST.N * COST.r;
/** Each check costs memory and CPU, so one runs at a time and few wait. */
const MAX_WAITING = 8;
const SHORTEST_PASSWORD = 10;
const LONGEST_PASSWORD = 1024;
const TOKEN_PREFIX = "setpointd_";

export const accountName = z
  .string()
  .regex(/^[\p{L}\p{N}][\p{L}\p{N}._@-]{0,63}$/u, {
    error: "1 to 64 letters, digits, dots, dashes, underscores or @, e.g. kari",
  })
  .transform((name) => name.normalize("NFC"));

const moment = z.iso.datetime().transform((text) => fromIso(text));
const accountsFile = z.strictObject({
  v: z.literal(1),
  users: z.array(
    z.strictObject({
      name: z.string(),
      role: z.enum(ROLES),
      password: z.strictObject({
        salt: z.base64(),
        hash: z.base64(),
        N: z.int(),
        r: z.int(),
        p: z.int(),
      }),
      addedAt: moment,
    }),
  ),
  tokens: z.array(
    z.strictObject({
      name: z.string(),
      role: z.enum(ROLES),
      /** SHA-256 of the token, hex. A token has 256 random bits, so a slow hash would add nothing. */
      hash: z.string().regex(/^[0-9a-f]{64}$/),
      addedAt: moment,
      /** Null: never. */
      expiresAt: moment.nullable(),
    }),
  ),
});
type Stored = z.infer<typeof accountsFile>;
type User = Stored["users"][number];
export type Token = Stored["tokens"][number];

const EMPTY: Stored = { v: 1, users: [], tokens: [] };

/** Access to files of the state folder. Both `read` and `replace` throw file system errors. */
interface StateFiles {
  /** Creates the folder if it is missing. A text: the reason why it cannot be used. */
  readonly prepare: () => string | null;
  readonly read: (path: string) => Buffer;
  /** Replaces the file as a whole or not at all, mode 0600. */
  readonly replace: (path: string, content: string) => void;
}

/** `{ ok: false }`: `reason` is a sentence for the person who asked. */
export type Changed = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** A signed-in user. `stamp` changes with the password, which ends older sessions. */
export interface SignedIn extends Account {
  readonly stamp: string;
}

/** A change of users or tokens. `by`: name of the person. `role` null: removed. */
export interface AccessChange {
  readonly by: string;
  readonly did: "added" | "removed";
  readonly kind: "user" | "token";
  readonly name: string;
  readonly role: Role | null;
}

/** The row of the record for a change of access. */
export const accessRow = ({ by, did, kind, name, role }: AccessChange) => ({
  message: `${by} ${did} the ${kind} ${name}${role === null ? "" : ` as ${role}`}`,
  facts: { by, [did]: kind, name, ...(role === null ? {} : { role }) },
});

export const fold = (name: string): string => name.normalize("NFC").toLowerCase();
const digest = (token: string): string => createHash("sha256").update(token).digest("hex");
const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);

const hashOf = (password: string, salt: Buffer, { N, r, p }: Pick<User["password"], "N" | "r" | "p">) =>
  derive(password.normalize("NFC"), salt, HASH_BYTES, { N, r, p, maxmem: Math.max(MEMORY, 256 * N * r) });

async function storedPassword(password: string): Promise<User["password"]> {
  const salt = randomBytes(16);
  const hash = await hashOf(password, salt, COST);
  return { salt: salt.toString("base64"), hash: hash.toString("base64"), ...COST };
}

/** Reason why a password is refused. Null: it is accepted. */
export const passwordFault = (password: string): string | null =>
  password.length >= SHORTEST_PASSWORD && password.length <= LONGEST_PASSWORD
    ? null
    : `a password has ${SHORTEST_PASSWORD} to ${LONGEST_PASSWORD} characters`;

/**
 * Users and tokens, in `access.json` of the state folder. The daemon and the verbs share the file: each change is
 * written at once, and each use reads the file again if it has changed.
 */
export class Accounts {
  readonly #path: string;
  readonly #files: StateFiles;
  #stored: Stored = EMPTY;
  /** Identity, size and time of the file that was read last. Null: none was read. */
  #version: string | null = null;
  #fault: string | null = null;
  #checks: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(state: string, files: StateFiles) {
    this.#path = join(state, "access.json");
    this.#files = files;
  }

  /** Reason why the file cannot be used; there are no users and no tokens then. Null: it can. */
  get fault(): string | null {
    this.#current();
    return this.#fault;
  }

  /** True: no user can sign in yet. An unreadable file is not empty. */
  get isEmpty(): boolean {
    const { users, tokens } = this.#current();
    return this.#fault === null && users.length + tokens.length === 0;
  }

  get users(): readonly Pick<User, "name" | "role" | "addedAt">[] {
    return this.#current().users;
  }

  get tokens(): readonly Token[] {
    return this.#current().tokens;
  }

  async addUser(name: string, role: Role, password: string, now: Instant): Promise<Changed> {
    const fault = passwordFault(password);
    if (fault !== null) return { ok: false, reason: fault };
    const user = { name, role, password: await storedPassword(password), addedAt: now };
    return this.#change((stored) => {
      const taken = nameTaken(stored, name);
      return taken ?? { ...stored, users: [...stored.users, user] };
    });
  }

  /** Returns the token itself, which is shown once and not stored. `expiresIn` null: it never expires. */
  addToken(
    name: string,
    role: Role,
    expiresIn: Millis | null,
    now: Instant,
  ):
    | { readonly ok: true; readonly token: string; readonly expiresAt: Instant | null }
    | (Changed & { readonly ok: false }) {
    const token = `${TOKEN_PREFIX}${randomBytes(32).toString("base64url")}`;
    const expiresAt = expiresIn === null ? null : after(now, expiresIn);
    const row = { name, role, hash: digest(token), addedAt: now, expiresAt };
    const changed = this.#change(
      (stored) => nameTaken(stored, name) ?? { ...stored, tokens: [...stored.tokens, row] },
    );
    return changed.ok ? { ok: true, token, expiresAt } : changed;
  }

  remove(kind: "users" | "tokens", name: string): Changed {
    return this.#change((stored) => {
      const isOther = (each: Account): boolean => fold(each.name) !== fold(name);
      if (stored[kind].every(isOther)) return `there is no ${kind === "users" ? "user" : "token"} ${name}`;
      return kind === "users"
        ? { ...stored, users: stored.users.filter(isOther) }
        : { ...stored, tokens: stored.tokens.filter(isOther) };
    });
  }

  /** Null: wrong. "busy": too many checks wait. An unknown name takes as long as a wrong password. */
  async signIn(name: string, password: string): Promise<SignedIn | "busy" | null> {
    if (this.#waiting >= MAX_WAITING) return "busy";
    this.#waiting += 1;
    const check = this.#checks.then(() => this.#signIn(name, password));
    this.#checks = check.catch(() => undefined);
    try {
      return await check;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** The user of a session, with the role that it has now. Null: removed, or the password has changed since. */
  signedIn({ name, stamp }: Pick<SignedIn, "name" | "stamp">): Account | null {
    return this.#current().users.find((user) => user.name === name && stampOf(user) === stamp) ?? null;
  }

  /** "expired", or null: no such token. */
  tokenHolder(token: string, now: Instant): Account | "expired" | null {
    const hash = Buffer.from(digest(token), "hex");
    const found = this.#current().tokens.find((each) => timingSafeEqual(Buffer.from(each.hash, "hex"), hash));
    if (found === undefined) return null;
    return found.expiresAt !== null && found.expiresAt <= now ? "expired" : found;
  }

  async #signIn(name: string, password: string): Promise<SignedIn | null> {
    const user = this.#current().users.find((each) => fold(each.name) === fold(name));
    const { salt, hash, ...cost } = user?.password ?? { salt: "", hash: "", ...COST };
    const given = await hashOf(password.slice(0, LONGEST_PASSWORD), Buffer.from(salt, "base64"), cost);
    const expected = Buffer.from(hash, "base64");
    const isRight = expected.length === given.length && timingSafeEqual(expected, given);
    return isRight && user !== undefined ? { name: user.name, role: user.role, stamp: stampOf(user) } : null;
  }

  #current(): Stored {
    const found = statSync(this.#path, { throwIfNoEntry: false, bigint: true });
    const version = found === undefined ? null : `${found.ino} ${found.size} ${found.mtimeNs}`;
    if (version === this.#version) return this.#stored;
    this.#version = version;
    try {
      this.#stored =
        version === null
          ? EMPTY
          : accountsFile.parse(JSON.parse(this.#files.read(this.#path).toString("utf8")));
      this.#fault = null;
    } catch (error) {
      // An unreadable file lets no user in. The control socket and the verbs still work.
      this.#stored = EMPTY;
      this.#fault = `${this.#path} cannot be used: ${messageOf(error)}`;
    }
    return this.#stored;
  }

  /** `change`: a text is the reason why nothing changes. */
  #change(change: (stored: Stored) => Stored | string): Changed {
    const denied = this.#files.prepare();
    if (denied !== null) return { ok: false, reason: denied };
    using _lock = lockFile(`${this.#path}.lock`);
    const stored = this.#current();
    if (this.#fault !== null) return { ok: false, reason: this.#fault };
    const next = change(stored);
    if (typeof next === "string") return { ok: false, reason: next };
    const text = JSON.stringify(next, (key, value: unknown) =>
      (key === "addedAt" || key === "expiresAt") && typeof value === "number" ? iso(instant(value)) : value,
    );
    this.#files.replace(this.#path, `${text}\n`);
    return { ok: true };
  }
}

const stampOf = ({ password }: User): string => digest(password.hash).slice(0, 16);

/** A name stands for one account: the record names users and tokens alike. */
function nameTaken({ users, tokens }: Stored, name: string): string | null {
  const isSame = (each: Account): boolean => fold(each.name) === fold(name);
  if (users.some(isSame)) return `there is a user ${name} already`;
  return tokens.some(isSame) ? `there is a token ${name} already` : null;
}

const LOCK_STEP_MS = 20;
/** A change takes milliseconds. An older lock was left by a process that was killed. */
const LOCK_PATIENCE_MS = 2000;

/** Two verbs at once would lose one of two changes. */
function lockFile(path: string): Disposable {
  for (let waited = 0; ; waited += LOCK_STEP_MS) {
    try {
      closeSync(openSync(path, "wx", 0o600));
      return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      if (waited >= LOCK_PATIENCE_MS) rmSync(path, { force: true });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_STEP_MS);
    }
  }
}
