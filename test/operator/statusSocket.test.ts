import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

import { askSocket } from "../../src/cli/daemonClient.ts";
import { type FailureOptions, statusSocket } from "../../src/operator/statusSocket.ts";

const FAILURES: FailureOptions = { passing: () => null, onError: () => {} };

function socketPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "setpointd-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "status.sock");
}

async function opened(path: string): Promise<void> {
  const socket = await statusSocket(path, () => ({ site: "depot" }), FAILURES);
  if (typeof socket === "string") throw new Error(socket);
  onTestFinished(() => socket[Symbol.asyncDispose]());
}

test("the daemon's group may read only the status", async () => {
  const path = socketPath();
  await opened(path);
  expect(statSync(path).mode & 0o777).toBe(0o660);
  expect(await askSocket(path, "GET", "/status")).toMatchObject({ status: 200, body: { site: "depot" } });
  expect(await askSocket(path, "POST", "/release", { charger: null })).toMatchObject({ status: 404 });
});

test("a user who may not ask the daemon is told who may", async () => {
  const path = socketPath();
  await opened(path);
  chmodSync(dirname(path), 0o755);
  chmodSync(path, 0);
  // Root may use every socket.
  const user = process.geteuid?.();
  if (user === 0) process.seteuid?.("nobody");
  onTestFinished(() => process.seteuid?.(user ?? 0));
  expect(await askSocket(path, "GET", "/status")).toEqual({
    kind: "failed",
    reason: `the running daemon cannot be asked: this user may not use ${path}. Root may, and a member of the daemon's group may ask for the status`,
  });
});

test("the socket of a killed daemon is replaced", async () => {
  const path = socketPath();
  await opened(path);
  await opened(path);
  expect(await askSocket(path, "GET", "/status")).toMatchObject({ status: 200 });
});

test("a path that cannot be bound gives a reason, not a crash", async () => {
  expect(await statusSocket(`/tmp/${"x".repeat(120)}`, () => null, FAILURES)).toContain("too long");
  expect(await statusSocket("/nowhere/at/all.sock", () => null, FAILURES)).toContain("cannot be listened on");
});
