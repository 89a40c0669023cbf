import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";

import { waitFor } from "./waitFor.ts";

const SCRIPT = new URL("boot.sh", import.meta.url).pathname;
const SYSTEMD = "/usr/lib/systemd/systemd";
const TOOLS = ["unshare", "nsenter", "setpriv", "pivot_root", "ip", "dpkg", "runuser"];

/** Folder where cgroup2 is mounted, for a cgroup of the machine. Undefined: it is not mounted. */
const cgroupTree = (): string | undefined =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .find((line) => line.includes(" - cgroup2 "))
    ?.split(" ")[4];

/** Reason why no second systemd can boot here. Null: it can. Under CI a missing program is an error. */
export function bootMissing(): string | null {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "root on Linux is needed";
  const elsewhere = ["/usr", "/etc", "/var"].filter((path) => statSync(path).dev !== statSync("/").dev);
  if (elsewhere.length > 0) return `other file systems than that of /: ${elsewhere.join(", ")}`;
  const tree = cgroupTree();
  if (tree === undefined) return "cgroup2 is not mounted";
  try {
    const trial = join(tree, `setpointd-trial-${process.pid}`);
    mkdirSync(trial);
    rmdirSync(trial);
  } catch (error) {
    return `no cgroup can be made: ${String(error)}`;
  }
  const missing = TOOLS.filter((tool) => spawnSync("which", [tool]).status !== 0);
  if (!existsSync(SYSTEMD)) missing.push(SYSTEMD);
  if (missing.length > 0) {
    const reason = `missing programs: ${missing.join(", ")}`;
    if (process.env["CI"] !== undefined) throw new Error(reason);
    return reason;
  }
  const mounts =
    'mount -t tmpfs trial /mnt && mkdir /mnt/a /mnt/b /mnt/c && mount -t overlay -o "$0" trial /mnt/c';
  const overlay = "lowerdir=/,upperdir=/mnt/a,workdir=/mnt/b";
  const namespaces = ["--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup", "--fork"];
  const { status, stderr } = spawnSync("unshare", [...namespaces, "sh", "-c", mounts, overlay]);
  return status === 0 ? null : `no namespaces or no overlay can be made: ${String(stderr).trim()}`;
}

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** systemd with the file system of this machine, in namespaces of its own: see boot.sh. */
export class BootedMachine implements AsyncDisposable {
  readonly #supervisor: ChildProcess;
  readonly #pid: string;

  private constructor(supervisor: ChildProcess, pid: string) {
    this.#supervisor = supervisor;
    this.#pid = pid;
  }

  /** Resolves once it has booted. `file` stands in its /run. */
  static async boot(file: string): Promise<BootedMachine> {
    const root = mkdtempSync(join(tmpdir(), "machine-"));
    const cgroup = join(cgroupTree() ?? "", `setpointd-${basename(root)}`);
    // The supervisor has a group of its own: a Ctrl-C ends it by the end of its input, and it tidies up.
    const supervisor = spawn("sh", [SCRIPT, cgroup, root, file], { detached: true });
    let out = "";
    let complaint = "";
    supervisor.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    supervisor.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
    await waitFor(() => out.endsWith("\n") || complaint !== "");
    if (complaint !== "") throw new Error(complaint);
    const machine = new BootedMachine(supervisor, out.trim());
    await waitFor(async () => (await machine.run("systemctl", "is-active", "trial.target")).code === 0, {
      everyMs: 100,
    });
    return machine;
  }

  /** Runs a program to its end, as root. */
  async run(...command: readonly string[]): Promise<Ran> {
    return this.#run(command);
  }

  /** The output of a program that has to succeed. */
  async output(...command: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.#run(command);
    if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${stdout}${stderr}`);
    return stdout;
  }

  async write(path: string, text: string, mode = "644", group = "root"): Promise<void> {
    const script = 'mkdir -p "$(dirname "$0")" && cat >"$0" && chmod "$1" "$0" && chgrp "$2" "$0"';
    const { code, stderr } = await this.#run(["sh", "-c", script, path, mode, group], text);
    if (code !== 0) throw new Error(stderr);
  }

  /** A property of a unit as systemd has it, e.g. `ActiveState`. */
  async property(unit: string, name: string): Promise<string> {
    return (await this.output("systemctl", "show", "--value", `--property=${name}`, unit)).trim();
  }

  /** Messages of a unit and about it, one per line. */
  async journal(unit: string): Promise<string> {
    return this.output("journalctl", "--unit", unit, "--output=cat", "--no-pager");
  }

  async #run(command: readonly string[], input = ""): Promise<Ran> {
    const env = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
    const running = promisify(execFile)("nsenter", ["--target", this.#pid, "--all", ...command], { env });
    running.child.stdin?.on("error", () => undefined);
    running.child.stdin?.end(input);
    return running.then(
      (output) => ({ code: 0, ...output }),
      (error: Ran) => ({ code: error.code, stdout: error.stdout, stderr: error.stderr }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#supervisor, "close");
    this.#supervisor.stdin?.end();
    await ended;
  }
}
