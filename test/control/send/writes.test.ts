import { expect, test } from "vitest";

import { Writes } from "../../../src/control/send/sendQueue.ts";
import { chargerId, instant, minutes } from "../../../src/domain/units.ts";

const BAY = chargerId("bay-01");
const at = (minute: number) => instant(minutes(minute));

test("a charger with a limit of three writes an hour gets the fourth an hour after the first", () => {
  const writes = new Writes();
  expect(writes.roomAt(BAY, 3, at(0))).toBe(at(0));
  for (const minute of [0, 10, 20]) writes.add(BAY, at(minute));
  expect(writes.inLastHour(BAY, at(20))).toBe(3);
  expect(writes.roomAt(BAY, 3, at(20))).toBe(at(60));
  expect(writes.roomAt(BAY, 4, at(20))).toBe(at(20));
  expect(writes.roomAt(BAY, 3, at(60))).toBe(at(60));
  expect(writes.inLastHour(BAY, at(60))).toBe(2);
});

test("writes that are restored from the record count as if they were written now", () => {
  const writes = new Writes();
  writes.recall(BAY, [at(0), at(30)]);
  writes.add(BAY, at(40));
  expect([writes.inLastHour(BAY, at(40)), writes.roomAt(BAY, 3, at(40))]).toEqual([3, at(60)]);
});

test("a clock that was set back leaves no write in the future", () => {
  const writes = new Writes();
  writes.add(BAY, at(100));
  expect(writes.inLastHour(BAY, at(50))).toBe(0);
});
