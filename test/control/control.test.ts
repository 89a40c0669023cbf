import * as fc from "fast-check";
import { assert, expect, test } from "vitest";

import { levelOnRecord } from "../../src/domain/setpoint.ts";
import type { Committed } from "../../src/domain/changes.ts";
import { type ChargerId, chargerId, millis } from "../../src/domain/units.ts";
import type { ControlPorts } from "../../src/control/ports.ts";
import { type Pending, Stages } from "../../src/control/stages.ts";
import type { ControlState } from "../../src/control/state.ts";
import { aDepot } from "../support/aDepot.ts";
import { anEvent, at, live } from "../support/anEvent.ts";
import { aPicture } from "../support/aPicture.ts";
import { derivedStart } from "../support/derivedStart.ts";
import type { TestDepot } from "../support/testDepot.ts";
import { revisionTime, type WireEvent } from "../support/wireEvent.ts";
import { quietEdges } from "../support/quietEdges.ts";

test("an event starts on time and the charger is released at its end", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .running();
  await depot.until("10:00");
  expect(depot.timedCommands()).toEqual(["08:00:00.000 bay-01 10 A", "08:30:00.000 bay-01 release"]);
});

test("each vehicle starts at its own derived moment and is released a full duration later (F28)", async () => {
  const depot = await aDepot()
    .withVehicles(4)
    .withEvent({ start: "08:00", minutes: 60, spread: 10, amperes: 10 })
    .running();
  const starts = [1, 2, 3, 4].map((n) => ({
    charger: `bay-0${n}`,
    at: derivedStart(depot.siteKey, { id: "EV-1", vehicle: `v${n}`, start: "08:00", spread: 10 }),
  }));
  await depot.until("09:30");
  expect(depot.timedCommands()).toEqual([
    ...starts.map(({ charger, at }) => `${at} ${charger} 10 A`).toSorted(),
    ...starts.map(({ charger, at }) => `${at.replace("08:", "09:")} ${charger} release`).toSorted(),
  ]);
});

test("a slow broker delays commands and states of its own chargers only", async () => {
  const depot = await Array.from({ length: 40 }, (_, n) => `yard-${n}`)
    .reduce(
      (builder, id) => builder.withCharger(id, { broker: "yard" }).withVehicle(`on-${id}`, id),
      aDepot().withBroker("yard").withVehicle("v1", "bay-01"),
    )
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .publishingStates()
    .running();
  for (let n = 0; n < 40; n += 1) depot.floor.publishing(`yard-${n}`, { takesMs: 9_000 });
  await depot.until("08:00:05");
  expect(depot.timedCommands().filter((words) => words.includes("bay-"))).toEqual([
    "08:00:00.000 bay-01 10 A",
  ]);
  const state = depot.floor.states.findLast(({ charger }) => charger === "bay-01")?.payload ?? "null";
  expect(JSON.parse(state)).toMatchObject({ allowed: { value: 10 } });
  await depot.until("08:25");
  await depot.deliver({ id: "EV-2", start: "08:25", minutes: 5, amperes: 8, priority: 0 });
  await depot.until("08:25:01");
  expect(depot.timedCommands().at(-1)).toMatch(/^08:25:00/);
  await depot.until("08:29");
  expect(depot.standing()).toHaveLength(41);
  expect(depot.standing().every((words) => words.includes(" 8 A "))).toBe(true);
  for (let n = 0; n < 40; n += 1) depot.floor.publishing(`yard-${n}`, "works");
});

test("an event that arrives after its start is acted on at once, until its own end", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").startingAt("08:10").running();
  await depot.deliver({ start: "08:00", minutes: 30, amperes: 10 });
  await depot.until("09:00");
  expect(depot.timedCommands()).toEqual(["08:10:01.000 bay-01 10 A", "08:30:00.000 bay-01 release"]);
});

test("a restart keeps the future: stored dispatches start with no new delivery", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .whosePartnerAnswers("silent")
    .restarted();
  await depot.until("08:30");
  expect(depot.commands()).toEqual(["bay-01 10 A"]);
});

test("after a restart commands are sent again at once with the same number, and new starts wait for the partner", async () => {
  const depot = await aDepot()
    .withVehicles(2)
    .withEvent({ id: "EV-1", start: "08:00", amperes: 10, vehicles: ["v1"] })
    .withEvent({ id: "EV-2", start: "08:30", amperes: 12, vehicles: ["v2"] })
    .running();
  await depot.until("08:29:59.500");
  const [first] = depot.floor.published;
  await depot.stop();
  depot.forget();
  depot.partner.takesMs = 3000;
  depot.start();
  await depot.until("08:31");
  expect(depot.messages().slice(0, 2)).toEqual(["08:29:59.512 bay-01 10 A", "08:30:02.512 bay-02 12 A"]);
  expect(depot.floor.published[0]?.id).toBe(first?.id);
});

test("a partner that never answers holds new starts back for ten seconds after a start, no longer (F30)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("07:59:59");
  await depot.stop();
  depot.partner.takesMs = 1_000_000;
  depot.start();
  await depot.until("08:30");
  expect(depot.timedCommands()).toEqual(["08:00:09.012 bay-01 10 A"]);
});

test("a first fetch that fails ends the wait for it", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("07:59:59");
  await depot.stop();
  depot.partner.answers = { status: 500 };
  depot.partner.takesMs = 2000;
  depot.start();
  await depot.until("08:30");
  expect(depot.timedCommands()).toEqual(["08:00:01.012 bay-01 10 A"]);
});

test("a restart with a slow broker and a partner that answers meanwhile sends each charger one message", async () => {
  const depot = await aDepot().withVehicles(3).withEvent({ start: "08:00", amperes: 10 }).running();
  await depot.until("08:30");
  await depot.stop();
  depot.forget();
  for (const charger of ["bay-01", "bay-02", "bay-03"]) depot.floor.publishing(charger, { takesMs: 4000 });
  depot.start();
  await depot.until("08:30:30");
  expect(depot.messages().map((message) => message.slice(13))).toEqual([
    "bay-01 10 A",
    "bay-02 10 A",
    "bay-03 10 A",
  ]);
});

test("a charger that was never commanded is sent nothing at a start", async () => {
  const depot = await aDepot().withVehicles(2).restarted();
  await depot.until("01:00");
  expect(depot.messages()).toEqual([]);
});

test("when the broker returns, every charger is sent its current command once, and nothing while it is down (F80)", async () => {
  const depot = await aDepot()
    .withVehicles(3)
    .withEvent({ id: "EV-1", start: "08:00", minutes: 30, amperes: 10, vehicles: ["v1"] })
    .withEvent({ id: "EV-2", start: "08:00", minutes: 120, amperes: 12, vehicles: ["v2"] })
    .withEvent({ id: "EV-3", start: "08:20", minutes: 10, amperes: 14, vehicles: ["v2"], priority: 0 })
    .running();
  await depot.until("08:10");
  depot.forget();
  depot.brokerGoes();
  await depot.until("09:00");
  expect(depot.messages()).toEqual([]);
  depot.brokerReturns();
  await depot.until("09:00:30");
  expect(depot.messages()).toEqual(["09:00:00.001 bay-01 release", "09:00:00.001 bay-02 12 A"]);
});

test("a broker that connects again and again gets each command once per connection (F85)", async () => {
  const depot = await aDepot()
    .withVehicle("v1", "bay-01")
    .withEvent({ start: "08:00", amperes: 10 })
    .running();
  await depot.until("08:10:30");
  depot.forget();
  for (let visit = 0; visit < 5; visit += 1) {
    depot.brokerGoes();
    await depot.passes(2000);
    depot.brokerReturns();
    await depot.passes(2000);
  }
  expect(depot.messages()).toHaveLength(5);
});

interface Step {
  readonly revision: number;
  readonly kind: "event" | "delete";
  readonly amperes: number;
}

/** Steps are the event's true history; they are delivered in `order`, which names each at least once. */
async function told(history: readonly Step[], order: readonly number[]): Promise<readonly string[]> {
  const depot: TestDepot = await aDepot().withVehicles(2).pollingEvery("1h").running();
  const last = history.at(-1);
  const bodyOf = ({ kind, revision, amperes }: Step): unknown => {
    const event: WireEvent = depot.has({ start: "00:05", minutes: 180, spread: 2, amperes, revision });
    const object = { ID: event.ID, modificationDateTime: revisionTime(revision) };
    return kind === "event" ? event : { objectType: "EVENT", operation: "DELETE", object };
  };
  const bodies = history.map(bodyOf);
  if (last?.kind === "delete") depot.partner.events.clear();
  for (const index of order) {
    await depot.post(bodies[index]);
    await depot.passes(20_000);
  }
  await depot.until("02:00");
  const standing = depot.standing();
  await depot.stop();
  return standing;
}

test("after duplicated and reordered deliveries, chargers end with the same commands as after a straight run (F50, F51)", async () => {
  const step = fc.record({
    kind: fc.constantFrom("event" as const, "event" as const, "delete" as const),
    amperes: fc.integer({ min: 6, max: 32 }),
  });
  const scenario = fc.array(step, { minLength: 1, maxLength: 4 }).chain((steps) => {
    const history = steps.map((each, index): Step => ({ ...each, revision: index + 1 }));
    const indices = history.map((_, index) => index);
    const extra = fc.array(fc.nat({ max: history.length - 1 }), { maxLength: 4 });
    const order = extra.chain((more) =>
      fc.shuffledSubarray([...indices, ...more], { minLength: indices.length + more.length }),
    );
    return fc.record({ history: fc.constant(history), indices: fc.constant(indices), order });
  });
  await fc.assert(
    fc.asyncProperty(scenario, async ({ history, indices, order }) => {
      expect(await told(history, order)).toEqual(await told(history, indices));
    }),
    { numRuns: 20 },
  );
});

/** The stages over ports that do nothing, but for these. */
const stagesWith = (
  state: ControlState,
  ports: Pick<ControlPorts, "durable"> & Partial<Pick<ControlPorts, "send" | "firstAttempt">>,
) =>
  new Stages(state, {
    now: () => at("05:30"),
    ...quietEdges,
    ...ports,
  });

/** Commits that end when a test says so. */
function openCommits() {
  const commits: PromiseWithResolvers<Committed>[] = [];
  const durable = (): Promise<Committed> => {
    const commit = Promise.withResolvers<Committed>();
    commits.push(commit);
    return commit.promise;
  };
  return { commits, durable };
}

/** The evaluation of one charger, which begins at once. */
function evaluated(stages: Stages, charger: ChargerId): Pending {
  const pending = stages.evaluate([{ charger, reassert: false }]);
  assert(pending !== null);
  return pending;
}

/** The stages, with what they sent to bay-01. `asks`: an event asks for so many amperes, and the charger is evaluated. */
function aSender(ports: Partial<Pick<ControlPorts, "firstAttempt">> = {}) {
  const depot = aPicture();
  depot.allowStarts();
  const { commits, durable } = openCommits();
  const sent: string[] = [];
  const stages = stagesWith(depot, {
    durable,
    send: async ({ desired }) => {
      sent.push(levelOnRecord(desired));
      return { ok: true };
    },
    ...ports,
  });
  const asks = (level: number): Pending => {
    const event = anEvent({ randomizeStart: millis(0), ask: { kind: "current", level } });
    depot.schedule.put(live(event), at("05:30"));
    return evaluated(stages, chargerId("bay-01"));
  };
  return { commits, sent, stages, asks };
}

test("a newer decision is not sent before its commit, although its charger is queued for the one before", async () => {
  const { commits, sent, stages, asks } = aSender();
  const first = asks(16);
  commits[0]?.resolve({ ok: true });
  await stages.committed(first);
  const second = asks(10);
  await stages.senders.sendWaiting("");
  expect(sent).toEqual([]);
  commits[1]?.resolve({ ok: true });
  await stages.committed(second);
  await stages.senders.sendWaiting("");
  expect(sent).toEqual(["10 A"]);
});

test("a decision that is made while the broker is being connected is not sent before its commit", async () => {
  const connecting = Promise.withResolvers<void>();
  const { commits, sent, stages, asks } = aSender({ firstAttempt: () => connecting.promise });
  const first = asks(16);
  commits[0]?.resolve({ ok: true });
  await stages.committed(first);
  const sending = stages.senders.sendWaiting("");
  const second = asks(10);
  connecting.resolve();
  await sending;
  expect(sent).toEqual([]);
  commits[1]?.resolve({ ok: true });
  await stages.committed(second);
  await stages.senders.sendWaiting("");
  expect(sent).toEqual(["10 A"]);
});

test("a decision that was made before the commit of the one before is not sent with that commit, but with its own", async () => {
  const { commits, sent, stages, asks } = aSender();
  const pending = [asks(16), asks(10)];
  const sentBy: string[][] = [];
  for (const [index, each] of pending.entries()) {
    commits[index]?.resolve({ ok: true });
    await stages.committed(each);
    await stages.senders.sendWaiting("");
    sentBy.push([...sent]);
  }
  expect(sentBy).toEqual([[], ["10 A"]]);
});

test("while a command is on its way, what a charger reports waits for the commit of a decision, and delays none", async () => {
  const depot = aPicture();
  depot.allowStarts();
  const commits: (string | undefined)[] = [];
  const stages = stagesWith(depot, {
    durable: async (when) => {
      commits.push(when);
      return { ok: true };
    },
  });
  const charger = chargerId("bay-01");
  const evaluateOnce = async (): Promise<unknown> => stages.committed(evaluated(stages, charger));
  await evaluateOnce();
  depot.sendQueue.startPublish(chargerId("bay-02"), 1);
  await evaluateOnce();
  depot.sendQueue.endPublish(chargerId("bay-02"));
  await evaluateOnce();
  expect(commits).toEqual(["now", "soon", "now"]);
  depot.sendQueue.startPublish(chargerId("bay-02"), 2);
  const event = anEvent({ randomizeStart: millis(0), ask: { kind: "current", level: 16 } });
  depot.schedule.put(live(event), at("05:30"));
  const decided = evaluated(stages, charger);
  expect(decided.send).toEqual([charger]);
  await stages.committed(decided);
  let freed = false;
  stages.free({ chargers: [charger], by: "a person", settle: () => (freed = true) });
  await evaluateOnce();
  expect(freed).toBe(true);
  expect(commits).toEqual(["now", "soon", "now", "now", "now"]);
});

test("while no commit ends, a hundred evaluations are open, and what comes after them is evaluated once, after the next commit", async () => {
  const depot = aPicture();
  depot.allowStarts();
  const { commits, durable } = openCommits();
  const stages = stagesWith(depot, { durable });
  const charger = chargerId("bay-01");
  const open = Array.from({ length: 100 }, () => evaluated(stages, charger));
  expect(stages.isBehind()).toBe(false);
  const event = anEvent({ randomizeStart: millis(0), ask: { kind: "current", level: 16 } });
  depot.schedule.put(live(event), at("05:30"));
  for (let message = 0; message < 1000; message += 1)
    expect(stages.evaluate([{ charger, reassert: false }])).toBe(null);
  expect(stages.evaluateNext()).toBe(null);
  expect(commits).toHaveLength(100);
  expect(stages.isBehind()).toBe(true);
  for (const { resolve } of commits) resolve({ ok: true });
  for (const pending of open) expect(await stages.committed(pending)).toEqual([]);
  expect(stages.evaluateNext()).toMatchObject({ evaluated: [{ charger }], send: [charger] });
  expect(commits).toHaveLength(101);
  expect(stages.isBehind()).toBe(false);
});
