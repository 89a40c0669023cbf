import { tmpdir } from "node:os";
import { join } from "node:path";

import { pino } from "pino";
import { expect, test } from "vitest";

import { systemdNotify } from "../../src/platform/systemd.ts";
import { ServiceManager, systemdInstalled } from "../support/serviceManager.ts";
import { waitFor } from "../support/waitFor.ts";

const log = pino({ level: "silent" });
test("without $NOTIFY_SOCKET no notification is sent", () => {
  expect(systemdNotify({}, log)).toBeNull();
});

test("a notification to a service manager that is not there is a warning, not an end", async () => {
  const warned: string[] = [];
  const loud = pino({ level: "warn" }, { write: (line: string) => void warned.push(line) });
  const env = { PATH: process.env["PATH"], NOTIFY_SOCKET: join(tmpdir(), "nobody-listens-here") };
  await systemdNotify(env, loud)?.("READY=1");
  expect(warned).toHaveLength(1);
  expect(warned[0]).toContain("systemd-notify failed");
});

test.skipIf(!systemdInstalled)("the service manager receives each notification whole", async () => {
  using manager = await ServiceManager.start();
  const notify = systemdNotify({ PATH: process.env["PATH"], NOTIFY_SOCKET: manager.socket }, log);
  await notify?.("READY=1", "STATUS=controlling");
  await waitFor(() => manager.heard.includes("READY=1\nSTATUS=controlling"));
});
