import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  readFileSync,
} from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { stringify } from "yaml";

import { Authority } from "./support/certificates.ts";

const root = new URL("..", import.meta.url).pathname;
const text = (path: string): string => readFileSync(`${root}${path}`, "utf8");
const flagsOf = (command: string): readonly string[] => command.match(/--[a-z][\w-]*(=\d+)?/g) ?? [];

test("whichever way the daemon is started, SIGUSR1 opens no debugger, slow links have 2 s to connect, and the runtime has the same settings", () => {
  const [checkout = "", installed = ""] = ["bin/setpointd", "packaging/setpointd.sh"].map(
    (path) => /^exec .*$/m.exec(text(path))?.[0] ?? "",
  );
  const flags = flagsOf(checkout);
  expect(flags).toContain("--disable-sigusr1");
  expect(flags).toContain("--network-family-autoselection-attempt-timeout=2000");
  expect(flagsOf(installed)).toEqual(expect.arrayContaining([...flags]));
  expect(JSON.parse(text("package.json")).scripts.start).toBe("bin/setpointd");
  // The unit starts the installed launcher, not a runtime of its own.
  expect(text("systemd/setpointd.service")).toMatch(/^ExecStart=\/usr\/bin\/setpointd /m);
});

test.each([
  ["bin/setpointd", "node_modules/.bin/node"],
  ["packaging/setpointd.sh", "lib/setpointd/node"],
])("%s gives a process of a fleet another heap than all others", (launcher, runtime) => {
  const folder = mkdtempSync(join(tmpdir(), "setpointd-launch-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const path of ["bin/setpointd", runtime]) mkdirSync(dirname(join(folder, path)), { recursive: true });
  copyFileSync(`${root}${launcher}`, join(folder, "bin/setpointd"));
  // Prints the last value of each, which is the one that counts, and the last word.
  const shown =
    'for each; do case $each in --max-semi*) size=$each;; --heap*) growth=$each; esac; done; echo "$size$growth $each"';
  writeFileSync(join(folder, runtime), `#!/bin/sh\n${shown}\n`, { mode: 0o755 });
  const started = (...words: readonly string[]): string =>
    execFileSync("sh", [join(folder, "bin/setpointd"), ...words], { encoding: "utf8" });
  expect(started("fleet", "-c", "a b.yaml")).toBe(
    "--max-semi-space-size=128--heap-growing-percent=100 a b.yaml\n",
  );
  expect(started("run", "-c", "a b.yaml")).toBe("--max-semi-space-size=16 a b.yaml\n");
  expect(started()).toMatch(/^--max-semi-space-size=16 /);
});

test.skipIf(process.platform === "win32")(
  "before npm ci, setpointd and npm start name what is missing",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "setpointd-launch-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, "bin"));
    for (const path of ["bin/setpointd", "bin/start.mjs", "package.json"])
      copyFileSync(`${root}${path}`, join(folder, path));
    for (const [command, ...words] of [
      ["bin/setpointd", "status"],
      ["npm", "start"],
    ] as const) {
      const { status, stderr } = spawnSync(command, words, { cwd: folder, encoding: "utf8" });
      expect([status, stderr]).toEqual([1, expect.stringMatching(/run npm ci in \S+ first/)]);
    }
  },
);

test.skipIf(process.platform !== "linux")(
  "a partner whose authority is installed on the system needs no setting",
  async () => {
    using authority = new Authority();
    const { cert, key } = authority.issue("partner");
    const partner = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_request, response) =>
      response.writeHead(418).end(),
    );
    await new Promise<void>((resolve) => partner.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void partner.close());
    const { port } = partner.address() as AddressInfo;
    const config = join(authority.directory, "config.yaml");
    const url = `https://localhost:${port}`;
    writeFileSync(
      config,
      stringify({
        site: { id: "depot" },
        vtn: { baseUrl: url, tokenUrl: `${url}/token`, clientId: "depot", clientSecret: { env: "SECRET" } },
        mqtt: { url: "mqtt://127.0.0.1:1" },
        operator: { listen: "127.0.0.1:0" },
        chargers: [{ id: "bay-01", current: { min: 6, max: 32 } }],
      }),
    );
    const tokenStep = async (env: Readonly<Record<string, string>>) => {
      const child = spawn(`${root}bin/setpointd`, ["check", "--live", "-c", config], {
        env: { PATH: process.env["PATH"] ?? "", SECRET: "secret", ...env },
        stdio: ["ignore", "pipe", "ignore"],
      });
      onTestFinished(() => void child.kill());
      let output = "";
      // The steps behind it wait for messages of chargers.
      for await (const chunk of child.stdout) {
        output += String(chunk);
        const [line] = /token: .*(?=\n)/.exec(output) ?? [];
        if (line !== undefined) return line;
      }
      return output;
    };
    expect(await tokenStep({})).toContain("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    // Stands for the list of /etc/ssl/certs.
    expect(await tokenStep({ SSL_CERT_FILE: authority.ca })).toContain("418");
  },
);

test.skipIf(process.platform === "win32")("a running setpointd ignores SIGUSR1", async () => {
  const child = spawn(`${root}bin/setpointd`, ["profile", "try", "--stdin"], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const ask = async (): Promise<string> => {
    child.stdin.write(`${JSON.stringify({ profile: "native", params: {}, topic: "x", payload: "1" })}\n`);
    return new Promise((answer) => child.stdout.once("data", (chunk: Buffer) => answer(chunk.toString())));
  };
  try {
    await ask();
    child.kill("SIGUSR1");
    await sleep(300);
    await ask();
    expect(errors).not.toMatch(/debugger/i);
  } finally {
    child.stdin.end();
    await new Promise((ended) => child.once("close", ended));
  }
});

/** A checkout whose program prints the folder of the compiled code. */
function checkout() {
  const folder = mkdtempSync(join(tmpdir(), "setpointd-launch-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ["bin", "src", "node_modules"]) mkdirSync(join(folder, name));
  copyFileSync(`${root}bin/start.mjs`, join(folder, "bin/start.mjs"));
  const program =
    'import { getCompileCacheDir } from "node:module"; console.log(getCompileCacheDir() ?? "none");';
  writeFileSync(join(folder, "src/main.ts"), program);
  // The runner forbids compiled code while it measures coverage.
  const { NODE_COMPILE_CACHE: _folder, NODE_DISABLE_COMPILE_CACHE: _disabled, ...env } = process.env;
  const start = (): string =>
    execFileSync(process.execPath, [join(folder, "bin/start.mjs")], { env, encoding: "utf8" }).trim();
  return { folder, cache: join(folder, "node_modules/.cache/setpointd"), start };
}

test("compiled code is kept below node_modules, readable by this user only", () => {
  const { cache, start } = checkout();
  expect(start()).toContain(`${cache}/`);
  expect(statSync(cache).mode & 0o777).toBe(0o700);
  expect(start()).toContain(`${cache}/`);
});

test("compiled code is not kept in a folder that others may read or write, nor behind a link", () => {
  const [open, linked] = [checkout(), checkout()];
  mkdirSync(open.cache, { recursive: true });
  chmodSync(open.cache, 0o777);
  expect(open.start()).toBe("none");
  mkdirSync(join(linked.folder, "elsewhere"), { mode: 0o700 });
  mkdirSync(join(linked.folder, "node_modules/.cache"));
  symlinkSync(join(linked.folder, "elsewhere"), linked.cache);
  expect(linked.start()).toBe("none");
});

test("without node_modules nothing is kept, and none is created", () => {
  const { folder, start } = checkout();
  rmSync(join(folder, "node_modules"), { recursive: true });
  expect(start()).toBe("none");
  expect(existsSync(join(folder, "node_modules"))).toBe(false);
});

/** Starts the program in a shell, as npm does, and waits for its first line. `ended`: all that it printed. */
async function shellOf(folder: string) {
  // A command after the program keeps the shell from becoming the program.
  const shell = spawn("sh", ["-c", `"${process.execPath}" "${join(folder, "bin/start.mjs")}"; :`], {
    env: { ...process.env, npm_lifecycle_event: "start" },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  let output = "";
  const ended = new Promise<string>((resolve) => shell.stdout.once("close", () => resolve(output)));
  await new Promise<void>((resolve) =>
    shell.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.startsWith("up")) resolve();
    }),
  );
  return { shell, ended };
}

test.skipIf(process.platform === "win32")(
  "npm start stops in order when a SIGTERM ends npm's shell",
  async () => {
    const { folder } = checkout();
    writeFileSync(
      join(folder, "src/main.ts"),
      `process.on("SIGTERM", () => { console.log("stopped"); process.exit(0); });
     setInterval(() => undefined, 1000);
     console.log("up");`,
    );
    const { shell, ended } = await shellOf(folder);
    shell.kill("SIGTERM");
    expect(await ended).toBe("up\nstopped\n");
  },
);

/** A program that stops with one of these signals, for longer than the launcher needs to see that npm has ended. */
const stoppingSlowly = (...signals: readonly NodeJS.Signals[]): string =>
  `import { stopSignal } from "${root}src/cli/stopSignal.ts";
   const stopped = stopSignal(${signals.map((signal) => `"${signal}"`).join(", ")});
   const running = setInterval(() => undefined, 1000);
   void stopped.then(() => {
     console.log("stopping");
     setTimeout(() => { clearInterval(running); console.log("stopped"); }, 2000);
   });
   setImmediate(() => console.log("up"));`;

test.skipIf(process.platform === "win32").each([["SIGTERM"], ["SIGHUP"], ["SIGINT"]] as const)(
  "npm start stops once, and in order, when a %s ends npm's shell as well",
  async (signal) => {
    const { folder } = checkout();
    writeFileSync(join(folder, "src/main.ts"), stoppingSlowly("SIGTERM", "SIGINT", "SIGHUP"));
    const { shell, ended } = await shellOf(folder);
    process.kill(-(shell.pid ?? 0), signal);
    expect(await ended).toBe("up\nstopping\nstopped\n");
  },
);

test.skipIf(process.platform === "win32")(
  "npm start stops when a SIGTERM ends npm's shell right after the program reloaded its certificates",
  async () => {
    const { folder } = checkout();
    const reloading = `process.on("SIGHUP", () => console.log("reloaded"));`;
    writeFileSync(join(folder, "src/main.ts"), `${stoppingSlowly("SIGTERM")}\n${reloading}`);
    const { shell, ended } = await shellOf(folder);
    process.kill(-(shell.pid ?? 0), "SIGHUP");
    expect(await ended).toBe("up\nreloaded\nstopping\nstopped\n");
  },
);

/** Exit code of a program that gets these signals, each once the one before is handled. */
async function exitAfter(...signals: readonly NodeJS.Signals[]): Promise<number | null> {
  const program = stoppingSlowly("SIGTERM", "SIGINT", "SIGHUP");
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  let lines = 0;
  // Its lines are "up" and "stopping".
  child.stdout.on("data", () => {
    const signal = signals[lines];
    lines += 1;
    if (signal !== undefined) child.kill(signal);
  });
  return ended;
}

test("a closed terminal sends more than one signal and cuts no stop short; a further Ctrl-C does", async () => {
  expect(await exitAfter("SIGHUP", "SIGTERM")).toBe(0);
  expect(await exitAfter("SIGHUP", "SIGHUP")).toBe(0);
  expect(await exitAfter("SIGTERM", "SIGINT")).toBe(1);
});

test.skipIf(process.getuid?.() !== 0)("root leaves nothing in the checkout of another user", () => {
  const { folder, start } = checkout();
  for (const path of [folder, join(folder, "node_modules")]) chownSync(path, 1234, 1234);
  expect(start()).toBe("none");
  expect(existsSync(join(folder, "node_modules/.cache"))).toBe(false);
});
