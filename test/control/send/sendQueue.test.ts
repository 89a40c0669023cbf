import { expect, test } from "vitest";

import { SendQueue, sendersOf } from "../../../src/control/send/sendQueue.ts";
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

test("as many senders may start as the broker's window has room, and one where it has none", async () => {
  const queue = new SendQueue();
  for (const bay of [bay1, bay2, bay3]) queue.add("", bay);
  let window = 2;
  const published: string[] = [];
  const inFlight: (() => void)[] = [];
  const { sendWaiting, room } = sendersOf(queue, {
    windowOf: () => window,
    maySend: anyone,
    send: (charger) => {
      published.push(charger);
      const { promise, resolve } = Promise.withResolvers<void>();
      inFlight.push(resolve);
      return promise;
    },
  });
  expect(room("")).toBe(2);
  const atWork = [sendWaiting(""), sendWaiting("")];
  expect([room(""), published]).toEqual([0, [bay1, bay2]]);
  expect([bay1, bay2, bay3].map((bay) => queue.isInFlight(bay))).toEqual([true, true, false]);
  await sendWaiting("");
  expect(published).toEqual([bay1, bay2]);
  window = 0;
  expect([room(""), room("without a connection")]).toEqual([0, 1]);
  window = 2;
  // Those at work find what waits.
  for (const settle of inFlight.splice(0)) settle();
  await new Promise(setImmediate);
  expect(published).toEqual([bay1, bay2, bay3]);
  for (const settle of inFlight) settle();
  await Promise.all(atWork);
  expect(room("")).toBe(2);
});

test("a window that widens while a publish is on its way is used at once", async () => {
  const queue = new SendQueue();
  for (const bay of [bay1, bay2, bay3]) queue.add("", bay);
  let window = 1;
  const published: string[] = [];
  const inFlight: (() => void)[] = [];
  const { sendWaiting, room } = sendersOf(queue, {
    windowOf: () => window,
    maySend: anyone,
    send: (charger) => {
      published.push(charger);
      const { promise, resolve } = Promise.withResolvers<void>();
      inFlight.push(resolve);
      return promise;
    },
  });
  const atWork = sendWaiting("");
  window = 2;
  inFlight.shift()?.();
  await new Promise(setImmediate);
  // The first sender goes on, and a second one joins it.
  expect(published).toEqual([bay1, bay2, bay3]);
  expect([bay2, bay3].map((bay) => queue.isInFlight(bay))).toEqual([true, true]);
  for (const settle of inFlight) settle();
  await atWork;
  expect(room("")).toBe(2);
});
