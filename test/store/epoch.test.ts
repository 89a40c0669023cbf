import { chownSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { instant } from "../../src/core/units.ts";
import { nextEpoch } from "../../src/store/epoch.ts";
import { aDirectory } from "./state.ts";
import { NOON } from "./words.ts";

test("the first epoch is the time of the start in seconds", () => {
  expect(nextEpoch(aDirectory(), NOON, 0)).toBe(NOON / 1000);
});

test("the epoch always rises, however the clock jumps between starts", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4e12 }), { minLength: 2, maxLength: 6 }), (clocks) => {
      const directory = aDirectory();
      const epochs = clocks.map((clock) => nextEpoch(directory, instant(clock), 0));
      for (const [index, epoch] of epochs.entries()) {
        expect(epoch).toBeGreaterThan(epochs[index - 1] ?? -1);
        expect(epoch).toBeGreaterThanOrEqual(Math.floor((clocks[index] ?? 0) / 1000));
      }
    }),
    { numRuns: 25 },
  );
});

test("an unreadable epoch file and a clock from 1970 together still stay above every stored command", () => {
  const directory = aDirectory();
  writeFileSync(join(directory, "epoch"), "\0\0\0\0");
  expect(nextEpoch(directory, instant(0), 1_763_700_000)).toBe(1_763_700_001);
});

// Only root can make a file of somebody else.
test.skipIf(process.getuid?.() !== 0)("what root writes beside the daemon's state stays the daemon's", () => {
  const directory = aDirectory();
  const [daemon, group] = [65_534, 65_533];
  chownSync(directory, daemon, group);
  nextEpoch(directory, NOON, 0);
  const { uid, gid, mode } = statSync(join(directory, "epoch"));
  expect([uid, gid, mode & 0o777]).toEqual([daemon, group, 0o600]);
});
