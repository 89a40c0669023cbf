import { spawn, type ChildProcess } from "node:child_process";
import { pbkdf2Sync, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { freePort } from "./freePort.ts";
import { waitFor } from "./waitFor.ts";

/** Debian puts it where the PATH of an ordinary user does not look. */
const PLACES = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
const binary = PLACES.map((place) => join(place, "mosquitto")).find((path) => existsSync(path));

/** False: use `test.skipIf(!mosquittoAvailable)`. Where CI is set, a test that needs it fails instead. */
export const mosquittoAvailable = binary !== undefined || Boolean(process.env["CI"]);

export interface MosquittoOptions {
  readonly port?: number;
  /** Password by user name; with users, nobody is anonymous. */
  readonly users?: Readonly<Record<string, string>>;
  /** Lines of an ACL file, e.g. `topic readwrite #`. */
  readonly acl?: readonly string[];
  /** Further configuration lines, after that of the one listener. */
  readonly extra?: readonly string[];
}

/** A real mosquitto process on loopback, without persistence: what it knew is gone with it. */
export class Mosquitto implements AsyncDisposable {
  readonly port: number;
  readonly #directory: string;
  #child: ChildProcess;

  private constructor(port: number, directory: string, child: ChildProcess) {
    this.port = port;
    this.#directory = directory;
    this.#child = child;
  }

  /** Resolves once it accepts connections. */
  static async start({ port, users, acl, extra = [] }: MosquittoOptions = {}): Promise<Mosquitto> {
    const directory = await mkdtemp(join(tmpdir(), "mosquitto-"));
    const listener = port ?? (await freePort());
    const lines = [
      // As root it would become another user, who cannot read its files.
      `user ${userInfo().username}`,
      "persistence false",
      `allow_anonymous ${users === undefined}`,
    ];
    if (users !== undefined) {
      await writePasswords(directory, users);
      lines.push(`password_file ${join(directory, "passwords")}`);
    }
    if (acl !== undefined) {
      await writeFile(join(directory, "acl"), `${acl.join("\n")}\n`);
      lines.push(`acl_file ${join(directory, "acl")}`);
    }
    lines.push(`listener ${listener} 127.0.0.1`, ...extra);
    await writeFile(join(directory, "mosquitto.conf"), `${lines.join("\n")}\n`);
    return new Mosquitto(listener, directory, await launch(directory, listener));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.port}`;
  }

  /** Still there for TCP, and silent: what a hung host or a dropped network looks like (F81). */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  /** No goodbye. */
  async kill(): Promise<void> {
    await ended(this.#child, "SIGKILL");
  }

  /** The same port, and nothing remembered (F85). */
  async start(): Promise<void> {
    this.#child = await launch(this.#directory, this.port);
  }

  /** Takes effect at once; who is connected stays. */
  async changePasswords(users: Readonly<Record<string, string>>): Promise<void> {
    await writePasswords(this.#directory, users);
    this.#child.kill("SIGHUP");
  }

  /** As `changePasswords`. There must have been an access list. */
  async changeAcl(acl: readonly string[]): Promise<void> {
    await writeFile(join(this.#directory, "acl"), `${acl.join("\n")}\n`);
    this.#child.kill("SIGHUP");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await ended(this.#child, "SIGKILL");
    await rm(this.#directory, { recursive: true, force: true });
  }
}

async function launch(directory: string, port: number): Promise<ChildProcess> {
  if (binary === undefined) {
    throw new Error("mosquitto is not installed (apt-get install mosquitto): broker tests cannot run");
  }
  const child = spawn(binary, ["-c", join(directory, "mosquitto.conf")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let complaints = "";
  child.stderr?.on("data", (chunk: Buffer) => (complaints += chunk.toString()));
  await waitFor(() => {
    if (child.exitCode !== null) throw new Error(`mosquitto ended at once: ${complaints}`);
    return accepts(port);
  });
  return child;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((answer) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      answer(true);
    });
    socket.once("error", () => answer(false));
  });
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await gone;
}

/** Mosquitto's own format: PBKDF2 with SHA-512. */
async function writePasswords(directory: string, users: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(users).map(([name, password]) => {
    const salt = randomBytes(12);
    const hash = pbkdf2Sync(password, salt, 101, 64, "sha512");
    return `${name}:$7$101$${salt.toString("base64")}$${hash.toString("base64")}\n`;
  });
  await writeFile(join(directory, "passwords"), lines.join(""), { mode: 0o600 });
}
