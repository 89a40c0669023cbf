import { expect, test } from "vitest";

import { chargerId } from "../../../src/domain/units.ts";
import { exceptThoseWhoLeft, notReleased, released } from "../../../src/control/send/release.ts";
import { at } from "../../support/anEvent.ts";
import { aPicture } from "../../support/aPicture.ts";
import { commandRecord } from "../../store/sqlite/words.ts";

const [first, second] = [chargerId("bay-01"), chargerId("bay-02")];
const standing = [commandRecord(first, 1), commandRecord(second, 2)];
const stored = { ok: true } as const;
const linked = (): boolean => true;

test("who is freed is named, and so is why somebody has to wait", () => {
  const depot = aPicture();
  expect(released(depot, [], linked, stored).words).toBe("nothing was limited");
  expect(released(depot, standing, linked, stored)).toEqual({
    ok: true,
    words:
      "freed bay-01 (Bus 214) from 16 A until 2026-11-21T12:00:00.000Z, event EV-7731; bay-02 (Bus 214) from 16 A until 2026-11-21T12:00:00.000Z, event EV-7731; a new event limits them again",
  });
  depot.held.set(first, { by: "minimum interval", until: at("05:10:20") });
  depot.presence.set(second, { ...depot.presenceOf(second), online: false });
  const words = released(depot, standing, linked, stored).words;
  expect(words).toContain(
    "event EV-7731 (not told yet, but by 2026-11-21T05:10:20.000Z: it was told something just now (minimum interval)); bay-02",
  );
  expect(words).toContain("(not told yet, it is offline: when it is back)");
  expect(released(depot, standing, (charger) => charger === second, stored).words).toContain(
    "(not told yet, its broker is away: when that is back); bay-02",
  );
});

test("F05: a release that the disk refuses goes out all the same, and the answer says that it is not on record", () => {
  const later = "not on record yet, and undone by a restart before it is: the disk is full";
  const full = { ok: false, reason: "the disk is full", dropped: [] } as const;
  expect(released(aPicture(), standing, linked, full)).toEqual({
    ok: true,
    words: expect.stringMatching(new RegExp(`^freed bay-01 .*; a new event limits them again; ${later}$`)),
  });
  expect(released(aPicture(), [], linked, full).words).toBe(`nothing was limited; ${later}`);
});

test("while observing nobody is freed, and who stands limited is named", () => {
  const words = "observing: no command is published, a release neither";
  expect(notReleased([])).toEqual({ ok: true, words });
  expect(notReleased(standing)).toEqual({
    ok: false,
    words: `${words}; still as told before: bay-01, bay-02. A start with control.onObserve: release frees them, once`,
  });
});

test("who is limited but left the configuration makes a release of all of them fail, and is named", () => {
  const depot = aPicture();
  const done = { ok: true, words: "freed bay-01" };
  depot.commands.set(first, commandRecord(first, 1));
  expect(exceptThoseWhoLeft(depot, done)).toBe(done);
  const gone = chargerId("bay-99");
  depot.commands.set(gone, commandRecord(gone, 3));
  expect(exceptThoseWhoLeft(depot, done)).toEqual({
    ok: false,
    words:
      "freed bay-01, except what is not in this configuration: bay-99 (put it back, release it, then take it out)",
  });
  const failed = { ok: false, words: "nothing was released: the disk is full" };
  expect(exceptThoseWhoLeft(depot, failed)).toBe(failed);
});
