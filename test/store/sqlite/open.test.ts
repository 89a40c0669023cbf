import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { chargerId, type EventId, instant } from "../../../src/domain/units.ts";
import { deniedState, stateDirectoryProblem } from "../../../src/store/files.ts";
import { missingStateReason } from "../../../src/store/sqlite/open.ts";
import { aDirectory, open, opened } from "./state.ts";
import { commandRecord, NOON, row, tombstone } from "./words.ts";

const DATABASE = "setpointd.db";
const WAL = "setpointd.db-wal";

/** A state with some of everything, as a kill -9 leaves it (`running`) or as a stop leaves it. */
async function written(left: "running" | "stopped"): Promise<string> {
  const directory = aDirectory();
  const { store } = opened(directory);
  for (let n = 0; n < 30; n += 1) {
    store.write([
      row(`row ${n}`, { facts: { n } }),
      { kind: "command", record: commandRecord(`bay-${n}`, n) },
      { kind: "event", known: tombstone(`EV-${n}`) },
    ]);
    await store.durable();
  }
  if (left === "stopped") {
    store[Symbol.dispose]();
    return directory;
  }
  return copyOf(directory);
}

function copyOf(directory: string): string {
  const copy = aDirectory();
  for (const file of readdirSync(directory)) {
    if (file !== "lock") copyFileSync(join(directory, file), join(copy, file));
  }
  return copy;
}

/** What came back, or that it was set aside; a refusal is neither. */
function reopened(directory: string) {
  const state = open(directory);
  if (!state.ok) return state.reason;
  const { storedState: remembered, setAside, store } = state;
  const answer = setAside === null ? { remembered, rows: store.reads.audit({}) } : "set aside";
  store[Symbol.dispose]();
  return answer;
}

test.for(["stopped", "running"] as const)(
  "a flipped bit anywhere in a %s state is harmless or found: no altered state is ever acted on (F03)",
  async (left) => {
    const directory = await written(left);
    const good = reopened(copyOf(directory));
    expect(good).toMatchObject({ rows: { length: 30 } });
    for (const file of left === "stopped" ? [DATABASE] : [DATABASE, WAL]) {
      const bytes = readFileSync(join(directory, file));
      // Spread evenly, and another bit each time.
      for (let n = 0; n < 60; n += 1) {
        const at = Math.floor((n * bytes.length) / 60);
        const copy = copyOf(directory);
        const flipped = Buffer.from(bytes);
        flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (n % 8)), at);
        writeFileSync(join(copy, file), flipped);
        const found = reopened(copy);
        if (found !== "set aside") expect(found, `${file} byte ${at}`).toEqual(good);
      }
    }
  },
);

test("a flipped bit in the header of the database is harmless or found (F03)", async () => {
  const directory = await written("stopped");
  const good = reopened(copyOf(directory));
  const bytes = readFileSync(join(directory, DATABASE));
  for (let bit = 0; bit < 800; bit += 7) {
    const copy = copyOf(directory);
    const flipped = Buffer.from(bytes);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    writeFileSync(join(copy, DATABASE), flipped);
    const found = reopened(copy);
    if (found !== "set aside") expect(found, `bit ${bit}`).toEqual(good);
  }
});

test("a database or log cut off anywhere is found (F03, F04)", async () => {
  const directory = await written("running");
  const stopped = await written("stopped");
  const cases = [
    [directory, WAL],
    [stopped, DATABASE],
  ] as const;
  for (const [from, file] of cases) {
    const { length } = readFileSync(join(from, file));
    for (const kept of [0, 1, 100, 4096, Math.floor(length / 2), length - 4096, length - 1]) {
      const copy = copyOf(from);
      truncateSync(join(copy, file), kept);
      expect(reopened(copy), `${file} cut to ${kept} bytes`).toBe("set aside");
    }
  }
});

test("a page that turns up in the place of another is harmless or found, also where both fit (F03)", async () => {
  const directory = await written("stopped");
  const good = reopened(copyOf(directory));
  const bytes = readFileSync(join(directory, DATABASE));
  const database = new DatabaseSync(join(directory, DATABASE), { readOnly: true });
  const hold = database.prepare("SELECT rootpage - 1 AS page FROM sqlite_schema WHERE name = 'hold'").get();
  database.close();
  const pageAt = (page: number): Buffer => bytes.subarray(page * 4096, (page + 1) * 4096);
  for (let page = 0; page < bytes.length / 4096; page += 1) {
    const swapped = Buffer.from(bytes);
    pageAt(page).copy(swapped, Number(hold?.["page"]) * 4096);
    pageAt(Number(hold?.["page"])).copy(swapped, page * 4096);
    const copy = copyOf(directory);
    writeFileSync(join(copy, DATABASE), swapped);
    const found = reopened(copy);
    if (found !== "set aside") expect(found, `page ${page}`).toEqual(good);
  }
});

test("damaged state is kept whole for later, the first row names it, key and epoch stay (F04)", async () => {
  const directory = await written("stopped");
  writeFileSync(join(directory, DATABASE), "not a database at all".repeat(500));
  const key = readFileSync(join(directory, "site.key"));
  const epochBefore = Number.parseInt(readFileSync(join(directory, "epoch"), "latin1"), 10);

  const { store, siteKey, epoch, setAside, storedState: remembered } = opened(directory);
  expect(setAside).toBe(join(directory, "corrupt-2026-11-21T120000.000Z"));
  expect(readFileSync(join(setAside ?? "", DATABASE), "latin1")).toMatch(/^not a database/);
  expect(existsSync(join(setAside ?? "", "head"))).toBe(true);
  expect(siteKey).toEqual(key);
  expect(epoch).toBe(epochBefore + 1);
  expect(remembered).toEqual({
    events: [],
    bindings: [],
    observePeriod: null,
    edited: [],
    commands: [],
    holds: [],
    duties: [],
    reasons: new Map(),
    outbox: [],
    evaluatedAt: NOON,
    recordedAt: NOON,
    aliveAt: null,
  });
  expect(store.reads.audit({})).toMatchObject([{ seq: 1, kind: "daemon", at: NOON }]);
  expect(store.reads.verify()).toMatchObject({ ok: true, rows: 1 });
  store[Symbol.dispose]();
  // Nobody may have been told anything yet: the next run does not know either what chargers stand under.
  const next = opened(directory);
  expect([next.setAside, next.assertAll]).toEqual([null, true]);
  next.store[Symbol.dispose]();
  expect(opened(aDirectory()).assertAll).toBe(false);
});

test("two damaged states of the same moment do not overwrite each other", async () => {
  const directory = aDirectory();
  const names: (string | null)[] = [];
  for (let n = 0; n < 2; n += 1) {
    writeFileSync(join(directory, DATABASE), "not a database at all".repeat(500));
    if (n === 0) writeFileSync(join(directory, "site.key"), "k".repeat(32));
    const { store, setAside } = opened(directory);
    names.push(setAside);
    store[Symbol.dispose]();
  }
  expect(new Set(names).size).toBe(2);
});

test("the epoch rises with every start, also when the clock went back", () => {
  const directory = aDirectory();
  const epochs = [NOON, instant(0), NOON].map((at) => {
    const { store, epoch } = opened(directory, { at });
    store[Symbol.dispose]();
    return epoch;
  });
  expect(epochs).toEqual([NOON / 1000, NOON / 1000 + 1, NOON / 1000 + 2]);
});

test("a state that cannot be used is refused with a sentence, not with an exception (F06)", () => {
  const directory = aDirectory();
  writeFileSync(join(directory, "file"), "");
  expect(open(join(directory, "file", "state"))).toMatchObject({
    ok: false,
    reason: expect.stringMatching(/ENOTDIR|EEXIST/),
  });
  // Linux: a file system that calls every new name missing, however deep.
  expect(open("/proc/setpointd/state")).toMatchObject({ ok: false, reason: expect.stringMatching(/ENOENT/) });
  mkdirSync(join(directory, DATABASE));
  writeFileSync(join(directory, "site.key"), "k".repeat(32));
  expect(open(directory)).toMatchObject({ ok: false });
});

const release = (epoch: number) => {
  const record = commandRecord("bay-02", 1, epoch);
  return { ...record, command: { ...record.command, desired: { kind: "release" } as const } };
};

test("a state that was restored from a copy marks what it cannot know, until every charger received its setpoint", () => {
  const directory = aDirectory();
  const known = (damaged: "setAside" | "refuse" = "setAside") => {
    const {
      store,
      assertAll: unsure,
      isRestored,
      epoch,
      storedState: remembered,
    } = opened(directory, { damaged });
    const scope = {
      events: new Set<EventId>(),
      chargers: new Set([chargerId("bay-01"), chargerId("bay-02")]),
      holds: new Set<string>(),
      mode: false,
    };
    const [chargers, again] = [remembered, store.reads.stored(scope)].map(({ commands }) =>
      commands.map(({ command }) => command.charger),
    );
    expect(again).toEqual(chargers);
    return { store, unsure, isRestored, epoch, chargers, lookedAt: remembered.evaluatedAt };
  };
  const first = known();
  first.store.write([
    row("a row", { at: instant(NOON - 3_600_000) }),
    { kind: "command", record: commandRecord("bay-01", 1) },
    { kind: "command", record: release(first.epoch) },
  ]);
  first.store[Symbol.dispose]();
  const again = known();
  expect(again).toMatchObject({ unsure: false, isRestored: false, chargers: ["bay-01", "bay-02"] });
  again.store[Symbol.dispose]();
  rmSync(join(directory, "epoch"));
  // A verb that looks first does not take the daemon's place, and nobody has looked at the time since.
  for (const [damaged, isRestored] of [
    ["refuse", false],
    ["setAside", true],
    ["setAside", false],
  ] as const) {
    const restored = known(damaged);
    const lookedAt = NOON - 3_600_000;
    expect(restored).toMatchObject({ unsure: true, isRestored, chargers: ["bay-01"], lookedAt });
    restored.store[Symbol.dispose]();
  }
  const told = known();
  told.store.write([{ kind: "command", record: release(told.epoch) }]);
  told.store[Symbol.dispose]();
  const later = known();
  expect(later).toMatchObject({ unsure: true, chargers: ["bay-01", "bay-02"] });
  later.store[Symbol.dispose]();
});

// Only root can make a file of somebody else.
test.skipIf(process.getuid?.() !== 0)(
  "files that root opens beside the daemon belong to the daemon's user",
  () => {
    const directory = aDirectory();
    const daemon = 65_534;
    chownSync(directory, daemon, daemon);
    const { store } = opened(directory);
    store.write([row("a row")]);
    const files = readdirSync(directory);
    expect(new Set(files)).toEqual(
      new Set([DATABASE, WAL, "epoch", "head", "lock", "proof.key", "site.key"]),
    );
    expect(files.filter((file) => statSync(join(directory, file)).uid !== daemon)).toEqual([]);
    store[Symbol.dispose]();
  },
);

const DENIED =
  "cannot be used by this user (permission denied): give it to the user that runs setpointd, mode 0700";

// Root may do everything, so that there it is told by what Node says to others.
test.skipIf(process.getuid?.() === 0)(
  "a state of another user is refused with the name of its proper owner",
  () => {
    const directory = aDirectory();
    chmodSync(directory, 0o000);
    expect(open(directory)).toMatchObject({ ok: false, reason: `state: ${directory} ${DENIED}` });
    expect(missingStateReason(directory)).toBe(`state: ${directory} ${DENIED}`);
    chmodSync(directory, 0o500);
    const below = join(directory, "state");
    expect(open(below)).toMatchObject({ ok: false, reason: `state: ${below} ${DENIED}` });
    expect(stateDirectoryProblem(below)).toBe(`state: ${below} ${DENIED}`);
    chmodSync(directory, 0o700);
    expect(stateDirectoryProblem(below)).toBeNull();
  },
);

test("a state that does not exist yet is judged by the nearest folder that does, and is not created", () => {
  const directory = aDirectory();
  const below = join(directory, "state", "of", "a", "site");
  expect(stateDirectoryProblem(below)).toBeNull();
  expect(existsSync(join(directory, "state"))).toBe(false);
  // No user may search a file, root included.
  writeFileSync(join(directory, "state"), "", { mode: 0o600 });
  expect(stateDirectoryProblem(below)).toBe(`state: ${below} ${DENIED}`);
  expect(stateDirectoryProblem(directory)).toBeNull();
});

const said = (code: string) => Object.assign(new Error(`${code}: no, mkdir '/x/state'`), { code });

test("only a denial is reported as a denial", () => {
  expect(deniedState("/x/state", said("EACCES"))?.reason).toBe(`state: /x/state ${DENIED}`);
  expect(deniedState("/x/state", said("ENOSPC"))).toBeNull();
});

test("a log of the database that cannot be opened is refused with the place, and nothing is moved", async () => {
  const directory = await written("running");
  rmSync(join(directory, WAL));
  // Root may open every file, but no folder.
  mkdirSync(join(directory, WAL));
  expect(reopened(directory)).toBe(
    `${join(directory, DATABASE)}, or a file beside it with the same beginning, cannot be opened (unable to open database file): give them all to the user that runs setpointd`,
  );
  expect(existsSync(join(directory, DATABASE))).toBe(true);
});

test("a row of the record after the last evaluation does not stand for an evaluation", async () => {
  const directory = aDirectory();
  const first = opened(directory);
  const later = instant(NOON + 60_000);
  first.store.write([{ kind: "evaluated", at: NOON }, row("an event is new", { at: later })]);
  await first.store.durable();
  first.store[Symbol.dispose]();
  expect(opened(directory).storedState).toMatchObject({
    evaluatedAt: NOON,
    recordedAt: later,
    aliveAt: later,
  });
});
