import { chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";

import { instant } from "../../../src/domain/units.ts";
import { GENESIS } from "../../../src/store/chain.ts";
import { epochFault, nextEpoch, storedEpoch, storeEpoch } from "../../../src/store/sqlite/lock.ts";
import { aDirectory } from "./state.ts";
import { NOON } from "./words.ts";

const KEY = Buffer.alloc(32, 7);

/** As a start does: reads the last epoch, stores the next. */
function starts(directory: string, at: number, seen = 0): number {
  const epoch = nextEpoch(storedEpoch(directory, KEY), instant(at), [seen]);
  storeEpoch(directory, KEY, epoch);
  return epoch;
}

test("the first epoch is the time of the start in seconds", () => {
  expect(starts(aDirectory(), NOON)).toBe(NOON / 1000);
});

test("the epoch always rises, however the clock jumps between starts", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 4e12 }), { minLength: 2, maxLength: 6 }), (clocks) => {
      const directory = aDirectory();
      const epochs = clocks.map((clock) => starts(directory, clock));
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
  expect(storedEpoch(directory, KEY)).toBeNull();
  expect(starts(directory, 0, 1_763_700_000)).toBe(1_763_700_001);
});

test("an epoch that was edited, or written with another key, does not count", () => {
  const directory = aDirectory();
  const path = join(directory, "epoch");
  const epoch = starts(directory, NOON);
  expect(storedEpoch(directory, KEY)).toEqual({ epoch, isSealed: true });
  expect(storedEpoch(directory, Buffer.alloc(32, 8))).toBeNull();
  writeFileSync(path, readFileSync(path, "latin1").replace(String(epoch), String(epoch - 1)));
  expect(storedEpoch(directory, KEY)).toBeNull();
  // As earlier versions wrote it.
  writeFileSync(path, `${epoch}\n`);
  expect(storedEpoch(directory, KEY)).toEqual({ epoch, isSealed: false });
});

test("the head must come from the run of the epoch file or a later one", () => {
  const head = { ...GENESIS, epoch: 8 };
  const stored = { epoch: 8, isSealed: true };
  expect(epochFault(stored, head)).toBeNull();
  expect(epochFault({ epoch: 7, isSealed: true }, head)).toBeNull();
  expect(epochFault(null, null)).toBeNull();
  expect(epochFault({ epoch: 9, isSealed: false }, head)).toBeNull();
  expect(epochFault({ epoch: 9, isSealed: true }, head)).toMatchObject({
    kind: "damaged",
    reason: expect.stringContaining("last written by run 8, but run 9 came after it"),
  });
  expect(epochFault(stored, { ...head, epoch: null })?.reason).toContain("by an earlier version");
  expect(epochFault(stored, null)?.reason).toContain("emptied or taken away");
});

// Only root can make a file of somebody else.
test.skipIf(process.getuid?.() !== 0)(
  "files that root writes beside the daemon's state belong to the daemon's user",
  () => {
    const directory = aDirectory();
    const [daemon, group] = [65_534, 65_533];
    chownSync(directory, daemon, group);
    starts(directory, NOON);
    const { uid, gid, mode } = statSync(join(directory, "epoch"));
    expect([uid, gid, mode & 0o777]).toEqual([daemon, group, 0o600]);
  },
);
