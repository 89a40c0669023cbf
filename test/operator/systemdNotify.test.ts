import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";

import { systemdNotify } from "../../src/operator/systemdNotify.ts";
import { waitFor } from "../support/waitFor.ts";

const log = pino({ level: "silent" });
/** Both come with systemd. */
const systemdInstalled = spawnSync("systemd-notify", ["--version"]).status === 0;

function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "notify-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

test("without $NOTIFY_SOCKET there is nobody to tell", () => {
  expect(systemdNotify({}, log)).toBeNull();
});

test("telling a service manager that is not there is a warning, not an end", async () => {
  const warned: string[] = [];
  const loud = pino({ level: "warn" }, { write: (line: string) => void warned.push(line) });
  const env = { PATH: process.env["PATH"], NOTIFY_SOCKET: join(aDirectory(), "nobody") };
  await systemdNotify(env, loud)?.("READY=1");
  expect(warned).toHaveLength(1);
  expect(warned[0]).toContain("the service manager could not be told");
});

test.skipIf(!systemdInstalled)("the service manager hears what it is told, whole and in order", async () => {
  const socket = join(aDirectory(), "notify");
  const listener = spawn("systemd-socket-activate", [
    "--datagram",
    `--listen=${socket}`,
    ...["sh", "-c", "exec cat <&3"],
  ]);
  onTestFinished(() => void listener.kill());
  let heard = "";
  listener.stdout.on("data", (chunk: Buffer) => (heard += chunk.toString()));
  await waitFor(() => existsSync(socket));
  const notify = systemdNotify({ PATH: process.env["PATH"], NOTIFY_SOCKET: socket }, log);
  await notify?.("READY=1", "STATUS=controlling");
  await waitFor(() => heard.includes("READY=1\nSTATUS=controlling"));
});
