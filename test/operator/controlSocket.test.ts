import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

import { askDaemon } from "../../src/cli/daemon.ts";
import { type ControlDoor, ControlSocket } from "../../src/operator/controlSocket.ts";

const door: ControlDoor = {
  audit: (query) => [{ ...query }],
  verify: () => ({ ok: true, rows: 3 }),
  limited: () => [{ charger: "bay-01", told: "10 A" }],
  release: async (charger) => ({ ok: charger !== "bay-99", words: `freed ${charger ?? "all"}` }),
};

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "setpointd-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

async function opened(state: string): Promise<ControlSocket> {
  const socket = await ControlSocket.start(join(state, "control.sock"), door);
  if (typeof socket === "string") throw new Error(socket);
  onTestFinished(() => socket[Symbol.asyncDispose]());
  return socket;
}

test("only the owner of the state can speak to it", async () => {
  const state = folder();
  await opened(state);
  expect(statSync(join(state, "control.sock")).mode & 0o777).toBe(0o600);
});

test("verbs are answered", async () => {
  const state = folder();
  await opened(state);
  expect(await askDaemon(state, "GET", "/audit?event=EV-1")).toMatchObject({
    status: 200,
    body: [{ event: "EV-1" }],
  });
  expect(await askDaemon(state, "GET", "/audit/verify")).toMatchObject({ body: { ok: true, rows: 3 } });
  expect(await askDaemon(state, "POST", "/release", { charger: null })).toMatchObject({
    body: { words: "freed all" },
  });
  expect(await askDaemon(state, "POST", "/release", { charger: "bay-99" })).toMatchObject({
    body: { ok: false },
  });
});

test("what makes no sense is refused", async () => {
  const state = folder();
  await opened(state);
  expect(await askDaemon(state, "GET", "/audit?limit=many")).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/release", {})).toMatchObject({ status: 400 });
  expect(await askDaemon(state, "POST", "/release", { charger: 7 })).toMatchObject({ status: 400 });
});

test("what a killed daemon left behind is replaced", async () => {
  const state = folder();
  writeFileSync(join(state, "control.sock"), "");
  await opened(state);
  expect(await askDaemon(state, "GET", "/audit/verify")).toMatchObject({ kind: "answered" });
});

test("where no daemon runs, the verb is told so", async () => {
  expect(await askDaemon(folder(), "GET", "/audit/verify")).toEqual({ kind: "absent" });
});

test("a state directory too deep for a socket is a reason, not a crash", async () => {
  const deep = join(folder(), "d".repeat(120));
  expect(await ControlSocket.start(join(deep, "control.sock"), door)).toContain("too long");
  expect(await ControlSocket.start(join(folder(), "nowhere", "control.sock"), door)).toContain(
    "cannot be listened on",
  );
});
