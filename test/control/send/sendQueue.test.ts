import { expect, test } from "vitest";

import { SendQueue } from "../../../src/control/send/sendQueue.ts";
import { chargerId } from "../../../src/domain/units.ts";

const [bay1, bay2, bay3] = [chargerId("bay-01"), chargerId("bay-02"), chargerId("bay-03")];
const anyone = (): boolean => true;

test("each broker has a queue of its own, in order, each charger once", () => {
  const queue = new SendQueue();
  expect([queue.isEmpty(""), queue.take("", anyone)]).toEqual([true, undefined]);
  queue.add("", bay2);
  queue.add("yard", bay3);
  queue.add("", bay1);
  queue.add("", bay2);
  expect([queue.isEmpty(""), queue.isEmpty("yard"), queue.isEmpty("other")]).toEqual([false, false, true]);
  expect([queue.take("", anyone), queue.take("", anyone), queue.take("", anyone)]).toEqual([
    bay2,
    bay1,
    undefined,
  ]);
  expect([queue.take("yard", anyone), queue.isEmpty("yard")]).toEqual([bay3, true]);
});

test("a charger that may not be sent to yet keeps its place, and is found later", () => {
  const queue = new SendQueue();
  for (const bay of [bay1, bay2, bay3]) queue.add("", bay);
  const busy = new Set([bay1]);
  const free = (charger: typeof bay1): boolean => !busy.has(charger);
  expect([queue.take("", free), queue.take("", free), queue.take("", free)]).toEqual([bay2, bay3, undefined]);
  busy.clear();
  queue.add("", bay2);
  expect([queue.take("", free), queue.take("", free)]).toEqual([bay2, bay1].toSorted());
});
