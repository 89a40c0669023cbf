import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { waitFor } from "./waitFor.ts";

/** What is needed comes with systemd: `systemd-notify`, and `systemd-socket-activate` to listen with. */
export const systemdInstalled = spawnSync("systemd-notify", ["--version"]).error === undefined;

/** Someone who hears what a service tells its manager, at a real socket. */
export class ServiceManager implements Disposable {
  readonly socket: string;
  /** Everything that was told, a line each. */
  heard = "";
  readonly #end: () => void;

  private constructor(socket: string, end: () => void) {
    this.socket = socket;
    this.#end = end;
  }

  /** Resolves once it listens. */
  static async start(): Promise<ServiceManager> {
    const directory = mkdtempSync(join(tmpdir(), "notify-"));
    const socket = join(directory, "notify");
    // The socket comes as descriptor 3; each datagram is read whole.
    const args = [
      "--datagram",
      `--listen=${socket}`,
      "sh",
      "-c",
      "while dd bs=64k count=1 <&3; do echo; done",
    ];
    const listener = spawn("systemd-socket-activate", args, {
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    const manager = new ServiceManager(socket, () => {
      // It has become a shell with a child by now: the group of them.
      if (listener.pid !== undefined) process.kill(-listener.pid);
      rmSync(directory, { recursive: true, force: true });
    });
    listener.stdout.on("data", (chunk: Buffer) => (manager.heard += chunk.toString()));
    await waitFor(() => existsSync(socket));
    return manager;
  }

  [Symbol.dispose](): void {
    this.#end();
  }
}
