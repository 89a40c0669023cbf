import { expect, test } from "vitest";
import { commandId, type CommandRecord, isLimiting, isToBeFreed } from "../../../src/core/control/command.ts";
import type { Desired } from "../../../src/core/control/setpoint.ts";
import { amperes } from "../../../src/core/units.ts";
import { commandRecord, NOON } from "../../store/words.ts";

test("a command is named by epoch and number, as chargers compare them", () => {
  expect(commandId({ epoch: 7, seq: 1042 })).toBe("7-1042");
});

const release: Desired = { kind: "release" };
const limit: Desired = { kind: "current", amperes: amperes(16) };

/** A record of one that was told this. */
const told = (desired: Desired, more: Partial<CommandRecord> = {}): CommandRecord => {
  const record = commandRecord("bay-01", 1);
  return { ...record, command: { ...record.command, desired }, ...more };
};

test("limited is whoever was told less, by us and really: by what it stands under, whatever was only observed since", () => {
  expect(isLimiting(told(limit))).toBe(true);
  expect(isLimiting(told({ kind: "pause" }, { progress: "refused" }))).toBe(true);
  expect(isLimiting(told(release))).toBe(false);
  expect(isLimiting(told(limit, { progress: "observed" }))).toBe(false);
  expect(isLimiting(told(release, { progress: "observed", standing: told(limit) }))).toBe(true);
  expect(isLimiting(told(limit, { progress: "observed", standing: told(release) }))).toBe(false);
});

test("to be freed is whoever is limited, and whoever was and never got the release", () => {
  expect(isToBeFreed(told(limit))).toBe(true);
  expect(isToBeFreed(told(release, { replaces: limit }))).toBe(true);
  expect(isToBeFreed(told(release, { replaces: limit, sentAt: NOON }))).toBe(false);
  expect(isToBeFreed(told(release, { replaces: release }))).toBe(false);
  expect(isToBeFreed(told(release))).toBe(false);
  expect(isToBeFreed(told(limit, { progress: "observed" }))).toBe(false);
});
