import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";

import { after, millis } from "../../src/domain/units.ts";
import { accountName, includesRole, passwordFault } from "../../src/operator/accounts.ts";
import { someAccounts, T0 } from "../support/aListener.ts";

const PASSWORD = "a long password";

test("a user signs in with the password, under any spelling of the name", async () => {
  const { accounts } = someAccounts();
  expect(await accounts.addUser("Kari", "operator", PASSWORD, T0)).toEqual({ ok: true });
  expect(await accounts.signIn("kari", PASSWORD)).toMatchObject({ name: "Kari", role: "operator" });
  expect(await accounts.signIn("Kari", `${PASSWORD} `)).toBeNull();
  expect(await accounts.signIn("Ola", PASSWORD)).toBeNull();
});

test("neither a password nor a token stands in the file", async () => {
  const { accounts, path } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  const added = accounts.addToken("wall", "viewer", null, T0);
  const text = readFileSync(path, "utf8");
  expect(text).not.toContain(PASSWORD);
  expect(text).not.toContain(added.ok ? added.token : "?");
  expect(text).toContain('"addedAt":"2026-11-23T05:30:00.000Z"');
});

test("a name stands for one account, user or token", async () => {
  const { accounts } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  expect(await accounts.addUser("KARI", "viewer", PASSWORD, T0)).toEqual({
    ok: false,
    reason: "there is a user KARI already",
  });
  expect(accounts.addToken("kari", "viewer", null, T0)).toMatchObject({ ok: false });
  expect(accounts.remove("tokens", "kari")).toEqual({ ok: false, reason: "there is no token kari" });
});

test("a change by another process counts at once, and ends the user's sessions", async () => {
  const { accounts, again } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  const user = await accounts.signIn("Kari", PASSWORD);
  if (user === null || user === "busy") throw new Error("not signed in");
  expect(accounts.signedIn(user)).toMatchObject({ name: "Kari", role: "operator" });
  const verb = again();
  verb.remove("users", "Kari");
  await verb.addUser("Kari", "integrator", "another password", T0);
  expect(accounts.signedIn(user)).toBeNull();
  expect(accounts.users).toMatchObject([{ name: "Kari", role: "integrator" }]);
});

test("a token ends at its time", () => {
  const { accounts } = someAccounts();
  const added = accounts.addToken("wall", "viewer", millis(1000), T0);
  if (!added.ok) throw new Error(added.reason);
  expect(accounts.tokenHolder(added.token, after(T0, millis(999)))).toMatchObject({ name: "wall" });
  expect(accounts.tokenHolder(added.token, after(T0, millis(1000)))).toBe("expired");
  expect(accounts.tokenHolder(`${added.token}x`, T0)).toBeNull();
});

test("a damaged file lets no user in, and is neither empty nor overwritten", async () => {
  const { accounts, path } = someAccounts();
  await accounts.addUser("Kari", "operator", PASSWORD, T0);
  writeFileSync(path, "{ half");
  expect([accounts.users, accounts.isEmpty, accounts.fault]).toEqual([
    [],
    false,
    expect.stringContaining("access.json cannot be used"),
  ]);
  expect(accounts.addToken("wall", "viewer", null, T0)).toMatchObject({ ok: false });
  expect(readFileSync(path, "utf8")).toBe("{ half");
});

test("a lock that a killed process left does not stay in the way", async () => {
  const { accounts, path } = someAccounts();
  writeFileSync(`${path}.lock`, "");
  expect(accounts.addToken("wall", "viewer", null, T0)).toMatchObject({ ok: true });
});

test("many attempts at once are refused instead of filling the memory", async () => {
  const { accounts } = someAccounts();
  const all = await Promise.all(Array.from({ length: 12 }, () => accounts.signIn("Kari", PASSWORD)));
  expect(all.filter((answer) => answer === "busy")).toHaveLength(4);
});

test("a role includes the smaller ones", () => {
  expect(includesRole("integrator", "viewer")).toBe(true);
  expect(includesRole("viewer", "operator")).toBe(false);
});

test("names and passwords have bounds", () => {
  expect(accountName.safeParse("Åse.Bø@depot").success).toBe(true);
  for (const bad of ["", " kari", "a\nb", "x".repeat(65), "<b>"])
    expect(accountName.safeParse(bad).success).toBe(false);
  expect([passwordFault("123456789"), passwordFault("1234567890")]).toEqual([expect.any(String), null]);
});
