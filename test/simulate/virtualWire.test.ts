import { expect, test } from "vitest";

import { instant, millis } from "../../src/domain/units.ts";
import { agentFor, exchange } from "../../src/vtn/http.ts";
import { VirtualClock } from "./virtualClock.ts";
import { VirtualWire } from "./virtualWire.ts";

const never = (): boolean => false;
const ask = {
  origin: "https://api.partner.example",
  path: "/vtn/v1/events",
  method: "GET",
  headers: {},
  body: null,
  expected: null,
} as const;

test("the real client asks, is answered in virtual time, and gives up at its deadline", async () => {
  using clock = new VirtualClock(instant(0));
  using wire = new VirtualWire();
  const agent = agentFor(1_000, millis(10_000));
  const asking = () => exchange(agent, ask, millis(10_000), clock.gateway);
  wire.answer = async ({ path }) => {
    await new Promise((resolve) => setTimeout(resolve, 40));
    return { status: 200, headers: {}, body: path };
  };
  const answered = asking();
  await clock.advanceTo(40, never);
  const answer = await answered;
  expect(answer.kind === "answered" && [answer.body.toString(), answer.at]).toEqual(["/vtn/v1/events", 40]);
  wire.answer = () => new Promise(() => {});
  const silent = asking();
  await clock.advanceTo(10_040, never);
  expect(await silent).toEqual({ kind: "silent", reason: "no complete answer within 10000 ms" });
});

test("a client whose process has ended receives nothing any more", async () => {
  using clock = new VirtualClock(instant(0));
  using wire = new VirtualWire();
  const agent = agentFor(1_000, millis(10_000));
  let heard = false;
  wire.answer = async () => ({ status: 200, headers: {}, body: "" });
  await agent.destroy();
  void exchange(agent, ask, millis(10_000), clock.gateway).then(() => (heard = true));
  await clock.advanceTo(20_000, never);
  expect(heard).toBe(false);
});
