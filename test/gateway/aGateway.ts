import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What a Debian gateway has before setpointd comes: its base system, and the libraries that the package asks for. */
const LIBRARIES = "libstdc++6,libatomic1,systemd";

/** Root, for debootstrap, chroot and a network namespace; and the tools of Debian. */
export const canInstall =
  process.getuid?.() === 0 &&
  ["debootstrap", "dpkg-deb"].every((tool) => spawnSync(tool, ["--version"]).error === undefined);

/** A clean Debian in a folder, without a network: what is run in it can fetch nothing. */
export class Gateway implements Disposable {
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  static make(): Gateway {
    const root = mkdtempSync(join(tmpdir(), "gateway-"));
    const options = ["--variant=minbase", `--include=${LIBRARIES}`];
    execFileSync("debootstrap", [...options, "bookworm", root], { stdio: "ignore" });
    return new Gateway(root);
  }

  path(inside: string): string {
    return join(this.root, inside);
  }

  run(...command: readonly string[]): { readonly code: number | null; readonly out: string } {
    const { status, stdout, stderr } = spawnSync("unshare", this.#arguments(command), {
      env: ENVIRONMENT,
      encoding: "utf8",
    });
    return { code: status, out: `${stdout}${stderr}` };
  }

  /** In the background, with a loopback interface; end it with a signal. */
  start(...command: readonly string[]): ChildProcess {
    return spawn("unshare", this.#arguments(command), { env: ENVIRONMENT });
  }

  #arguments(command: readonly string[]): readonly string[] {
    // Without the mounts of the machine either: gone with the process.
    const script = 'ip link set lo up 2>/dev/null; mount --bind /dev "$0/dev"; exec chroot "$0" "$@"';
    return ["--net", "--mount", "sh", "-c", script, this.root, ...command];
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
