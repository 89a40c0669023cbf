import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";

import { readingsOf } from "../../../src/reporting/reading.ts";
import { after, chargerId, millis } from "../../../src/domain/units.ts";
import { aDirectory, opened } from "./state.ts";
import { NOON, row, tombstone } from "./words.ts";

/** A stopped state with 250 events and 1,200 messages with readings. */
async function written(): Promise<string> {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write([
    row("a row"),
    ...Array.from({ length: 250 }, (_, n) => ({ kind: "event", known: tombstone(`EV-${n}`) }) as const),
  ]);
  await store.durable();
  for (let n = 0; n < 1200; n += 1) {
    const at = after(NOON, millis(n * 1000));
    store.keepReadings(
      readingsOf({ charger: chargerId("bay-01"), vehicle: null }, { at, powerW: n }, at, null),
    );
  }
  store[Symbol.dispose]();
  return directory;
}

test("audit verify checks events and readings as well, in small steps", async () => {
  const { store } = opened(await written());
  const steps = store.reads.verifying();
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count += 1;
  expect(step.value).toMatchObject({ ok: true, rows: 1, readings: 1200, unsigned: 0 });
  expect(count).toBeGreaterThan(3);
});

test("a single changed figure far back is found and named", async () => {
  const directory = await written();
  using database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec("UPDATE reading SET power = 1 WHERE power = 1100");
  database.close();
  expect(opened(directory).store.reads.verify()).toEqual({
    ok: false,
    seq: null,
    reason: "the stored reading of bay-01 at 2026-11-21T12:18:20.000Z was changed",
  });
});
