import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";

import { Reserve, RESERVE_BYTES } from "../../../src/store/sqlite/reserve.ts";

/** A reserve on a disk with as much room as the test says. */
function aReserve() {
  const directory = mkdtempSync(join(tmpdir(), "reserve-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "reserve");
  const disk = { room: 100 * RESERVE_BYTES };
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const opened = (): Reserve => new Reserve(path, log, () => disk.room);
  return { path, disk, lines, opened };
}

test("the reserve takes its room once, and finds it again after a restart (F05)", () => {
  const { path, disk, opened } = aReserve();
  expect(opened().ensure()).toBe(true);
  expect(statSync(path).size).toBe(RESERVE_BYTES);
  disk.room = 0;
  expect(opened().ensure()).toBe(true);
});

test("on a full disk it is given once, with one alarm, and taken again only when there is plenty (F05)", () => {
  const { path, disk, lines, opened } = aReserve();
  const reserve = opened();
  reserve.ensure();
  disk.room = 0;
  expect(reserve.release()).toBe(true);
  expect(existsSync(path)).toBe(false);
  disk.room = RESERVE_BYTES;
  expect([reserve.release(), reserve.ensure()]).toEqual([false, false]);
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: 50, reserveBytes: RESERVE_BYTES });
  disk.room = 2 * RESERVE_BYTES;
  expect([reserve.ensure(), existsSync(path)]).toEqual([true, true]);
});

test.each([RESERVE_BYTES, 100 * RESERVE_BYTES])(
  "a cap that is reached on a disk with room costs no reserve, since it would not help: %i bytes of room",
  (room) => {
    const { path, disk, opened } = aReserve();
    const reserve = opened();
    reserve.ensure();
    disk.room = room;
    expect([reserve.release(), existsSync(path)]).toEqual([false, true]);
  },
);

test("a reserve that cannot be written is absent, and no call fails", () => {
  const { path, opened } = aReserve();
  mkdirSync(path);
  const reserve = opened();
  expect([reserve.ensure(), reserve.release()]).toEqual([false, false]);
});
