import { Client } from "pg";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import { acknowledgement } from "../../../src/domain/audit.ts";
import { commandId, type CommandRecord } from "../../../src/domain/command.ts";
import { instant } from "../../../src/domain/units.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { readStarts, readStates } from "../../../src/store/postgres/starts.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { commandRecord, NOON, row, tombstone } from "../sqlite/words.ts";
import { aCluster, openedSite } from "./state.ts";

const decided = ({ command }: CommandRecord, words: string) =>
  row(words, {
    charger: command.charger,
    command: commandId(command),
    facts: { words, cause: "event", overruled: [], limits: [] },
  });
const acknowledged = ({ command }: CommandRecord, at: number) => ({
  kind: "audit" as const,
  entry: acknowledgement(command, NOON, instant(at)),
});

describe.skipIf(postgresMissing() !== null)("PostgreSQL", () => {
  const cluster = aCluster();
  const connected = (): Database => {
    const log = pino({ level: "silent" });
    const database = new Database({ url: () => cluster().url, schema: "setpointd", patience: 5_000, log });
    onTestFinished(() => database[Symbol.asyncDispose]());
    return database;
  };
  const sql = async (text: string, values: readonly unknown[]): Promise<void> => {
    const client = new Client(cluster().url);
    await client.connect();
    await client.query("SET search_path = setpointd");
    await client.query(text, [...values]);
    await client.end();
  };

  /** A site with a command of one charger that was acknowledged, closed again. */
  const stopped = async (charger: string, rows = 0) => {
    const { store, siteKey } = await openedSite(cluster)();
    const record = commandRecord(charger, 1);
    const about = { charger: record.command.charger, command: commandId(record.command) };
    store.write([
      { kind: "event", known: tombstone(`EV-${charger}`) },
      { kind: "command", record },
      row("decided", { ...about, facts: { cause: "event" } }),
      row("acknowledged", { ...about, kind: "outcome", facts: { progress: "acknowledged" } }),
      ...Array.from({ length: rows }, (_, number) => row(`row ${number}`, { kind: "daemon" })),
    ]);
    await store.durable();
    const [newest] = await store.audit({ newest: true, limit: 1 });
    const { site } = store;
    await store[Symbol.asyncDispose]();
    return { site, siteKey, seq: newest?.seq ?? 0, hash: newest?.hash ?? "" };
  };

  test("many sites are read at once, each with its own values, and the head of each is its own", async () => {
    const [one, other] = [await stopped("bay-01"), await stopped("bay-02", 1_500)];
    const starts = await readStarts(connected(), [one, other], NOON);
    for (const [{ site, seq, hash }, charger] of [
      [one, "bay-01"],
      [other, "bay-02"],
    ] as const) {
      expect(starts.get(site)).toMatchObject({
        ok: true,
        head: { seq, hash },
        commits: 1,
        outages: [],
        storedState: {
          commands: [{ command: { charger }, progress: "acknowledged", sentAt: NOON }],
          events: [{ id: `EV-${charger}` }],
          recordedAt: NOON,
        },
      });
    }
  });

  test("commands have the same reasons and acknowledgements in the newest rows as in the whole record", async () => {
    const { store, siteKey } = await openedSite(cluster)();
    const [one, two, three, bare] = ["bay-01", "bay-02", "bay-03", "bay-04"].map((charger, index) =>
      commandRecord(charger, index + 1),
    ) as [CommandRecord, CommandRecord, CommandRecord, CommandRecord];
    const standing = { ...commandRecord("bay-03", 9), progress: "observed" as const, standing: three };
    // The first three share a row. The last one is acknowledged alone, and its decision is not on record.
    const commits = [
      [one, two, standing, bare].map((record) => ({ kind: "command" as const, record })),
      [decided(one, "first"), decided(two, "before"), decided(three, "third"), decided(standing, "observed")],
      [acknowledged(one, NOON + 1), acknowledged(two, NOON + 1), acknowledged(three, NOON + 1)],
      [decided(two, "again"), acknowledged(bare, NOON + 2), row("missed", { kind: "missed" })],
    ];
    for (const changes of commits) {
      store.write(changes);
      await store.durable();
    }
    const { site } = store;
    await store[Symbol.asyncDispose]();
    const whole = (await readStates(connected(), [{ site, siteKey }], NOON)).get(site);
    const start = (await readStarts(connected(), [{ site, siteKey }], NOON)).get(site);
    expect(start).toMatchObject({ ok: true });
    if (start?.ok !== true || whole === undefined || whole instanceof Error) return;
    expect(start.storedState).toEqual(whole.storedState);
    const { reasons, commands } = start.storedState;
    const words = Object.fromEntries([...reasons].map(([command, reason]) => [command, reason.words]));
    expect(words).toEqual({ "7-1": "first", "7-2": "again", "7-3": "third", "7-9": "observed" });
    expect(commands.map(({ progress, sentAt }) => [progress, sentAt])).toEqual([
      ["acknowledged", NOON + 1],
      ["acknowledged", NOON + 1],
      ["observed", null],
      ["acknowledged", NOON + 2],
    ]);
  });

  test("writes of the last hour are found whether or not the verified rows reach back that far", async () => {
    for (const rows of [0, 1_500]) {
      const { site, siteKey } = await stopped("bay-01", rows);
      const read = async (now: number) => {
        const start = (await readStarts(connected(), [{ site, siteKey }], instant(now))).get(site);
        return start?.ok === true ? [...start.writes.values()] : start;
      };
      expect(await read(NOON)).toEqual([[NOON]]);
      expect(await read(NOON + 3_600_001)).toEqual([]);
    }
  });

  test("a value that another program edited makes one site unusable, and no other", async () => {
    const [edited, cut, whole] = [await stopped("bay-01"), await stopped("bay-02"), await stopped("bay-03")];
    await sql("UPDATE body SET body = replace(body, '16', '32') WHERE site = $1 AND kind = 'command'", [
      edited.site,
    ]);
    await sql("DELETE FROM audit WHERE site = $1 AND seq = 2", [cut.site]);
    const starts = await readStarts(connected(), [edited, cut, whole], NOON);
    expect(starts.get(edited.site)).toMatchObject({
      ok: false,
      reason: "the stored command bay-01 was edited by another program",
    });
    expect(starts.get(cut.site)).toMatchObject({ ok: false, broken: { ok: false } });
    expect(starts.get(whole.site)).toMatchObject({ ok: true });
  });

  test("a site that is not in the database is left out", async () => {
    const { siteKey } = await stopped("bay-01");
    expect(await readStarts(connected(), [{ site: "nowhere", siteKey }], NOON)).toEqual(new Map());
  });
});
