import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

import { freePort } from "./freePort.ts";
import { waitFor } from "./waitFor.ts";

/** Debian's package has a name of its own. */
const binary = (process.env["PATH"] ?? "")
  .split(delimiter)
  .flatMap((place) => [join(place, "prometheus-alertmanager"), join(place, "alertmanager")])
  .find((path) => existsSync(path));

/** False: use `test.skipIf(!alertmanagerAvailable)`. Where CI is set, a test that needs it fails instead. */
export const alertmanagerAvailable = binary !== undefined || Boolean(process.env["CI"]);

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startsAt: string;
  readonly endsAt: string;
}

/** A real Alertmanager on loopback that notifies `hook` of each change at once. */
export interface Alertmanager extends AsyncDisposable {
  readonly url: string;
  /** Alerts that are active. */
  readonly alerts: () => Promise<readonly Alert[]>;
}

export async function anAlertmanager(hook: string): Promise<Alertmanager> {
  if (binary === undefined) throw new Error("prometheus-alertmanager is not installed");
  const directory = await mkdtemp(join(tmpdir(), "alertmanager-"));
  const config = join(directory, "alertmanager.yml");
  await writeFile(
    config,
    JSON.stringify({
      route: { receiver: "hook", group_wait: "0s", group_interval: "1s", group_by: ["kind"] },
      receivers: [{ name: "hook", webhook_configs: [{ url: hook, send_resolved: true }] }],
    }),
  );
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    binary,
    [
      `--config.file=${config}`,
      `--storage.path=${directory}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--cluster.listen-address=",
    ],
    { stdio: "ignore" },
  );
  const isUp = (): Promise<boolean> =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitFor(isUp, { timeoutMs: 15_000 });
  return {
    url,
    alerts: async () => (await (await fetch(`${url}/api/v2/alerts`)).json()) as readonly Alert[],
    async [Symbol.asyncDispose]() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
