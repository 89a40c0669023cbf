import { readFileSync, writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";

import type { Accounts } from "../../../src/operator/accounts.ts";
import { OperatorListener } from "../../../src/operator/http/server.ts";
import { someAccounts, someListener, someViews, T0 } from "../../support/aListener.ts";

const PASSWORD = "a long password";

/** A listener with a login, and an integrator who calls it. */
async function aLogin(accounts: Accounts | null) {
  const recorded: string[] = [];
  const listener = await OperatorListener.start(
    someListener({
      access: accounts === null ? { kind: "open" } : { kind: "login", accounts, isSecure: false },
      now: () => T0,
      record: (message) => recorded.push(message),
    }),
    Promise.resolve(someViews),
  );
  onTestFinished(() => listener[Symbol.asyncDispose]());
  const made = accounts?.addToken("boss", "integrator", null, T0);
  const token = made?.ok === true ? made.token : "none";
  const call = async (method: string, path: string, body?: unknown, bearer = token) => {
    const answer = await fetch(`http://127.0.0.1:${listener.port}/api/v1/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${bearer}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return {
      status: answer.status,
      body: text === "" ? null : (JSON.parse(text) as Record<string, unknown>),
      text,
    };
  };
  return { listener, recorded, call };
}

test("an integrator adds, lists and removes users, and the record has each change with both names", async () => {
  const { accounts } = someAccounts();
  const { call, recorded } = await aLogin(accounts);
  const kari = { name: "kari", role: "integrator", addedAt: "2026-11-23T05:30:00.000Z" };
  expect(await call("POST", "users", { name: "kari", role: "integrator", password: PASSWORD })).toMatchObject(
    {
      status: 201,
      body: kari,
    },
  );
  expect(await accounts.signIn("kari", PASSWORD)).toMatchObject({ name: "kari" });
  expect((await call("POST", "users", { name: "ben", role: "viewer", password: PASSWORD })).status).toBe(201);
  const listed = await call("GET", "users");
  expect(listed.body).toMatchObject([kari, { name: "ben", role: "viewer" }]);
  expect(listed.text).not.toMatch(/hash|salt|password/);
  expect(await call("DELETE", "users/ben")).toMatchObject({ status: 204, body: null });
  expect(await call("DELETE", "users/ben")).toMatchObject({
    status: 404,
    body: { detail: "there is no user ben" },
  });
  expect(recorded).toEqual([
    "boss added the user kari as integrator",
    "boss added the user ben as viewer",
    "boss removed the user ben",
  ]);
});

test("the last integrator cannot be removed over the network", async () => {
  const { accounts } = someAccounts();
  await accounts.addUser("kari", "integrator", PASSWORD, T0);
  const { call, recorded } = await aLogin(accounts);
  expect(await call("DELETE", "users/kari")).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining("the last integrator") },
  });
  expect((await call("DELETE", "users/KARI")).status).toBe(409);
  await accounts.addUser("ben", "integrator", PASSWORD, T0);
  expect((await call("DELETE", "users/kari")).status).toBe(204);
  expect(recorded).toEqual(["boss removed the user kari"]);
});

test("a viewer is removed over the network, also where only a token is an integrator", async () => {
  const { accounts } = someAccounts();
  await accounts.addUser("ben", "viewer", PASSWORD, T0);
  const { call } = await aLogin(accounts);
  expect((await call("DELETE", "users/ben")).status).toBe(204);
});

test("an integrator makes, lists and removes tokens: the secret is in one answer only", async () => {
  const { accounts } = someAccounts();
  const { call, recorded } = await aLogin(accounts);
  const made = await call("POST", "tokens", { name: "wall", role: "viewer", expires: "90d" });
  expect(made).toMatchObject({
    status: 201,
    body: { name: "wall", role: "viewer", expiresAt: "2027-02-21T05:30:00.000Z" },
  });
  const secret = String(made.body?.["token"]);
  expect((await call("GET", "session", undefined, secret)).body).toMatchObject({
    name: "wall",
    role: "viewer",
  });
  expect((await call("POST", "tokens", { name: "feed", role: "viewer" })).body).toMatchObject({
    expiresAt: null,
  });
  const listed = await call("GET", "tokens");
  expect(listed.body).toMatchObject([{ name: "boss" }, { name: "wall" }, { name: "feed", expiresAt: null }]);
  expect(listed.text).not.toMatch(/hash|setpointd_/);
  expect((await call("POST", "tokens", { name: "WALL", role: "viewer" })).status).toBe(409);
  expect((await call("DELETE", "tokens/wall")).status).toBe(204);
  expect((await call("GET", "session", undefined, secret)).status).toBe(401);
  expect(recorded).toEqual([
    "boss added the token wall as viewer",
    "boss added the token feed as viewer",
    "boss removed the token wall",
  ]);
});

test("mistakes are answered with their path, change nothing and are not on record", async () => {
  const { accounts, path } = someAccounts();
  const { call, recorded } = await aLogin(accounts);
  const before = readFileSync(path, "utf8");
  const user = { name: "kari", role: "viewer", password: PASSWORD };
  for (const [body, field] of [
    [{ ...user, name: "" }, "name"],
    [{ ...user, role: "boss" }, "role"],
    [{ ...user, password: "short" }, "password"],
    [{ ...user, more: 1 }, "more"],
  ] as const) {
    const answer = await call("POST", "users", body);
    expect([answer.status, answer.body?.["errors"]]).toMatchObject([400, [{ path: field }]]);
    expect(answer.text).not.toContain("short");
  }
  expect((await call("POST", "users", { ...user, name: "boss" })).status).toBe(409);
  for (const expires of ["soon", "0s"])
    expect(await call("POST", "tokens", { name: "x", role: "viewer", expires })).toMatchObject({
      status: 400,
      body: { errors: [{ path: "expires" }] },
    });
  expect(readFileSync(path, "utf8")).toBe(before);
  expect(recorded).toEqual([]);
});

test("a damaged file lets no user in, is reported, and is not overwritten", async () => {
  const { accounts, path } = someAccounts();
  const { call, listener } = await aLogin(accounts);
  expect(listener.accessFault).toBeNull();
  writeFileSync(path, '{"v":1,"users":[{"name":"mallory","role":"integrator"}],"tokens":[]}');
  expect((await call("GET", "status")).status).toBe(401);
  expect((await call("POST", "users", { name: "x", role: "integrator", password: PASSWORD })).status).toBe(
    401,
  );
  expect((await call("POST", "session", { name: "mallory", password: PASSWORD })).status).toBe(401);
  expect(listener.accessFault).toContain("access.json cannot be used");
  expect(readFileSync(path, "utf8")).toContain("mallory");
});

test("a listener without a login has no users", async () => {
  const { call, listener } = await aLogin(null);
  expect(listener.accessFault).toBeNull();
  for (const path of ["users", "tokens"])
    expect(await call("GET", path)).toMatchObject({
      status: 409,
      body: { detail: "this listener has no login: operator.access is open" },
    });
});
