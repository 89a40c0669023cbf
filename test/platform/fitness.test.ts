import { expect, test } from "vitest";

import { seconds } from "../../src/domain/units.ts";
import { fitness } from "../../src/platform/systemd.ts";

const committed = { ok: true } as const;
const full = { ok: false, reason: "database or disk is full", isReadable: true } as const;

test("a daemon is fit while a commit works and its last look is fresh", () => {
  expect(fitness({ committed, sinceEvaluation: seconds(150) })).toEqual({
    fit: true,
    status: "controlling",
  });
});

test("a look that is older than two naps, or none at all, is not fit", () => {
  expect(fitness({ committed, sinceEvaluation: seconds(151) })).toEqual({
    fit: false,
    status: "the last evaluation is 151 s old",
  });
  expect(fitness({ committed, sinceEvaluation: null }).fit).toBe(false);
});

test("F05, F06: a full or read-only disk is reported, and is no reason for a restart that would not come up", () => {
  expect(fitness({ committed: full, sinceEvaluation: seconds(1) })).toEqual({
    fit: true,
    status: "nothing new can be recorded or started: database or disk is full",
  });
});

test("a state that can be neither written nor read is not fit", () => {
  const { fit, status } = fitness({ committed: { ...full, isReadable: false }, sinceEvaluation: seconds(1) });
  expect([fit, status]).toEqual([
    false,
    "the state can be neither written nor read: database or disk is full",
  ]);
});
