import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
