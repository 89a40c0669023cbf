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

test("a charger gets the topics below its root, and no other topic there", () => {
  const board = topicRouter<string>(["ack", "online"], (root) =>
    root === "depot/chargers/bay" ? "bay" : undefined,
  );
  board.connect("depot/chargers/bay/ack", "reader");
  expect([...board.listeners("depot/chargers/bay/ack")]).toEqual(["reader", "bay"]);
  expect([...board.listeners("depot/chargers/bay/online")]).toEqual(["bay"]);
  const others = [
    "depot/chargers/bay/set",
    "depot/chargers/bay",
    "depot/chargers/bay/ack/x",
    "bay",
    "/ack",
    "",
  ];
  expect(others.flatMap((topic) => [...board.listeners(topic)])).toEqual([]);
});
