import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { acknowledgement, type AuditRow } from "../../../src/domain/audit.ts";
import type { Change } from "../../../src/domain/changes.ts";
import type { CommandRecord } from "../../../src/domain/command.ts";
import { chargerId, eventId, instant } from "../../../src/domain/units.ts";
import { aDirectory, opened } from "./state.ts";
import { commandRecord, NOON, row } from "./words.ts";

const planned = (seq: number): CommandRecord => commandRecord(`bay-${seq}`, seq);
const decided = (record: CommandRecord): Change =>
  row("a decision", {
    charger: record.command.charger,
    event: record.command.event,
    command: `7-${record.command.seq}`,
  });
const acknowledged = ({ command }: CommandRecord): Change => ({
  kind: "audit",
  entry: acknowledgement(command, NOON, instant(NOON + command.seq)),
});

/** Three commands, decided in one commit and acknowledged in the next. */
async function fanOut(directory: string) {
  const { store } = opened(directory);
  const records = [1, 2, 3].map(planned);
  store.write(records.flatMap((record): Change[] => [decided(record), { kind: "command", record }]));
  await store.durable();
  const committed: unknown[] = [];
  store.onCommitted = (rows) => committed.push(...rows.map(({ charger }) => charger));
  store.write(records.map(acknowledged));
  await store.durable();
  expect(committed).toEqual(["bay-1", "bay-2", "bay-3"]);
  return store;
}

test("acknowledgements that share a row read as one each, by charger, by event, by time and newest first", async () => {
  const store = await fanOut(aDirectory());
  expect(await store.verify()).toMatchObject({ ok: true, rows: 4 });
  const shown = async (query: Parameters<typeof store.audit>[0]) =>
    (await store.audit({ kind: "outcome", ...query })).map(({ seq, command, at }) => [
      seq,
      command,
      at - NOON,
    ]);
  const all = [
    [4, "7-1", 1],
    [4, "7-2", 2],
    [4, "7-3", 3],
  ];
  expect(await shown({})).toEqual(all);
  expect(await shown({ event: "EV-7731" })).toEqual(all);
  expect(await shown({ event: "EV-1" })).toEqual([]);
  expect(await shown({ charger: "bay-2" })).toEqual([all[1]]);
  expect(await shown({ charger: "bay-9" })).toEqual([]);
  expect(await shown({ notAfter: instant(NOON + 2) })).toEqual(all.slice(0, 2));
  expect(await shown({ newest: true, limit: 2 })).toEqual([all[2], all[1]]);
  expect(await shown({ limit: 2 })).toEqual(all.slice(0, 2));
  expect(await shown({ after: 3, part: 0, limit: 3 })).toEqual(all);
  expect(await shown({ after: 4 })).toEqual([]);
  expect(await store.audit({ charger: "bay-2" })).toMatchObject([
    { seq: 2, kind: "decision" },
    {
      kind: "outcome",
      vehicle: "veh-214",
      words: "bay-2 7-2 acknowledged by the broker after 2 ms",
      facts: { progress: "acknowledged", ms: 2, sentAt: "2026-11-21T12:00:00.000Z" },
    },
  ]);
});

test.each([1, 2, 3, 4, 5, 6])(
  "pages of %d rows have no more, and together every row once, also where commands share one",
  async (limit) => {
    const store = await fanOut(aDirectory());
    const words = async (query: Parameters<typeof store.audit>[0]) =>
      (await store.audit(query)).map((entry) => `${entry.seq} ${entry.command}`);
    for (const about of [{}, { kind: "outcome" as const }, { charger: "bay-3" }]) {
      const read: string[] = [];
      let cursor: { after?: number; part?: number } = {};
      for (;;) {
        const page = await store.audit({ ...about, ...cursor, limit });
        expect(page.length).toBeLessThanOrEqual(limit);
        const last = page.at(-1);
        if (last === undefined) break;
        read.push(...page.map((entry) => `${entry.seq} ${entry.command}`));
        cursor = { after: last.seq, ...(last.part === undefined ? {} : { part: last.part }) };
      }
      expect(read).toEqual(await words(about));
    }
  },
);

const spelled = ({ seq, command }: AuditRow): string => `${seq} ${command}`;

test.each([1, 2, 3, 4, 5, 6])(
  "pages of %d rows, the newest first, have no more, and together every row once",
  async (limit) => {
    const store = await fanOut(aDirectory());
    store.write([row("later")]);
    await store.durable();
    for (const about of [{}, { kind: "outcome" as const }, { charger: "bay-3" }]) {
      const read: string[] = [];
      let cursor: { before?: number; beforePart?: number } = {};
      for (;;) {
        const page = await store.audit({ ...about, ...cursor, limit, newest: true });
        expect(page.length).toBeLessThanOrEqual(limit);
        const last = page.at(-1);
        if (last === undefined) break;
        read.push(...page.map(spelled));
        cursor = { before: last.seq, ...(last.part === undefined ? {} : { beforePart: last.part }) };
      }
      expect(read.toReversed()).toEqual((await store.audit(about)).map(spelled));
    }
  },
);

test("the newest rows end before a shared row that has no room, unless it is the first", async () => {
  const store = await fanOut(aDirectory());
  store.write([row("later")]);
  await store.durable();
  const seqs = async (limit: number) => (await store.audit({ newest: true, limit })).map(({ seq }) => seq);
  expect(await seqs(3)).toEqual([5]);
  expect(await seqs(4)).toEqual([5, 4, 4, 4]);
  expect(await seqs(1)).toEqual([5]);
});

test("a restart finds each command acknowledged, and the writes of each charger", async () => {
  const directory = aDirectory();
  (await fanOut(directory))[Symbol.dispose]();
  const {
    lastRun: { writes },
    storedState,
  } = opened(directory);
  expect(storedState.commands.map(({ progress, sentAt, sends }) => [progress, sentAt, sends])).toEqual(
    [1, 2, 3].map((seq) => ["acknowledged", instant(NOON + seq), 1]),
  );
  expect(writes(chargerId("bay-2"), NOON)).toEqual([instant(NOON + 2)]);
  expect(writes(chargerId("bay-2"), instant(NOON + 3))).toEqual([]);
});

test("a newer command of a charger is not acknowledged by an older acknowledgement", async () => {
  const directory = aDirectory();
  const store = await fanOut(directory);
  const record = commandRecord("bay-2", 9);
  store.write([decided(record), { kind: "command", record }]);
  await store.durable();
  store[Symbol.dispose]();
  const { commands } = opened(directory).storedState;
  expect(commands.map(({ progress }) => progress)).toEqual(["acknowledged", "planned", "acknowledged"]);
});

test("a shared row is in the proof of its event once, and leaves nothing behind when it is pruned", async () => {
  const directory = aDirectory();
  const store = await fanOut(directory);
  const record = await store.eventRows(eventId("EV-7731"), NOON);
  expect(record).toMatchObject({ ok: true, seqs: [1, 2, 3, 4] });
  const old = await store.oldRows({ before: instant(NOON + 60_000), maxRows: 1000, most: 10 });
  const through = old?.through ?? 0;
  store.write([
    row("pruned", { kind: "checkpoint", facts: { through, hash: old?.hash ?? "" } }),
    { kind: "auditPruned", through },
  ]);
  await store.durable();
  store[Symbol.dispose]();
  using database = new DatabaseSync(join(directory, "setpointd.db"));
  expect(database.prepare("SELECT * FROM acknowledged").all()).toEqual([]);
});
