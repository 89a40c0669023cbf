import { execFile, execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";

import { freePort } from "./freePort.ts";

const run = promisify(execFile);
const BASE = "/usr/lib/postgresql";

/** Folder of the newest server programs on this machine. Null: none. */
const programs = (): string | null => {
  const versions = existsSync(BASE) ? readdirSync(BASE).toSorted((a, b) => Number(b) - Number(a)) : [];
  const found = versions
    .map((version) => join(BASE, version, "bin"))
    .find((path) => existsSync(join(path, "initdb")));
  return found ?? null;
};

/** Why tests of PostgreSQL cannot run here. Null: they can. Under CI a missing server is an error. */
export function postgresMissing(): string | null {
  if (programs() !== null) return null;
  const reason = `no PostgreSQL server in ${BASE}: apt-get install postgresql`;
  if (process.env["CI"] !== undefined) throw new Error(reason);
  console.warn(`tests of PostgreSQL are skipped: ${reason}`);
  return reason;
}

/** A cluster of its own on a free loopback port. It refuses root, so an unprivileged user runs it. */
export class Postgres implements AsyncDisposable {
  readonly port: number;
  readonly #folder: string;
  readonly #bin: string;

  readonly #settings: Readonly<Record<string, string | number>>;

  private constructor(
    folder: string,
    bin: string,
    port: number,
    settings: Readonly<Record<string, string | number>>,
  ) {
    this.#settings = settings;
    this.#folder = folder;
    this.#bin = bin;
    this.port = port;
  }

  /** `settings`: of the server, beside those of every test. */
  /** `prepare`: called with the folder of the data before the first start. */
  static async start(
    settings: Readonly<Record<string, string | number>> = {},
    prepare: (data: string) => void = () => {},
  ): Promise<Postgres> {
    const bin = programs() ?? "";
    const folder = mkdtempSync(join(tmpdir(), "postgres-"));
    mkdirSync(join(folder, "data"), { mode: 0o700 });
    const user = serverUser();
    if (user !== null) for (const path of [folder, join(folder, "data")]) chownSync(path, user.uid, user.gid);
    const cluster = new Postgres(folder, bin, await freePort(), settings);
    await cluster.#as(
      "initdb",
      "-D",
      join(folder, "data"),
      "-U",
      "setpointd",
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--locale=C",
      "-N",
    );
    prepare(join(folder, "data"));
    await cluster.start();
    return cluster;
  }

  /** Folder that the server may write to. */
  get folder(): string {
    return this.#folder;
  }

  get url(): string {
    return `postgres://setpointd@127.0.0.1:${this.port}/postgres`;
  }

  async start(): Promise<void> {
    const settings = {
      port: this.port,
      listen_addresses: "127.0.0.1",
      unix_socket_directories: this.#folder,
      // Power cuts are not tested here.
      fsync: "off",
      max_connections: 60,
      ...this.#settings,
    };
    const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
    await this.#control("start", "-w", "-l", join(this.#folder, "log"), "-o", options.join(" "));
  }

  /** A replica in step with this server: a commit is answered once both have it. */
  async replica(): Promise<Postgres> {
    const folder = mkdtempSync(join(tmpdir(), "postgres-"));
    const user = serverUser();
    if (user !== null) chownSync(folder, user.uid, user.gid);
    const replica = new Postgres(folder, this.#bin, await freePort(), this.#settings);
    const source = `host=127.0.0.1 port=${this.port} user=setpointd`;
    await replica.#as(
      "pg_basebackup",
      "-D",
      join(folder, "data"),
      "-R",
      "-X",
      "stream",
      "-c",
      "fast",
      "-d",
      source,
    );
    await replica.start();
    const admin = new Client(this.url);
    await admin.connect();
    await admin.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await admin.query("SELECT pg_reload_conf()");
    for (let isInStep = false; !isInStep;) {
      const { rows } = await admin.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
      isInStep = rows.length > 0;
    }
    await admin.end();
    return replica;
  }

  /** The replica is the server from now on, and waits for no other. */
  async promote(): Promise<void> {
    await this.#control("promote", "-w");
  }

  /** `immediate`: as after a power cut. */
  async stop(mode: "fast" | "immediate"): Promise<void> {
    await this.#control("stop", "-w", "-m", mode);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("immediate").catch(() => {});
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #control(...args: readonly string[]): Promise<void> {
    return this.#as("pg_ctl", "-D", join(this.#folder, "data"), ...args);
  }

  async #as(program: string, ...args: readonly string[]): Promise<void> {
    // The server keeps inherited pipes open, so the output of pg_ctl must not be waited for.
    const path = join(this.#bin, program);
    const user = serverUser();
    const options = { cwd: this.#folder, ...(user === null ? {} : user) };
    if (program !== "pg_ctl") await run(path, args, options);
    else execFileSync(path, args, { ...options, stdio: "ignore" });
  }
}

/** The user `postgres`, or `nobody`, for tests that root runs. Null: we are not root. */
export function serverUser(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag: string): number =>
        Number(execFileSync("id", [flag, name], { stdio: ["ignore", "pipe", "ignore"] }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // No such user.
    }
  }
  return { uid: 65_534, gid: 65_534 };
}
