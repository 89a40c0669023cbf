import { NEVER, Subject } from "rxjs";
import { expect, onTestFinished, test } from "vitest";

import type { Change, Committed } from "../../../src/domain/changes.ts";
import type { Delivery, IngestAnswer } from "../../../src/domain/delivery.ts";
import { chargerId, type ChargerId, instant, millis, minutes, vehicleId } from "../../../src/domain/units.ts";
import { ingestStage } from "../../../src/control/ingest/ingest.ts";
import { ingestAtOnce } from "../../support/ingestAtOnce.ts";
import { control } from "../../../src/control/pipeline.ts";
import type { Arrival } from "../../../src/control/ports.ts";
import { aCharger, aVehicle } from "../../support/aCharger.ts";
import { anEvent, at, targetsOf } from "../../support/anEvent.ts";
import { aPicture } from "../../support/aPicture.ts";
import { waitFor } from "../../support/waitFor.ts";
import { quietEdges } from "../../support/quietEdges.ts";

const FLEET = 1_500;
const names = Array.from({ length: FLEET }, (_, index) => String(index));
const now = at("05:30");

function fleet() {
  const depot = aPicture({
    chargers: names.map((name) => aCharger({ id: `c${name}` })),
    vehicles: names.map((name) => aVehicle({ id: vehicleId(`v${name}`), charger: chargerId(`c${name}`) })),
  });
  depot.allowStarts();
  return depot;
}

function delivered(revision: number, vehicles: readonly string[], level = 16): Delivery {
  const targets = targetsOf(...vehicles.map((name) => `v${name}`));
  const event = anEvent({
    revision: instant(at("04:00") + revision),
    randomizeStart: minutes(10),
    ask: { kind: "current", level },
    targets,
  });
  const notices = [{ kind: "event", event }] as const;
  return { source: "webhook", at: now, askedAt: now, notices, complete: false };
}

/** A monotonic clock on which each reading takes 4 ms. */
function busyClock() {
  let tick = 0;
  return () => millis((tick += 4));
}

/** Counts turns of the event loop until the test has finished. */
function countTurns(): () => number {
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  onTestFinished(() => {
    isOver = true;
  });
  return () => turns;
}

test("a large event is ingested in several turns of the event loop, with the result of one", async () => {
  const turns = countTurns();
  const [sliced, whole] = [fleet(), fleet()];
  const written: Change[] = [];
  const answers: IngestAnswer[] = [];
  const stage = ingestStage(sliced, {
    write: (changes) => written.push(...changes),
    fetchById: () => {},
    durable: () => Promise.resolve({ ok: true }),
    monotonic: busyClock(),
  });
  for (const delivery of [delivered(1, names), delivered(2, names.slice(200), 10), delivered(3, ["0"])]) {
    const began = turns();
    const affected = await stage([{ delivery, settle: (answer) => answers.push(answer) }]);
    expect(turns() - began).toBeGreaterThan(3);
    const expected = ingestAtOnce(whole, [delivery]);
    expect(affected.map(({ charger }) => charger).toSorted()).toEqual(
      [...expected.affectedChargers].toSorted(),
    );
    expect(written.splice(0)).toEqual(expected.changes);
    for (const name of names)
      expect(sliced.agenda.of(vehicleId(`v${name}`))).toEqual(whole.agenda.of(vehicleId(`v${name}`)));
    expect([sliced.agenda.size, sliced.next()]).toEqual([whole.agenda.size, whole.next()]);
  }
  expect(answers.map(({ ok }) => ok)).toEqual([true, true, true]);
});

test("a delivery of a stand-in is deleted by the commit that has what it changed", async () => {
  const depot = fleet();
  const written: Change[][] = [];
  const stage = ingestStage(depot, {
    write: (changes) => void written.push([...changes]),
    fetchById: () => {},
    durable: () => Promise.resolve({ ok: true }),
    monotonic: busyClock(),
  });
  await stage([{ delivery: { ...delivered(1, ["0"]), stored: 7 }, settle: () => {} }]);
  expect(written).toHaveLength(1);
  expect(written[0]?.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["event", "audit"]));
  expect(written[0]?.at(-1)).toEqual({ kind: "deliveryTaken", stored: 7 });
});

test("while a large edit is ingested, each vehicle has its old dispatch or its new one", async () => {
  const depot = fleet();
  ingestAtOnce(depot, [delivered(1, names)]);
  const stage = ingestStage(depot, {
    write: () => {},
    fetchById: () => {},
    durable: () => Promise.resolve({ ok: true }),
    monotonic: busyClock(),
  });
  const edited = stage([{ delivery: delivered(2, names, 10), settle: () => {} }]);
  const progress = { isDone: false };
  void Promise.resolve(edited).then(() => (progress.isDone = true));
  const levels = new Set<number>();
  while (!progress.isDone) {
    const mixed = new Set<string>();
    for (const name of names) {
      const [dispatch] = depot.agenda.of(vehicleId(`v${name}`));
      mixed.add(dispatch?.setpoint.kind === "current" ? String(dispatch.setpoint.amperes) : "none");
    }
    expect(mixed).not.toContain("none");
    levels.add(mixed.size);
    await new Promise((turned) => setImmediate(turned));
  }
  // Some turns found both.
  expect(levels).toContain(2);
});

test("nothing is decided while a large event is ingested, and nothing is sent before its commit", async () => {
  const depot = fleet();
  const webhook$ = new Subject<Arrival>();
  const unlocked$ = new Subject<ChargerId>();
  const written: Change[] = [];
  let committed = 0;
  const early: ChargerId[] = [];
  const sent: ChargerId[] = [];
  let staged = 0;
  const flow = control(
    depot,
    {
      webhook$,
      polled$: NEVER,
      charger$: NEVER,
      brokerUp$: NEVER,
      startsAllowed$: NEVER,
      freed$: NEVER,
      unlocked$,
      change$: NEVER,
    },
    {
      ...quietEdges,
      now: () => at("05:50"),
      monotonic: busyClock(),
      write: (changes) => {
        written.push(...changes);
        staged += changes.length;
      },
      durable: () =>
        new Promise<Committed>((done) => {
          const upTo = staged;
          setImmediate(() => {
            committed = upTo;
            done({ ok: true });
          });
        }),
      send: async ({ charger }) => {
        if (committed === 0) early.push(charger);
        sent.push(charger);
        return { ok: true };
      },
    },
  ).subscribe();
  onTestFinished(() => flow.unsubscribe());
  const answered = new Promise<IngestAnswer>((settle) => {
    webhook$.next({ delivery: delivered(1, names), settle });
  });
  for (let turn = 0; turn < 6; turn += 1) {
    unlocked$.next(chargerId("c7"));
    await new Promise((turned) => setImmediate(turned));
  }
  expect(await answered).toEqual({ ok: true, ingested: { accepted: 1, repeats: 0, rejected: 0 } });
  await waitFor(() => sent.length >= FLEET || null);
  expect(written[0]?.kind).toBe("event");
  expect(early).toEqual([]);
});
