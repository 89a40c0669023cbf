import { expect, test } from "vitest";

import type { Verdict } from "../../../src/control/decide/verdict.ts";
import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import { CommissioningLock } from "../../../src/control/decide/commissioningLock.ts";
import { amperes } from "../../../src/domain/units.ts";
import { settingsWith } from "../../support/aCharger.ts";
import { aDispatch } from "../../support/anEvent.ts";
import { circumstancesOf, verdict } from "../../support/aVerdict.ts";

const held = (...inForce: readonly Dispatch[]) => verdict(circumstancesOf(inForce), settingsWith());
const event = (level: number) =>
  aDispatch({ setpoint: { kind: "current", amperes: amperes(level) } }, { id: "EV-1" });

/** Begun under `start`, then seen under `now`. */
function preemptedBy(start: Verdict, now: Verdict): string | null {
  const lock = new CommissioningLock(start, null);
  lock.reconsider(now);
  return lock.preemptedBy;
}

test("commissioning is preempted by an event, by another level, and by an event's end", () => {
  expect(preemptedBy(held(), held())).toBeNull();
  expect(preemptedBy(held(), held(event(10)))).toBe("EV-1 wants it");
  expect(preemptedBy(held(event(10)), held(event(10)))).toBeNull();
  expect(preemptedBy(held(event(10)), held(event(8)))).toBe("EV-1 wants it");
  expect(preemptedBy(held(event(10)), held())).toBe("the event on it is over");
});

test("a cancelled trial goes on to hold the charger until it is over, or control needs the charger", () => {
  const lock = new CommissioningLock(held(), null);
  expect([lock.isCut, lock.isHeld]).toEqual([false, true]);
  lock.cancel();
  expect([lock.isCut, lock.isHeld, lock.preemptedBy]).toEqual([true, true, null]);
  lock.reconsider(held(event(10)));
  lock.cancel();
  expect([lock.isCut, lock.isHeld, lock.preemptedBy]).toEqual([true, false, "EV-1 wants it"]);
});

test("the first reason for which control needs the charger stays, also after the trial", () => {
  const lock = new CommissioningLock(held(event(10)), null);
  lock.reconsider(held(event(8)));
  lock.reconsider(held());
  lock.end();
  lock.reconsider(held());
  expect([lock.isHeld, lock.preemptedBy]).toEqual([false, "EV-1 wants it"]);
});

test("control waits for a publish in flight, also after the trial", () => {
  const lock = new CommissioningLock(held(), null);
  lock.startPublish();
  lock.end();
  expect([lock.isHeld, lock.preemptedBy]).toEqual([true, null]);
  lock.endPublish();
  expect(lock.isHeld).toBe(false);
});
