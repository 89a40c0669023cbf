import { expect, test } from "vitest";

import { topicRouter } from "../../../src/chargers/broker/topicRouter.ts";

test("each listener of a topic gets it once, and no other listener does", () => {
  const board = topicRouter<string>();
  board.connect("gx/heartbeat", "a");
  board.connect("gx/heartbeat", "b");
  board.connect("gx/+", "b");
  board.connect("gx/reply/+/end", "c");
  expect([...board.listeners("gx/heartbeat")]).toEqual(["a", "b"]);
  expect([...board.listeners("gx/reply/17/end")]).toEqual(["c"]);
  expect([...board.listeners("gx/reply/17")]).toEqual([]);
  expect([...topicRouter<string>().listeners("gx/heartbeat")]).toEqual([]);
});
