import { expect, test } from "vitest";

import { acknowledgement } from "../../src/domain/audit.ts";
import { after, eventId, instant, millis } from "../../src/domain/units.ts";
import { pagesOfEvent, pagesSince } from "../../src/operator/recordPages.ts";
import { aDirectory, opened } from "../store/sqlite/state.ts";
import { commandRecord, NOON, row } from "../store/sqlite/words.ts";

async function wordsOf(
  pages: AsyncIterable<readonly { readonly words: string }[]>,
): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const page of pages) all.push(...page.map(({ words }) => words));
  return all;
}

test("rows on an event are read page by page, each once, and rows added meanwhile do not count", async () => {
  const { store } = opened(aDirectory());
  const numbers = Array.from({ length: 700 }, (_, n) => `${n}`);
  store.write(numbers.map((n) => row(n, { event: eventId(Number(n) % 7 === 0 ? "EV-2" : "EV-1") })));
  await store.durable();
  const sizes: number[] = [];
  const words: string[] = [];
  for await (const page of pagesOfEvent(store, "EV-1")) {
    sizes.push(page.length);
    words.push(...page.map((each) => each.words));
    store.write([row("later", { event: eventId("EV-1") })]);
    await store.durable();
  }
  expect(words).toEqual(numbers.filter((n) => Number(n) % 7 !== 0));
  expect(Math.max(...sizes)).toBe(256);
  expect(await wordsOf(pagesOfEvent(store, "EV-9"))).toEqual([]);
});

test("acknowledgements that share rows are read whole, each once", async () => {
  const { store } = opened(aDirectory());
  const acknowledged = Array.from({ length: 1_000 }, (_, n) => commandRecord(`bay-${n}`, n).command);
  store.write(
    acknowledged.map((command) => ({ kind: "audit", entry: acknowledgement(command, NOON, NOON) })),
  );
  await store.durable();
  const words = await wordsOf(pagesOfEvent(store, "EV-7731"));
  expect(store.head().seq).toBeLessThan(1_000);
  expect([words.length, new Set(words).size]).toEqual([1_000, 1_000]);
});

test("rows of a kind are read from a moment on, in a record that was pruned or is empty", async () => {
  const { store } = opened(aDirectory());
  expect(await wordsOf(pagesSince(store, "operator", NOON))).toEqual([]);
  for (let hour = 0; hour < 24; hour += 1)
    store.write(
      Array.from({ length: 500 }, (_, n) =>
        row(`${hour} ${n}`, {
          at: instant(NOON + hour * 3_600_000),
          kind: n === 7 ? "operator" : "outcome",
        }),
      ),
    );
  await store.durable();
  store.write([{ kind: "auditPruned", through: 600 }]);
  await store.durable();
  const since = after(NOON, millis(12 * 3_600_000));
  const hours = Array.from({ length: 12 }, (_, n) => `${n + 12} 7`);
  expect(await wordsOf(pagesSince(store, "operator", since))).toEqual(hours);
  expect(await wordsOf(pagesSince(store, "operator", instant(0)))).toHaveLength(22);
  expect(await wordsOf(pagesSince(store, "operator", after(since, millis(86_400_000))))).toEqual([]);
});
