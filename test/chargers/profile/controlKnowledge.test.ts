import { expect, test } from "vitest";
import {
  isLevel,
  isOwners,
  pauseBefore,
  phasesBefore,
} from "../../../src/chargers/profile/controlKnowledge.ts";
import type { Desired } from "../../../src/domain/setpoint.ts";
import { amperes, instant } from "../../../src/domain/units.ts";

const A_8: Desired = { kind: "current", amperes: amperes(8) };
const PAUSE: Desired = { kind: "pause" };
const RELEASE: Desired = { kind: "release" };
const ON_1: Desired = { ...A_8, phases: { count: 1, since: instant(0), chargingSince: null } };

test("a pause is known from this run, from the command before a restart, or from the charger", () => {
  expect(pauseBefore("none", PAUSE, { paused: true })).toBe("none");
  expect(pauseBefore(null, PAUSE, {})).toBe("sent");
  expect(pauseBefore(null, A_8, { paused: true })).toBe("ending");
  expect(pauseBefore(null, A_8, { paused: true, plugged: false })).toBe("none");
});

test("switched phases count as far as they matter for the next command", () => {
  expect(phasesBefore(undefined, A_8, ON_1, {})).toBe(1);
  expect(phasesBefore(null, A_8, ON_1, {})).toBeNull();
  expect(phasesBefore(null, RELEASE, ON_1, {})).toBe(1);
  expect(phasesBefore(null, ON_1, null, { phases: 1 })).toBe(1);
});

test("reported values belong to the owner before the first command, and after a release that arrived", () => {
  const released = { desired: RELEASE, stage: "accepted" as const };
  expect(isOwners(A_8, null, null)).toBe(true);
  expect(isOwners(A_8, RELEASE, released)).toBe(true);
  expect(isOwners(A_8, RELEASE, { ...released, stage: "published" })).toBe(false);
  expect(isOwners(A_8, PAUSE, null)).toBe(false);
  expect(isOwners(RELEASE, null, null)).toBe(false);
});

test("a level that has arrived is active; a pause and a release are not levels", () => {
  expect(isLevel({ desired: A_8, stage: "published" })).toBe(true);
  expect(isLevel({ desired: A_8, stage: "publishing" })).toBe(false);
  expect(isLevel({ desired: PAUSE, stage: "published" })).toBe(false);
  expect(isLevel(null)).toBe(false);
});
