import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { TLSSocket } from "node:tls";
import { expect, onTestFinished, test } from "vitest";

import { millis, after } from "../../../src/domain/units.ts";
import { type Accounts, includesRole, type Role, ROLES } from "../../../src/operator/accounts.ts";
import { Lockout, SessionStore } from "../../../src/operator/http/access.ts";
import { OperatorListener, routesOf } from "../../../src/operator/http/server.ts";
import { Authority } from "../../support/certificates.ts";
import { someAccounts, someListener, someViews, T0 } from "../../support/aListener.ts";

const done = (): void => {};
const PASSWORD = "a long password";

interface Recorded {
  readonly message: string;
  readonly facts: Readonly<Record<string, string>>;
}

/** A listener with a login behind a trusted proxy, reached from `address` over HTTPS. */
async function aLogin(accounts: Accounts) {
  const recorded: Recorded[] = [];
  const clock = { now: T0, monotonic: 0 };
  const listener = await OperatorListener.start(
    someListener({
      hosts: ["depot.example"],
      trustProxy: true,
      access: { kind: "login", accounts, isSecure: true },
      now: () => clock.now,
      monotonic: () => clock.monotonic,
      record: (message, facts) => recorded.push({ message, facts }),
    }),
    Promise.resolve(someViews),
  );
  onTestFinished(() => listener[Symbol.asyncDispose]());
  const call = (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body?: unknown,
  ): Promise<Response> =>
    fetch(`http://127.0.0.1:${listener.port}${path}`, {
      method,
      redirect: "manual",
      headers: {
        "x-forwarded-proto": "https",
        "x-forwarded-for": "192.0.2.7",
        "x-forwarded-host": "depot.example",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const signIn = (name: string, password: string, headers = {}): Promise<Response> =>
    call("POST", "/api/v1/session", headers, { name, password });
  return { listener, recorded, clock, call, signIn };
}

const cookieOf = (response: Response): string => response.headers.getSetCookie()[0]?.split(";")[0] ?? "";

const tokenOf = (accounts: Accounts, role: Role, expiresIn: number | null = null): string => {
  const added = accounts.addToken(
    `${role}-${expiresIn}`,
    role,
    expiresIn === null ? null : millis(expiresIn),
    T0,
  );
  if (!added.ok) throw new Error(added.reason);
  return added.token;
};

const refused = (status: number): boolean => [401, 403, 421].includes(status);

/** The table, as it is served: rows of every route with a login. */
const table = (accounts: Accounts) =>
  routesOf(
    Promise.resolve(someViews),
    someListener({ access: { kind: "login", accounts, isSecure: true } }),
    null,
  );

test("every route answers each role as the table lists, and refuses a request without a role", async () => {
  const { accounts } = someAccounts();
  const login = await aLogin(accounts);
  const tokens = new Map(ROLES.map((role) => [role, tokenOf(accounts, role)]));
  const expired = tokenOf(accounts, "integrator", 1000);
  login.clock.now = after(T0, millis(2000));
  const walked: unknown[] = [];
  const wrong: unknown[] = [];
  for (const { method, path, role } of table(accounts)) {
    const url = path.replaceAll(/:\w+/g, "x");
    const expectAnswer = async (
      who: string,
      headers: Readonly<Record<string, string>>,
      isRight: (status: number) => boolean,
    ): Promise<void> => {
      const { status } = await login.call(method, url, headers, method === "GET" ? undefined : {});
      walked.push([who, method, path, status]);
      if (!isRight(status)) wrong.push([who, method, path, status]);
    };
    for (const [own, token] of tokens)
      await expectAnswer(own, { authorization: `Bearer ${token}` }, (status) =>
        role === null || includesRole(own, role) ? !refused(status) : status === 403,
      );
    // Routes with a limit of their own count by address.
    const another = { "x-forwarded-for": "192.0.2.8" };
    for (const [who, headers] of [
      ["no session", {}],
      ["expired token", { authorization: `Bearer ${expired}` }],
      ["unknown token", { authorization: "Bearer x" }],
      ["malformed token", { ...another, authorization: "Bearer" }],
      ["password of a proxy", { ...another, authorization: "Basic a2FyaTpodXNo" }],
    ] as const)
      await expectAnswer(who, headers, (status) => (role === null ? !refused(status) : status === 401));
    const integrator = { authorization: `Bearer ${tokens.get("integrator")}` };
    await expectAnswer(
      "foreign Host",
      { ...integrator, "x-forwarded-host": "evil.example" },
      (status) => status === 421,
    );
    for (const origin of [
      "https://evil.example",
      "null",
      "https://depot.example:8443",
      "http://depot.example",
    ])
      await expectAnswer(`Origin ${origin}`, { ...integrator, origin }, (status) =>
        method === "GET" ? !refused(status) : status === 403,
      );
    await expectAnswer("cross-site", { ...integrator, "sec-fetch-site": "cross-site" }, (status) =>
      method === "GET" ? !refused(status) : status === 403,
    );
    await expectAnswer(
      "own Origin",
      { ...integrator, origin: "https://depot.example" },
      (status) => !refused(status),
    );
  }
  expect(wrong).toEqual([]);
  expect(walked.length).toBeGreaterThan(100);
});

test("a session lasts from sign-in to sign-out, in a cookie that scripts and other sites do not get", async () => {
  const { accounts } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  const { signIn, call, recorded } = await aLogin(accounts);
  const signedIn = await signIn("kari", PASSWORD, { origin: "https://depot.example" });
  expect([signedIn.status, await signedIn.json()]).toEqual([
    201,
    { name: "Kari", role: "operator", via: "session" },
  ]);
  expect(signedIn.headers.getSetCookie()[0]).toMatch(
    /^setpointd_session=[^;]+; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Strict$/,
  );
  const cookie = cookieOf(signedIn);
  expect(await (await call("GET", "/api/v1/session", { cookie })).json()).toEqual({
    name: "Kari",
    role: "operator",
    via: "session",
  });
  expect((await call("GET", "/api/v1/status", { cookie })).status).toBe(200);
  const out = await call("DELETE", "/api/v1/session", { cookie });
  expect(out.status).toBe(204);
  expect((await call("GET", "/api/v1/status", { cookie })).status).toBe(401);
  expect(recorded).toEqual([
    { message: "Kari signed in", facts: { by: "Kari", role: "operator", from: "192.0.2.7" } },
    { message: "Kari signed out", facts: { by: "Kari", from: "192.0.2.7" } },
  ]);
});

test("behind a proxy with a password of its own, which the browser sends along, a user is signed in as ever", async () => {
  const { accounts } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  const { signIn, call } = await aLogin(accounts);
  const authorization = "Basic a2FyaTpodXNo";
  const cookie = cookieOf(await signIn("kari", PASSWORD, { authorization }));
  const own = await call("GET", "/api/v1/session", { authorization, cookie });
  expect([own.status, await own.json()]).toEqual([200, { name: "Kari", role: "operator", via: "session" }]);
});

test("a user who is removed is signed out at once, and a session ends after a week", async () => {
  const { accounts, again } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  await accounts.addUser("Ola", "viewer", PASSWORD, T0);
  const { signIn, call, clock } = await aLogin(accounts);
  const [kari, ola] = [cookieOf(await signIn("Kari", PASSWORD)), cookieOf(await signIn("Ola", PASSWORD))];
  again().remove("users", "Kari");
  expect((await call("GET", "/api/v1/status", { cookie: kari })).status).toBe(401);
  expect((await call("GET", "/api/v1/status", { cookie: ola })).status).toBe(200);
  clock.monotonic = 7 * 24 * 3_600_000 + 1;
  expect((await call("GET", "/api/v1/status", { cookie: ola })).status).toBe(401);
});

test("an id that was planted in the browser before the sign-in is worth nothing after it", async () => {
  const { accounts } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  const { signIn } = await aLogin(accounts);
  const first = cookieOf(await signIn("Kari", PASSWORD));
  const second = cookieOf(await signIn("Kari", PASSWORD, { cookie: first }));
  expect(second).not.toBe(first);
});

test("a password does not travel over a proxy without HTTPS", async () => {
  const { accounts } = someAccounts();
  const { signIn } = await aLogin(accounts);
  const refused = await signIn("Kari", PASSWORD, { "x-forwarded-proto": "http" });
  expect([refused.status, await refused.json()]).toMatchObject([
    403,
    { detail: expect.stringContaining("HTTPS") },
  ]);
});

test("failed attempts wait longer and longer, but not from this machine", async () => {
  const { accounts } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  const { signIn, recorded } = await aLogin(accounts);
  const statuses: number[] = [];
  for (let attempt = 0; attempt < 6; attempt++)
    statuses.push((await signIn("Kari", "wrong password")).status);
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  const late = await signIn("Kari", PASSWORD);
  expect([late.status, late.headers.get("retry-after")]).toEqual([429, "1"]);
  expect((await signIn("Kari", PASSWORD, { "x-forwarded-for": "127.0.0.1" })).status).toBe(201);
  expect(recorded[0]).toEqual({
    message: "signing in as Kari failed too often: the next attempt waits 1 s",
    facts: { name: "Kari", from: "192.0.2.7" },
  });
});

test("the delay doubles to its maximum, by address far longer than by name", () => {
  let now = 0;
  const lockout = new Lockout(() => now);
  const delays = Array.from({ length: 20 }, () => lockout.failed("192.0.2.7", "kari"));
  expect(delays.slice(3, 8)).toEqual([0, 1000, 2000, 4000, 8000]);
  expect(delays.at(-1)).toBe(15 * 60_000);
  expect(lockout.delay("192.0.2.8", "kari")).toBe(60_000);
  expect(lockout.delay("::1", "kari")).toBe(0);
  now = 60_000;
  expect([lockout.delay("192.0.2.8", "kari"), lockout.delay("192.0.2.7", "ola")]).toEqual([0, 14 * 60_000]);
  lockout.succeeded("192.0.2.7", "kari");
  expect(lockout.delay("192.0.2.7", "ola")).toBe(0);
});

test("only so many addresses and names are remembered: those that failed longest ago are forgotten", () => {
  const lockout = new Lockout(() => 0);
  for (let attempt = 0; attempt < 6; attempt += 1) lockout.failed("192.0.2.7", "kari");
  expect(lockout.delay("192.0.2.7", "kari")).toBe(2000);
  for (let n = 0; n < 4_998; n += 1) lockout.failed(`10.0.${Math.floor(n / 256)}.${n % 256}`, `x${n}`);
  expect(lockout.delay("192.0.2.7", "kari")).toBe(2000);
  for (let n = 0; n < 2; n += 1) lockout.failed(`10.1.0.${n}`, `y${n}`);
  expect(lockout.delay("192.0.2.7", "kari")).toBe(0);
});

test("sessions in memory are bounded, the oldest goes first, and one that is destroyed has ended", () => {
  const store = new SessionStore();
  const session = { cookie: {}, user: { name: "kari", since: 0 } } as never;
  for (let n = 0; n < 1000; n += 1) store.set(`s${n}`, session, done);
  store.set("s0", session, done);
  expect([store.has("s0"), store.has("s1"), store.has("s1000")]).toEqual([true, true, false]);
  store.set("s1000", session, done);
  expect([store.has("s0"), store.has("s1"), store.has("s1000")]).toEqual([true, false, true]);
  store.destroy("s0", done);
  expect(store.has("s0")).toBe(false);
});

test("a single address cannot try passwords without end", async () => {
  const { accounts } = someAccounts();
  const { signIn } = await aLogin(accounts);
  const statuses = new Set<number>();
  for (let attempt = 0; attempt < 25; attempt++)
    statuses.add((await signIn(`x${attempt}`, "", { "x-forwarded-for": "127.0.0.1" })).status);
  expect(statuses).toEqual(new Set([400, 429]));
});

test("the link for the first user works once, and only while there is no user", async () => {
  const { accounts } = someAccounts();
  const { listener, call } = await aLogin(accounts);
  const link = listener.firstLink ?? "";
  const code = link.split("once=")[1] ?? "";
  expect(await (await call("GET", link)).text()).toContain(`name="once" value="${code}"`);
  const form = (fields: Record<string, string>): Promise<Response> =>
    fetch(`http://127.0.0.1:${listener.port}/login`, {
      method: "POST",
      headers: { "x-forwarded-proto": "https", "x-forwarded-host": "depot.example" },
      body: new URLSearchParams(fields),
    });
  expect((await form({ name: "Eva", password: "short", once: code })).status).toBe(400);
  const both = await Promise.all([
    form({ name: "Eva", password: PASSWORD, once: code }),
    form({ name: "Mallory", password: PASSWORD, once: code }),
  ]);
  expect(both.map(({ status }) => status)).toEqual([200, 401]);
  expect(accounts.users).toMatchObject([{ name: "Eva", role: "integrator" }]);
  expect(await (await call("GET", link)).text()).toContain("expired or was used");
  const again = await aLogin(accounts);
  expect(again.listener.firstLink).toBeNull();
});

test("pages carry no script of their own, and are shown in no frame", async () => {
  const { accounts } = someAccounts();
  const { call } = await aLogin(accounts);
  const page = await call("GET", "/login");
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe");
  expect(page.headers.get("x-content-type-options")).toBe("nosniff");
  expect((await call("GET", "/login?once=%22%3E%3Cscript%3E")).status).toBe(400);
});

test("an open listener signs no user in, but refuses writes of foreign pages", async () => {
  const listener = await OperatorListener.start(someListener(), Promise.resolve(someViews));
  onTestFinished(() => listener[Symbol.asyncDispose]());
  const url = `http://127.0.0.1:${listener.port}/api/v1/session`;
  expect(await (await fetch(url)).json()).toEqual({ name: "loopback", role: "integrator", via: "open" });
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ name: "Kari", password: PASSWORD });
  expect((await fetch(url, { method: "POST", headers, body })).status).toBe(409);
  const foreign = { ...headers, origin: "https://evil.example" };
  expect((await fetch(url, { method: "POST", headers: foreign, body })).status).toBe(403);
});

test("over TLS the cookie is Secure, and a renewed certificate is served to new connections", async () => {
  using authority = new Authority();
  const pair = (name: string) => {
    const { cert, key } = authority.issue(name);
    return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  };
  const { accounts } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  await using listener = await OperatorListener.start(
    someListener({ tls: pair("first"), access: { kind: "login", accounts, isSecure: true } }),
    Promise.resolve(someViews),
  );
  const served: string[] = [];
  const ask = () =>
    new Promise<IncomingMessage>((done, failed) => {
      const body = JSON.stringify({ name: "Kari", password: PASSWORD });
      const to = { port: listener.port, host: "127.0.0.1", path: "/api/v1/session", method: "POST" };
      request({ ...to, ca: authority.caText, agent: false, headers: { "content-type": "application/json" } })
        .on("response", (response) => {
          const { socket } = response;
          if (socket instanceof TLSSocket) served.push(String(socket.getPeerCertificate().subject.CN));
          done(response.resume());
        })
        .on("error", failed)
        .end(body);
    });
  const answer = await ask();
  expect([answer.statusCode, answer.headers["set-cookie"]]).toEqual([
    201,
    [expect.stringMatching(/; HttpOnly; Secure; SameSite=Strict$/)],
  ]);
  expect(answer.headers["strict-transport-security"]).toBe("max-age=15552000");
  expect(listener.renew(pair("second"))).toBeNull();
  expect(listener.renew({ cert: "none", key: "none" })).toEqual(expect.any(String));
  await ask();
  expect(served).toEqual(["first", "second"]);
});
