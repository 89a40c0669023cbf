import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";

const root = new URL("..", import.meta.url).pathname;
const text = (path: string): string => readFileSync(`${root}${path}`, "utf8");
const flagsOf = (command: string): readonly string[] => command.match(/--[a-z][\w-]*(=\d+)?/g) ?? [];

test("whichever way the daemon is started, SIGUSR1 opens no debugger, and the runtime has the same settings", () => {
  const npmStart: string = JSON.parse(text("package.json")).scripts.start;
  const launched = ["bin/setpointd", "packaging/setpointd.sh"].map(
    (path) => /^exec .*$/m.exec(text(path))?.[0] ?? "",
  );
  const flags = flagsOf(npmStart);
  expect(flags).toContain("--disable-sigusr1");
  for (const line of launched) expect(flagsOf(line)).toEqual(expect.arrayContaining([...flags]));
  // The unit starts the installed launcher, not a runtime of its own.
  expect(text("systemd/setpointd.service")).toMatch(/^ExecStart=\/usr\/bin\/setpointd /m);
});

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
