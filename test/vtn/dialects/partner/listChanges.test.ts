import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { Notice } from "../../../../src/domain/delivery.ts";
import { runToEnd } from "../../../../src/platform/cooperative.ts";
import type { ListBody, ListIndex } from "../../../../src/vtn/dialects/dialect.ts";
import { readingList } from "../../../../src/vtn/dialects/partner/envelope.ts";
import { anEvent } from "../../wire/anEvent.ts";

type ReadList = Extract<ListBody, { kind: "read" }>;

const read = (body: Buffer | string, earlier: ListIndex | null = null): ListBody =>
  runToEnd(readingList(Buffer.from(body), earlier));

function listOf(body: Buffer | string, earlier: ListIndex | null = null): ReadList {
  const list = read(body, earlier);
  if (list.kind !== "read") throw new Error(list.reason);
  return list;
}

const indexOf = (body: Buffer | string): ListIndex | null => listOf(body).index ?? null;
const idOf = (notice: Notice): string | null => (notice.kind === "event" ? notice.event.id : notice.id);
const entry = (id: number, name = ""): string => JSON.stringify(anEvent({ ID: `EV-${id}`, name }));
/** An entry with an id that is no event. */
const broken = (id: number): string => `{"ID":"EV-${id}","payload":5}`;
const bodyOf = (...entries: readonly string[]): string => `[${entries.join(",")}]`;

test("the changed entry of a list is read, and all others are named as unchanged", () => {
  const earlier = indexOf(bodyOf(entry(1), broken(2), entry(3), entry(4)));
  const list = listOf(bodyOf(entry(1), broken(2), entry(3, "renamed"), entry(4)), earlier);
  expect(list.notices).toMatchObject([{ kind: "event", event: { id: "EV-3", name: "renamed" } }]);
  expect(list.unchanged).toEqual({ ids: ["EV-1", "EV-2", "EV-4"], rejected: 1 });
  expect(list.complete).toBe(true);
});

test("an entry that is added or missing moves the others, and they stay unchanged", () => {
  const earlier = indexOf(bodyOf(entry(1), entry(2), entry(3)));
  const added = listOf(bodyOf(entry(9), entry(1), entry(2), entry(3), entry(8)), earlier);
  expect(added.notices.map(idOf)).toEqual(["EV-9", "EV-8"]);
  expect(added.unchanged?.ids).toEqual(["EV-1", "EV-2", "EV-3"]);
  const fewer = listOf(bodyOf(entry(1), entry(3)), earlier);
  expect([fewer.notices, fewer.unchanged?.ids]).toEqual([[], ["EV-1", "EV-3"]]);
});

test("a rejected entry names its place in the new list", () => {
  const earlier = indexOf(bodyOf(entry(1), entry(2)));
  expect(listOf(bodyOf(entry(1), entry(2), broken(3)), earlier).notices).toMatchObject([
    { kind: "rejected", id: "EV-3", path: expect.stringMatching(/^\[2\]/) },
  ]);
});

test("any edit of a list, compared with the earlier one, gives what reading it as a whole gives", () => {
  const ids = fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { maxLength: 12 });
  const entries = ids.chain((all) =>
    fc.tuple(
      ...all.map((id) =>
        fc.constantFrom(
          entry(id),
          entry(id, "renamed"),
          broken(id),
          ` ${entry(id)}\n`,
          entry(id, "\u2028,]"),
        ),
      ),
    ),
  );
  fc.assert(
    fc.property(entries, entries, fc.constantFrom("", " ", "\uFEFF"), (before, after, prefix) => {
      const earlier = indexOf(bodyOf(...before));
      const body = `${prefix}${bodyOf(...after)}`;
      const [whole, compared] = [listOf(body), listOf(body, earlier)];
      expect(compared.index).toEqual(whole.index);
      expect(compared.complete).toBe(whole.complete);
      if (compared.unchanged === undefined) return;
      const { ids: same } = compared.unchanged;
      expect(compared.notices.length + same.length).toBe(whole.notices.length);
      expect(new Set([...compared.notices.map(idOf), ...same])).toEqual(new Set(whole.notices.map(idOf)));
      const left = whole.notices.filter((notice) => same.some((id) => id === idOf(notice)));
      expect(left.filter(({ kind }) => kind === "rejected")).toHaveLength(compared.unchanged.rejected);
      expect(compared.notices).toEqual(whole.notices.filter((notice) => !left.includes(notice)));
      const was = new Set<string>(before);
      for (const text of after) if (!was.has(text)) expect(same).not.toContain(JSON.parse(text).ID);
    }),
  );
});

describe("the list is read as a whole", () => {
  const earlier = indexOf(bodyOf(entry(1), entry(2)));
  const wholly = (body: string): void => {
    const list = listOf(body, earlier);
    expect(list.unchanged).toBeUndefined();
    expect(list).toEqual(listOf(body));
  };

  test("if an id stands in it twice, as the later entry wins", () => {
    wholly(bodyOf(entry(1), entry(2), entry(1, "renamed")));
    expect(indexOf(bodyOf(entry(1), entry(1)))).toBeNull();
  });

  test("if an id cannot be read, as absence cannot be judged then", () => wholly(bodyOf(entry(1), "{}")));

  test("if it is no bare array", () => wholly(`{"events":${bodyOf(entry(1), entry(2))}}`));

  test("if more than a hundred entries changed", () => {
    const ids = Array.from({ length: 101 }, (_, index) => index + 10);
    wholly(bodyOf(entry(1), entry(2), ...ids.map((id) => entry(id))));
    const most = listOf(bodyOf(entry(1), entry(2), ...ids.slice(1).map((id) => entry(id))), earlier);
    expect([most.notices.length, most.unchanged?.ids.length]).toEqual([100, 2]);
  });

  test.each([
    `${bodyOf(entry(1), entry(2))}]`,
    bodyOf(entry(1), entry(2), ""),
    bodyOf(entry(1), "{"),
    `[${entry(1)},${entry(2)}}`,
    `[${entry(1)}`,
    `[${entry(1)} ${entry(2)}]`,
    bodyOf(entry(1), "[".repeat(40) + "]".repeat(40)),
    "",
  ])("if it is not JSON, or nested too deeply, with the reason that reading it as a whole gives", (body) => {
    expect(read(body, earlier)).toEqual(read(body));
    expect(read(body, earlier)).toMatchObject({ kind: "unparsable" });
  });
});
