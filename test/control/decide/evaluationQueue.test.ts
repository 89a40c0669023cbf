import { NEVER, Subject } from "rxjs";
import { expect, onTestFinished, test } from "vitest";

import { auditRow } from "../../../src/domain/audit.ts";
import type { CommandRecord } from "../../../src/domain/command.ts";
import { type Change, type Committed, scopeOf } from "../../../src/domain/changes.ts";
import { chargerId, type ChargerId, millis, vehicleId } from "../../../src/domain/units.ts";
import { control } from "../../../src/control/pipeline.ts";
import {
  EvaluatedMark,
  EvaluationQueue,
  LARGEST_SLICE,
  SLICE,
} from "../../../src/control/decide/evaluationQueue.ts";
import type { ControlPorts, Freeing } from "../../../src/control/ports.ts";
import { aCharger, aVehicle } from "../../support/aCharger.ts";
import { aDepot } from "../../support/aDepot.ts";
import { anEvent, at, live, targetsOf } from "../../support/anEvent.ts";
import { aPicture } from "../../support/aPicture.ts";
import { waitFor } from "../../support/waitFor.ts";
import { quietEdges } from "../../support/quietEdges.ts";

const FLEET = 3 * SLICE + 1;
const names = Array.from({ length: FLEET }, (_, index) => String(index));
const fleet = live(
  anEvent({ randomizeStart: millis(0), targets: targetsOf(...names.map((name) => `v${name}`)) }),
);
const now = at("05:30");
/** After the work that can run now. */
const settled = (): Promise<void> => new Promise((done) => setImmediate(() => setImmediate(done)));
const touches = (reassert = false) => names.map((name) => ({ charger: chargerId(`c${name}`), reassert }));

/** Control of a fleet in the middle of an event. `commit` answers each commit in its turn. */
function controlled(
  commit: (decisions: number) => Committed = () => ({ ok: true }),
  over: Partial<ControlPorts> = {},
) {
  const depot = aPicture({
    chargers: names.map((name) => aCharger({ id: `c${name}` })),
    vehicles: names.map((name) => aVehicle({ id: vehicleId(`v${name}`), charger: chargerId(`c${name}`) })),
  });
  depot.allowStarts();
  depot.schedule.put(fleet, now);
  /** Decisions of each commit. */
  const commits: number[] = [];
  const sent: ChargerId[] = [];
  const stored = new Map<ChargerId, CommandRecord>();
  let staged: readonly Change[] = [];
  let committing: Promise<Committed> | null = null;
  const freed$ = new Subject<Freeing>();
  const sources = { webhook$: NEVER, polled$: NEVER, charger$: NEVER, brokerUp$: NEVER };
  const flow = control(
    depot,
    { ...sources, startsAllowed$: NEVER, freed$, change$: NEVER, unlocked$: NEVER },
    {
      ...quietEdges,
      now: () => now,
      write: (changes) => (staged = [...staged, ...changes]),
      durable: () => {
        committing ??= new Promise((committed) => {
          setImmediate(() => {
            const decisions = staged.filter(
              (change) => change.kind === "audit" && change.entry.kind === "decision",
            );
            commits.push(decisions.length);
            const outcome = commit(decisions.length);
            const dropped = staged;
            for (const change of outcome.ok ? staged : [])
              if (change.kind === "command") stored.set(change.record.command.charger, change.record);
            staged = [];
            committing = null;
            const [events, holds, reasons] = [[], [], new Map()];
            const commands = [...scopeOf(dropped).chargers].flatMap((charger) => stored.get(charger) ?? []);
            const found = { events, commands, reasons, holds, bindings: [], observePeriod: null };
            committed(outcome.ok ? outcome : { ...outcome, dropped, stored: found });
          });
        });
        return committing;
      },
      send: async ({ charger }) => {
        sent.push(charger);
        return { ok: true };
      },
      ...over,
    },
  ).subscribe();
  onTestFinished(() => flow.unsubscribe());
  return { depot, commits, sent, freed$ };
}

test("an event for a large fleet is decided in several turns of the loop, none with more than a slice", async () => {
  const { commits, sent } = controlled();
  await waitFor(() => sent.length >= FLEET || null);
  expect(Math.max(...commits)).toBe(SLICE);
  expect(commits.reduce((sum, count) => sum + count)).toBe(FLEET);
  expect(new Set(sent).size).toBe(FLEET);
});

test("publishes in flight follow the window of the broker while it widens and narrows", async () => {
  let window = 20;
  const open: (() => void)[] = [];
  const inFlight: number[] = [];
  let sent = 0;
  controlled(undefined, {
    windowOf: () => window,
    send: () =>
      new Promise((answered) => {
        sent += 1;
        open.push(() => answered({ ok: true }));
      }),
  });
  const answerAll = async (): Promise<void> => {
    inFlight.push(open.length);
    for (const answer of open.splice(0)) answer();
    await settled();
  };
  await waitFor(() => open.length === 20 || null);
  window = 40;
  await answerAll();
  await answerAll();
  window = 5;
  for (let turns = 0; turns < FLEET; turns += 5) await answerAll();
  expect(inFlight.slice(0, 6)).toEqual([20, 40, 40, 5, 5, 5]);
  await answerAll();
  expect(sent).toBe(FLEET);
});

test("freeing a large fleet is answered after its last commit", async () => {
  const { depot, commits, sent, freed$ } = controlled();
  await waitFor(() => sent.length >= FLEET || null);
  const before = commits.length;
  const committed = await new Promise<Committed>((settle) =>
    freed$.next({ chargers: [...depot.chargers.keys()], by: "operator", settle }),
  );
  expect(committed).toEqual({ ok: true });
  expect(commits.length - before).toBeGreaterThanOrEqual(4);
  expect(depot.holds.open().length).toBe(FLEET);
});

test("while no commit ends, a hundred are asked for, and each freeing is answered after the next one", async () => {
  const commit = Promise.withResolvers<Committed>();
  let [asked, evaluations, answered] = [0, 0, 0];
  const { depot, freed$ } = controlled(undefined, {
    durable: () => {
      asked += 1;
      return commit.promise;
    },
    evaluated: () => (evaluations += 1),
  });
  const chargers = [chargerId("c0")];
  for (let round = 0; round < 300; round += 1) {
    freed$.next({ chargers, by: "operator", settle: () => (answered += 1) });
    await settled();
  }
  // The health check sees that control goes on.
  expect([asked, answered, evaluations]).toEqual([100, 0, 300]);
  commit.resolve({ ok: true });
  await waitFor(() => answered === 300 || null);
  // All but the freed one.
  await waitFor(() => depot.commands.size === FLEET - 1 || null);
});

test("a commit that fails in the middle is answered as failed, and stops no other slice", async () => {
  let isFull = false;
  const { depot, sent, freed$ } = controlled((decisions) => {
    const fails = isFull && decisions > 0;
    isFull &&= !fails;
    return fails ? { ok: false, reason: "disk full", dropped: [], stored: null } : { ok: true };
  });
  await waitFor(() => sent.length >= FLEET || null);
  isFull = true;
  const committed = await new Promise<Committed>((settle) =>
    freed$.next({ chargers: [...depot.chargers.keys()], by: "operator", settle }),
  );
  expect(committed).toMatchObject({ ok: false, reason: "disk full" });
  const released = (): number =>
    [...depot.commands.values()].filter(({ command }) => command.desired.kind === "release").length;
  expect(released()).toBe(FLEET);
});

test("few chargers are evaluated at once while many wait, and not a second time", () => {
  const queue = new EvaluationQueue(aPicture());
  expect(queue.take(touches())).toHaveLength(SLICE);
  const last = { charger: chargerId(`c${FLEET - 1}`), reassert: true };
  expect(queue.take([last])).toEqual([last]);
  expect([queue.next(), queue.next(), queue.next()].map((slice) => slice?.length)).toEqual([SLICE, SLICE, 0]);
  expect(queue.isEmpty).toBe(true);
});

test("a charger that waits for its evaluation keeps that its command is to be sent again", () => {
  const queue = new EvaluationQueue(aPicture());
  queue.take(touches(true));
  queue.take(touches(false));
  expect(queue.next()?.every(({ reassert }) => reassert)).toBe(true);
});

test("windows missed by a step of the clock are all recorded with the mark, however many those are", () => {
  const depot = aPicture();
  const mark = new EvaluatedMark(depot, new EvaluationQueue(depot));
  const missed = Array<Change>(200_000).fill(auditRow("missed", now, "veh-1 missed event e1"));
  mark.add(missed);
  mark.add(missed.slice(0, 1));
  expect(mark.write(now)).toHaveLength(200_002);
});

test("after an outage of the database, all chargers of a large site are evaluated in several turns", () => {
  const queue = new EvaluationQueue(aPicture());
  // A hundred evaluations waited for its end.
  for (let open = 0; open < 100; open += 1) queue.committed(millis(600_000));
  const all = Array.from({ length: 20_000 }, (_, index) => ({
    charger: chargerId(`c${index}`),
    reassert: false,
  }));
  expect(queue.take(all)?.length).toBe(LARGEST_SLICE);
});

test("a slow disk gets larger slices, until a commit is quick again", () => {
  const queue = new EvaluationQueue(aPicture());
  queue.committed(millis(2_000));
  expect(queue.take(touches())).toHaveLength(2 * SLICE);
  queue.committed(millis(10));
  expect(queue.next()).toHaveLength(SLICE);
});

test("each vehicle of a large fleet starts and is released once", async () => {
  const depot = await aDepot()
    .withVehicles(SLICE + 1)
    .withEvent({ start: "08:00", minutes: 30, amperes: 10 })
    .running();
  await depot.until("08:00:10");
  expect(depot.commands()).toHaveLength(SLICE + 1);
  depot.forget();
  await depot.until("08:30:10");
  expect(depot.commands()).toHaveLength(SLICE + 1);
  expect(depot.standing()).toEqual([]);
});
