import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { aDirectory, open, opened } from "./state.ts";

interface Said {
  readonly open?: boolean;
  readonly turn?: number;
  readonly ok?: boolean;
  readonly reason?: string;
}

const writer = new URL("writer.ts", import.meta.url).pathname;

/** A real daemon's store in another process, and what it says, line by line. */
function startWriter(directory: string, rows: number) {
  const child = spawn(process.execPath, [writer, directory, String(rows)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Said> => JSON.parse((await lines.next()).value ?? "{}");
  return { child, next, lines };
}

async function killHard(child: ChildProcess): Promise<void> {
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

test("kill -9 in the middle of a commit loses nothing acknowledged, and leaves no half turn (F01)", async () => {
  const directory = aDirectory();
  const ROWS = 400;
  for (const acknowledged of [1, 2, 3, 5, 8, 13]) {
    const { child, next, lines } = startWriter(directory, ROWS);
    expect(await next()).toEqual({ open: true });
    let last = -1;
    for (let n = 0; n < acknowledged; n += 1) last = (await next()).turn ?? -1;
    // The writer is already in its next commit.
    await killHard(child);
    for await (const line of lines) last = JSON.parse(line).turn;

    const { store, storedState: remembered, setAside } = opened(directory);
    expect(setAside).toBeNull();
    const rows = store.reads.audit({ limit: 1_000_000 });
    expect(rows.length).toBeGreaterThanOrEqual(last + ROWS);
    expect(rows.length % ROWS).toBe(0);
    expect(remembered.commands[0]?.command.seq).toBe(rows.length - ROWS);
    expect(store.reads.verify()).toMatchObject({ ok: true, rows: rows.length });
    store[Symbol.dispose]();
  }
});

test("a second daemon on the same state is refused at once, and the first goes on (F09)", async () => {
  const directory = aDirectory();
  const first = startWriter(directory, 1);
  expect(await first.next()).toEqual({ open: true });

  const second = startWriter(directory, 1);
  const exited = once(second.child, "exit");
  const reason = `another setpointd is using this state (${directory}): stop it first`;
  expect(await second.next()).toEqual({ open: false, reason });
  expect(await exited).toEqual([1, null]);
  expect(open(directory)).toEqual({ ok: false, reason });

  expect(await first.next()).toMatchObject({ ok: true });
  await killHard(first.child);
  expect(opened(directory).setAside).toBeNull();
});

test("exactly one of five daemons started at once on a damaged state runs, and its rows stay (F04, F09)", async () => {
  const directory = aDirectory();
  writeFileSync(join(directory, "site.key"), "k".repeat(32));
  writeFileSync(join(directory, "setpointd.db"), "not a database at all".repeat(500));
  const daemons = [1, 2, 3, 4, 5].map(() => startWriter(directory, 1));
  const answers = await Promise.all(daemons.map(({ next }) => next()));
  expect(answers.filter((answer) => answer.open === true)).toHaveLength(1);
  const winner = daemons[answers.findIndex((answer) => answer.open === true)];
  expect(await winner?.next()).toMatchObject({ ok: true });
  expect(readdirSync(directory).filter((name) => name.startsWith("corrupt-"))).toHaveLength(1);
});

const PRLIMIT = "/usr/bin/prlimit";

/** The same as a failing disk, for one process: writes beyond this size of a file fail. */
const limitFiles = (child: ChildProcess, bytes: string): Buffer =>
  execFileSync(PRLIMIT, ["--pid", String(child.pid), `--fsize=${bytes}:unlimited`]);

test.runIf(existsSync(PRLIMIT))(
  "an I/O error fails the commit and no later one: the database is opened anew (F06, F07)",
  async () => {
    const directory = aDirectory();
    const { child, next, lines } = startWriter(directory, 1);
    expect(await next()).toEqual({ open: true });
    limitFiles(child, "4096");
    let said = await next();
    const acknowledged: number[] = [];
    const hear = (): void => {
      if (said.ok === true) acknowledged.push(said.turn ?? -1);
    };
    for (; said.ok === true; said = await next()) hear();
    expect(said).toMatchObject({ ok: false, reason: expect.stringMatching(/I\/O|open/) });

    limitFiles(child, "unlimited");
    for (; said.ok !== true; said = await next());
    for (let n = 0; n < 20; n += 1, said = await next()) hear();
    await killHard(child);
    for await (const line of lines) {
      said = JSON.parse(line);
      hear();
    }
    const { store, setAside } = opened(directory);
    expect(setAside).toBeNull();
    const turns = store.reads.audit({ limit: 1_000_000 }).map(({ facts }) => JSON.stringify(facts));
    expect(turns).toEqual(expect.arrayContaining(acknowledged.map((turn) => JSON.stringify({ turn }))));
    expect(store.reads.verify()).toMatchObject({ ok: true });
  },
  30_000,
);
