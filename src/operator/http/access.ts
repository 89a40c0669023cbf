import cookie from "@fastify/cookie";
import rateLimit from "@fastify/rate-limit";
import session from "@fastify/session";
import type { FastifyInstance, FastifyRequest, Session } from "fastify";
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

import type { Instant } from "../../domain/units.ts";
import { type Account, type Accounts, includesRole, type Role, type SignedIn } from "../accounts.ts";
import { Refusal } from "./problem.ts";

/** The person or program behind a request. */
export interface Person extends Account {
  /** open: the listener has no login. */
  readonly via: "open" | "session" | "token";
}

declare module "fastify" {
  interface Session {
    /** Absent: signed out. `since`: monotonic clock, ms. */
    user?: SignedIn & { readonly since: number };
  }
}

/** `open`: everyone on loopback may do everything, and is on record as "loopback". */
type AccessMode =
  | { readonly kind: "open" }
  | {
      readonly kind: "login";
      readonly accounts: Accounts;
      /** The browser reaches the listener over HTTPS, so a cookie must not travel without. */
      readonly isSecure: boolean;
    };

export interface AccessOptions {
  readonly access: AccessMode;
  /** Sessions that survive this listener. Absent: they end with it. */
  readonly sessions?: SessionStore;
  readonly now: () => Instant;
  /** Monotonic clock, ms. */
  readonly monotonic: () => number;
  /** Into the record, as the act of a person. */
  readonly record: (message: string, facts: Readonly<Record<string, string>>) => void;
}

const COOKIE = "setpointd_session";
const OPEN: Person = { name: "loopback", role: "integrator", via: "open" };
/** A session ends after this time without a request: longer than a shift. */
const IDLE_MS = 12 * 3_600_000;
/** A session ends after this time in any case. */
const LONGEST_MS = 7 * 24 * 3_600_000;
const MAX_SESSIONS = 1000;
/** Requests of one address in a minute. */
const MAX_REQUESTS = 1200;
/** Attempts to sign in of one address in a minute. */
export const MAX_ATTEMPTS = 20;
/** Further failures double the delay. */
const FREE_FAILURES = 5;
const LONGEST_DELAY_MS = { address: 15 * 60_000, name: 60_000 };
const MAX_TRACKED = 10_000;

const isLoopbackAddress = (ip: string): boolean => ip === "::1" || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(ip);

/** Sessions in memory: the end of the process ends them all. Bounded, because the library's own store grows without end. */
export class SessionStore {
  /** Signs the cookies. A new one for each process, as the sessions are in memory as well. */
  readonly secret = randomBytes(48).toString("base64url");
  readonly #sessions = new Map<string, Session>();

  set(id: string, { cookie: kept, user }: Session, done: (error?: unknown) => void): void {
    this.#sessions.delete(id);
    if (user !== undefined) this.#sessions.set(id, { cookie: kept, user });
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= MAX_SESSIONS) break;
      this.#sessions.delete(oldest);
    }
    done();
  }

  get(id: string, done: (error: unknown, session?: Session | null) => void): void {
    const found = this.#sessions.get(id);
    done(null, found === undefined ? null : { ...found });
  }

  has(id: string): boolean {
    return this.#sessions.has(id);
  }

  destroy(id: string, done: (error?: unknown) => void): void {
    this.#sessions.delete(id);
    done();
  }
}

/**
 * Delays attempts after failures, by address and by name. The delay by name is short, so that a colleague
 * cannot be locked out for long. Attempts from this machine are not delayed: that is the last way in.
 */
export class Lockout {
  readonly #failures = new Map<string, { readonly count: number; readonly until: number }>();
  readonly #monotonic: () => number;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Ms until the next attempt is accepted. 0: now. */
  delay(ip: string, name: string): number {
    if (isLoopbackAddress(ip)) return 0;
    const until = keysOf(ip, name).map(({ key }) => this.#failures.get(key)?.until ?? 0);
    return Math.max(0, Math.ceil(Math.max(...until) - this.#monotonic()));
  }

  /** Returns the delay that this failure causes, in ms. */
  failed(ip: string, name: string): number {
    for (const { key, longest } of keysOf(ip, name)) {
      const count = (this.#failures.get(key)?.count ?? 0) + 1;
      const delay = count < FREE_FAILURES ? 0 : Math.min(longest, 1000 * 2 ** (count - FREE_FAILURES));
      this.#failures.delete(key);
      this.#failures.set(key, { count, until: this.#monotonic() + delay });
    }
    for (const oldest of this.#failures.keys()) {
      if (this.#failures.size <= MAX_TRACKED) break;
      this.#failures.delete(oldest);
    }
    return this.delay(ip, name);
  }

  succeeded(ip: string, name: string): void {
    for (const { key } of keysOf(ip, name)) this.#failures.delete(key);
  }
}

const keysOf = (ip: string, name: string) => [
  { key: `address ${ip}`, longest: LONGEST_DELAY_MS.address },
  { key: `name ${name.toLowerCase()}`, longest: LONGEST_DELAY_MS.name },
];

/** Code of the link for the first user. It works once, for an hour, while there is no user and no token. */
export class FirstLink {
  readonly #hash: Buffer;
  readonly #accounts: Accounts;
  readonly #until: number;
  readonly #monotonic: () => number;
  readonly code = randomBytes(24).toString("base64url");
  #isUsed = false;

  constructor(accounts: Accounts, monotonic: () => number) {
    this.#accounts = accounts;
    this.#monotonic = monotonic;
    this.#hash = sha256(this.code);
    this.#until = monotonic() + FIRST_LINK_MS;
  }

  isValid(code: string): boolean {
    return (
      timingSafeEqual(this.#hash, sha256(code)) &&
      !this.#isUsed &&
      this.#monotonic() < this.#until &&
      this.#accounts.isEmpty
    );
  }

  /** False: it is not valid. Two requests at once get one user. */
  take(code: string): boolean {
    const isValid = this.isValid(code);
    if (isValid) this.#isUsed = true;
    return isValid;
  }

  /** No user was added after all. */
  giveBack(): void {
    this.#isUsed = false;
  }
}

const FIRST_LINK_MS = 3_600_000;
const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * Registers cookies, sessions and rate limits. The result finds the person of a request; null: not
 * signed in. `isLater`: some time after the request, when the session may have ended.
 */
export async function registerAccess(
  app: FastifyInstance,
  options: AccessOptions,
): Promise<(request: FastifyRequest, isLater?: boolean) => Person | null> {
  const { access, sessions: store = new SessionStore() } = options;
  if (access.kind === "login") {
    await app.register(rateLimit, {
      max: MAX_REQUESTS,
      timeWindow: "1 minute",
      errorResponseBuilder: (_request, { ttl }) =>
        new Refusal(429, `too many requests from this address: try again in ${Math.ceil(ttl / 1000)} s`),
    });
    await app.register(cookie);
    await app.register(session, {
      secret: store.secret,
      cookieName: COOKIE,
      cookie: { path: "/", httpOnly: true, sameSite: "strict", secure: access.isSecure, maxAge: IDLE_MS },
      saveUninitialized: false,
      rolling: true,
      store,
    });
  }
  return (request, isLater = false) => {
    if (access.kind === "open") return OPEN;
    const isEnded = isLater && bearerOf(request) === undefined && !store.has(request.session.sessionId);
    return isEnded ? null : personOf(request, access.accounts, options);
  };
}

/** The text after `Bearer`. A browser sends other schemes along that a proxy before us asked for. */
const bearerOf = ({ headers }: FastifyRequest): string | undefined =>
  /^Bearer\b(.*)$/i.exec(headers.authorization ?? "")?.[1];

/** Null: not signed in. Throws for a token that is not valid: its holder must learn that. */
function personOf(
  request: FastifyRequest,
  accounts: Accounts,
  { now, monotonic }: AccessOptions,
): Person | null {
  const bearer = bearerOf(request);
  if (bearer !== undefined) {
    const [, token] = /^ +([A-Za-z0-9._~+/=-]+)$/.exec(bearer) ?? [];
    const holder = token === undefined ? null : accounts.tokenHolder(token, now());
    if (holder === null) throw unauthorized("the token is not known here");
    if (holder === "expired")
      throw unauthorized("the token has expired: setpointd token add makes a new one");
    return { name: holder.name, role: holder.role, via: "token" };
  }
  const { user } = request.session;
  if (user === undefined || monotonic() - user.since > LONGEST_MS) return null;
  const account = accounts.signedIn(user);
  return account === null ? null : { name: account.name, role: account.role, via: "session" };
}

const unauthorized = (detail: string): Refusal =>
  new Refusal(401, detail, { headers: { "www-authenticate": 'Bearer realm="setpointd"' } });

/** Stands for everyone at routes that need no role. */
const ANONYMOUS: Person = { name: "anonymous", role: "viewer", via: "open" };

/** The person of a request that needs this role. Throws 401 without one, and 403 with too small a role. */
export function authorize(person: Person | null, role: Role | null): Person {
  if (role === null) return person ?? ANONYMOUS;
  if (person === null)
    throw unauthorized("sign in first: POST /api/v1/session, or send a token as Authorization: Bearer");
  if (!includesRole(person.role, role))
    throw new Refusal(403, `${person.name} is ${article(person.role)}; this needs the role ${role}`);
  return person;
}

const article = (role: Role): string => (role === "viewer" ? "a viewer" : `an ${role}`);

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Refuses writes that another web page sends through the browser of a person here (CSRF). A browser names the page in
 * Origin; a program sends none.
 */
export function checkOrigin({ method, headers, host, protocol }: FastifyRequest): void {
  if (READS.has(method)) return;
  const { origin } = headers;
  if (origin === undefined) {
    const site = headers["sec-fetch-site"];
    if (site === undefined || site === "same-origin" || site === "none") return;
    throw new Refusal(403, "a page of another origin sent this request");
  }
  const from = URL.parse(origin);
  const own = from === null ? null : URL.parse(`${from.protocol}//${host}`);
  // Anyone on the way may serve a page over plain HTTP. A proxy that does not name its scheme counts as plain HTTP.
  const isPlain = protocol === "https" && from?.protocol !== "https:";
  if (from !== null && from.host !== "" && from.host === own?.host && !isPlain) return;
  throw new Refusal(
    403,
    `a page of another origin sent this request (Origin ${origin.slice(0, 200)}, Host ${host}). A reverse proxy has to pass Host on`,
  );
}
