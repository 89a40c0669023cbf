import { Client } from "pg";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";

import { commandId } from "../../../src/domain/command.ts";
import { instant } from "../../../src/domain/units.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { readStarts } from "../../../src/store/postgres/starts.ts";
import { postgresMissing } from "../../support/postgres.ts";
import { commandRecord, NOON, row, tombstone } from "../sqlite/words.ts";
import { aCluster, openedSite } from "./state.ts";

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
