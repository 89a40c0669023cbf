import { expect, test } from "vitest";

import type { Dispatch } from "../../../src/control/schedule/expand.ts";
import { commissioningLock, preemptedBy } from "../../../src/control/decide/commissioningLock.ts";
import { amperes } from "../../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";
import { aDispatch } from "../../support/anEvent.ts";
import { verdict } from "../../support/aVerdict.ts";

const held = (...inForce: readonly Dispatch[]) =>
  verdict(
    {
      charger: aCharger(),
      occupant: { kind: "vehicle", vehicle: aVehicle().id, source: "fixed" },
      vehicle: aVehicle(),
      inForce,
      hold: null,
      measuredVoltage: null,
      measuredPhases: null,
    },
    settingsWith(),
  );
const event = (level: number) =>
  aDispatch({ setpoint: { kind: "current", amperes: amperes(level) } }, { id: "EV-1" });

test("commissioning is preempted by an event, by another level, and by an event's end", () => {
  expect(preemptedBy(commissioningLock(held(), null), held())).toBeNull();
  expect(preemptedBy(commissioningLock(held(), null), held(event(10)))).toBe("EV-1 wants it");
  expect(preemptedBy(commissioningLock(held(event(10)), null), held(event(10)))).toBeNull();
  expect(preemptedBy(commissioningLock(held(event(10)), null), held(event(8)))).toBe("EV-1 wants it");
  expect(preemptedBy(commissioningLock(held(event(10)), null), held())).toBe("the event on it is over");
});
