import { expect, test } from "vitest";
import {
  commandId,
  type CommandRecord,
  isDoubted,
  isLimiting,
  isToBeFreed,
  MOST_RESENDS,
  nextJudgement,
  desiredBefore,
  withAnswers,
} from "../../src/domain/command.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import { after, amperes, seconds } from "../../src/domain/units.ts";
import { commandRecord, NOON } from "../store/sqlite/words.ts";

test("a command is named by epoch and number, as chargers compare them", () => {
  expect(commandId({ epoch: 7, seq: 1042 })).toBe("7-1042");
});

const release: Desired = { kind: "release" };
const limit: Desired = { kind: "current", amperes: amperes(16) };

/** A record of a command with this setpoint. */
const told = (desired: Desired, more: Partial<CommandRecord> = {}): CommandRecord => {
  const record = commandRecord("bay-01", 1);
  return { ...record, command: { ...record.command, desired }, ...more };
};

test("a charger is limited by the last setpoint that was really sent to it, whatever was only observed since", () => {
  expect(isLimiting(told(limit))).toBe(true);
  expect(isLimiting(told({ kind: "pause" }, { progress: "refused" }))).toBe(true);
  expect(isLimiting(told(release))).toBe(false);
  expect(isLimiting(told(limit, { progress: "observed" }))).toBe(false);
  expect(isLimiting(told(release, { progress: "observed", standing: told(limit) }))).toBe(true);
  expect(isLimiting(told(limit, { progress: "observed", standing: told(release) }))).toBe(false);
});

test("a charger is released if it is limited, or if its release was never sent", () => {
  expect(isToBeFreed(told(limit))).toBe(true);
  expect(isToBeFreed(told(release, { replaces: limit }))).toBe(true);
  expect(isToBeFreed(told(release, { replaces: limit, sentAt: NOON }))).toBe(false);
  expect(isToBeFreed(told(release, { replaces: release }))).toBe(false);
  expect(isToBeFreed(told(release))).toBe(false);
  expect(isToBeFreed(told(limit, { progress: "observed" }))).toBe(false);
});

test("a command is doubted from when it is seen not to be followed until it goes out again", () => {
  const ramp = seconds(30);
  const seenAt = after(NOON, ramp);
  const judged = (resends: number, more: Partial<CommandRecord> = {}) =>
    told(limit, {
      progress: "notFollowed",
      resends,
      sentAt: NOON,
      judgeAt: nextJudgement(seenAt, ramp, resends),
      ...more,
    });
  expect(isDoubted(judged(1), ramp)).toBe(true);
  expect(isDoubted(judged(MOST_RESENDS), ramp)).toBe(true);
  expect(isDoubted(judged(1, { sentAt: seenAt }), ramp)).toBe(false);
  // Then it is an alarm, and not fought any more.
  expect(isDoubted(judged(MOST_RESENDS + 1), ramp)).toBe(false);
  expect(isDoubted(judged(1, { progress: "followed" }), ramp)).toBe(false);
  expect(isDoubted(judged(1, { sentAt: null }), ramp)).toBe(false);
  expect(isDoubted(judged(1, { judgeAt: null }), ramp)).toBe(false);
});

test("a level or a pause of an earlier run may have reached its charger, and is sent once more", () => {
  const { epoch } = told(limit).command;
  expect(desiredBefore(told(limit, { replaces: release }), epoch)).toEqual(release);
  expect(desiredBefore(told(limit, { replaces: release }), epoch + 1)).toEqual(limit);
  expect(desiredBefore(told({ kind: "pause" }, { replaces: null }), epoch + 1)).toEqual({ kind: "pause" });
  expect(desiredBefore(told(release, { replaces: limit }), epoch + 1)).toEqual(limit);
});

test("a stored command has the answers that the record shows, and any later progress is as stored", () => {
  const planned = told(limit, { progress: "planned", sentAt: null, sends: 0 });
  const nothing = { acknowledgedAt: null, isAccepted: false };
  const both = { acknowledgedAt: NOON, isAccepted: true };
  const sent = { ...planned, progress: "acknowledged", sentAt: NOON, sends: 1 };
  expect(withAnswers(planned, { ...both, isAccepted: false })).toEqual(sent);
  expect(withAnswers(planned, both)).toEqual({ ...sent, progress: "accepted" });
  expect(withAnswers(planned, { ...both, acknowledgedAt: null })).toEqual({
    ...planned,
    progress: "accepted",
  });
  expect(withAnswers(planned, nothing)).toBe(planned);
  const acknowledged = told(limit, { progress: "acknowledged", sends: 3 });
  expect(withAnswers(acknowledged, both)).toEqual({ ...acknowledged, progress: "accepted" });
  expect(withAnswers(acknowledged, { ...both, isAccepted: false })).toBe(acknowledged);
  const followed = told(limit, { progress: "followed" });
  expect(withAnswers(followed, both)).toBe(followed);
});
