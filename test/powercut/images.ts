import { execFileSync } from "node:child_process";
import { closeSync, copyFileSync, mkdirSync, openSync, readFileSync, truncateSync } from "node:fs";
import { basename, join } from "node:path";

/** A file system in a file, ext4 with its own journal, mounted through a loop device. */
export class DiskImage implements Disposable {
  readonly file: string;
  readonly mounted: string;
  readonly #device: string;

  private constructor(file: string, mounted: string) {
    this.file = file;
    this.mounted = mounted;
    run("mount", "-o", "loop", file, mounted);
    this.#device = basename(run("losetup", "-j", file, "-n", "-O", "NAME").trim());
  }

  static make(folder: string, name: string, megabytes: number): DiskImage {
    const [file, mounted] = places(folder, name);
    closeSync(openSync(file, "w"));
    truncateSync(file, megabytes * 1024 * 1024);
    run("mkfs.ext4", "-q", "-F", file);
    return new DiskImage(file, mounted);
  }

  /**
   * What would be left if the power went now: what has reached the device, not what waits in memory. Taken again
   * while anything was written to the device meanwhile, as a cut is one moment.
   */
  cut(folder: string, name: string): DiskImage {
    const [file, mounted] = places(folder, name);
    for (let before = ""; before !== this.#writes();) {
      before = this.#writes();
      copyFileSync(this.file, file);
    }
    return new DiskImage(file, mounted);
  }

  /** Requests and sectors written to the device so far, and requests under way. */
  #writes(): string {
    const counts = readFileSync(`/sys/block/${this.#device}/stat`, "latin1").trim().split(/\s+/);
    return [counts[4], counts[6], counts[8]].join(" ");
  }

  [Symbol.dispose](): void {
    run("umount", "-l", this.mounted);
  }
}

function places(folder: string, name: string): readonly [string, string] {
  const mounted = join(folder, name);
  mkdirSync(mounted, { recursive: true });
  return [`${mounted}.img`, mounted];
}

const run = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
