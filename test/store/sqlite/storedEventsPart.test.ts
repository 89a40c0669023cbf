import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { expect, test } from "vitest";

import { instant } from "../../../src/domain/units.ts";
import { sumOf } from "../../../src/store/sqlite/auditRows.ts";
import { anEvent, at, live } from "../../support/anEvent.ts";
import { aDirectory, open, opened } from "./state.ts";
import { row } from "./words.ts";

const over = live(anEvent({ id: "EV-over" }));
const ahead = live(anEvent({ id: "EV-ahead", start: instant(at("05:00") + 400 * 86_400_000) }));

/** A state with an event that is over by the newest row, and one that lies ahead. */
async function aState(sql = ""): Promise<string> {
  const directory = aDirectory();
  const { store } = opened(directory);
  store.write([{ kind: "event", known: over }, { kind: "event", known: ahead }, row("later")]);
  await store.durable();
  store[Symbol.dispose]();
  const database = new DatabaseSync(join(directory, "setpointd.db"));
  database.exec(sql);
  database.close();
  return directory;
}

test("an event that is over is not read at a start, one that lies ahead is whole", async () => {
  const directory = await aState("UPDATE event SET body = 'no event' WHERE id = 'EV-over'");
  const { store, storedState: remembered } = opened(directory);
  expect(remembered.events).toMatchObject([{ kind: "over", id: "EV-over" }, ahead]);
  expect(store.reads.events.event(over.id)).toBeNull();
  expect(store.reads.events.event(ahead.id)).toEqual(ahead);
});

test("rows that a start reads have their checksum", async () => {
  for (const sql of [
    "UPDATE event SET body = 'no event' WHERE id = 'EV-ahead'",
    "UPDATE event_summary SET body = 'no summary' WHERE id = 'EV-over'",
    "UPDATE event_summary SET body = 'no summary' WHERE id = 'EV-ahead'",
    "UPDATE event_summary SET body = json_set(body, '$.until', 0) WHERE id = 'EV-ahead'",
  ]) {
    const directory = await aState(sql);
    expect(open(directory)).toMatchObject({ ok: true, setAside: expect.stringContaining(directory) });
  }
});

/** Another program edits a summary: the sum is right, the HMAC is not. */
function edited(directory: string, id: string, until: number): void {
  using database = new DatabaseSync(join(directory, "setpointd.db"));
  const row = database.prepare("SELECT body, mac FROM event_summary WHERE id = ?").get(id);
  const body = JSON.stringify({ ...JSON.parse(String(row?.["body"])), until });
  const sum = sumOf("event_summary", id, body, String(row?.["mac"]));
  database.prepare("UPDATE event_summary SET body = ?, sum = ? WHERE id = ?").run(body, sum, id);
}

test("an edited summary hides no event: one that calls it over is refused, one that does not is not used", async () => {
  const hiding = await aState("SELECT 1");
  edited(hiding, "EV-ahead", 0);
  expect(open(hiding)).toMatchObject({ ok: true, setAside: expect.stringContaining(hiding) });
  const showing = await aState("SELECT 1");
  edited(showing, "EV-over", Number.MAX_SAFE_INTEGER);
  const { storedState, setAside } = opened(showing);
  expect([setAside, storedState.events]).toEqual([null, [over, ahead]]);
});

test("an event of a version that stored no summaries gets one, and only once", async () => {
  const directory = await aState("DELETE FROM event_summary");
  const [first, second] = [0, 1].map(() => {
    const { store, storedState: remembered } = opened(directory);
    const stored = store.reads.events.summary(over.id);
    store[Symbol.dispose]();
    return { stored, events: remembered.events };
  });
  expect(first?.events).toMatchObject([{ kind: "over", id: "EV-over" }, ahead]);
  expect(first?.stored).toEqual(first?.events[0]);
  expect(second).toEqual(first);
});

test("an event that is not stored has neither body nor summary", () => {
  const { store } = opened(aDirectory());
  expect([store.reads.events.event(over.id), store.reads.events.summary(over.id)]).toEqual([null, null]);
});
