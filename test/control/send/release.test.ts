import { expect, test } from "vitest";

import { chargerId } from "../../../src/domain/units.ts";
import {
  formatStays,
  formatStranded,
  releaseResult,
  releaseWhileObserving,
  strandedRelease,
  withUnconfigured,
} from "../../../src/control/send/release.ts";
import type { CommandRecord } from "../../../src/domain/command.ts";
import { settingsWith } from "../../support/aCharger.ts";
import { at } from "../../support/anEvent.ts";
import { aPicture } from "../../support/aPicture.ts";
import { commandRecord } from "../../store/sqlite/words.ts";

const [first, second] = [chargerId("bay-01"), chargerId("bay-02")];
const standing = [commandRecord(first, 1), commandRecord(second, 2)];
const stored = { ok: true } as const;
const linked = (): boolean => true;

test("a release names the freed chargers, and why others have to wait", () => {
  const depot = aPicture();
  expect(releaseResult(depot, [], linked, stored).words).toBe("nothing was limited");
  expect(releaseResult(depot, standing, linked, stored)).toEqual({
    ok: true,
    words:
      "freed bay-01 (Bus 214) from 16 A until 2026-11-21T12:00:00.000Z, event EV-7731; bay-02 (Bus 214) from 16 A until 2026-11-21T12:00:00.000Z, event EV-7731; a new event limits them again",
  });
  depot.defer(first, { by: "minimum interval", until: at("05:10:20") });
  depot.presence.update(second, { ...depot.presence.of(second), online: false });
  const words = releaseResult(depot, standing, linked, stored).words;
  expect(words).toContain(
    "event EV-7731 (not sent yet, but by 2026-11-21T05:10:20.000Z: its setpoint changed just now (minimum interval)); bay-02",
  );
  expect(words).toContain("(not sent yet, it is offline: when it is back)");
  expect(releaseResult(depot, standing, (charger) => charger === second, stored).words).toContain(
    "(not sent yet, its broker is away: when that is back); bay-02",
  );
});

test("F05: a release that cannot be stored is published all the same, and the answer notes that it is not on record", () => {
  const later = "not on record yet, and undone by a restart before it is: the disk is full";
  const full = { ok: false, reason: "the disk is full", dropped: [], stored: null } as const;
  expect(releaseResult(aPicture(), standing, linked, full)).toEqual({
    ok: true,
    words: expect.stringMatching(new RegExp(`^freed bay-01 .*; a new event limits them again; ${later}$`)),
  });
  expect(releaseResult(aPicture(), [], linked, full).words).toBe(`nothing was limited; ${later}`);
});

test("in observe mode no charger is freed, and the limited ones are named", () => {
  const words = "observing: no command is published, a release neither";
  expect(releaseWhileObserving([])).toEqual({ ok: true, words });
  expect(releaseWhileObserving(standing)).toEqual({
    ok: false,
    words: `${words}; still at their last setpoint: bay-01, bay-02. A start with control.onObserve: release frees them, once`,
  });
});

test("a limited charger that left the configuration makes a release of all chargers fail, and is named", () => {
  const depot = aPicture();
  const done = { ok: true, words: "freed bay-01" };
  depot.commands.record(commandRecord(first, 1));
  expect(withUnconfigured(depot, done)).toBe(done);
  const gone = chargerId("bay-99");
  depot.commands.record(commandRecord(gone, 3));
  expect(withUnconfigured(depot, done)).toEqual({
    ok: false,
    words:
      "freed bay-01, except what is not in this configuration: bay-99 (put it back, release it, then take it out)",
  });
  const failed = { ok: false, words: "nothing was released: the disk is full" };
  expect(withUnconfigured(depot, failed)).toBe(failed);
});

const observing = () => aPicture({ settings: { ...settingsWith(), mode: "observe" } });

test("in observe mode a level of an earlier run is released, and a release that is decided already only sent", () => {
  const release = { desired: { kind: "release" }, cause: "observe", event: "EV-7731", until: null };
  const decidedFor = (record: CommandRecord) => {
    const depot = observing();
    depot.commands.record(record);
    return strandedRelease(depot, first)?.release;
  };
  const level = commandRecord(first, 1);
  expect(decidedFor({ ...level, progress: "acknowledged", sentAt: at("05:10") })).toMatchObject(release);
  expect(decidedFor({ ...level, progress: "observed", standing: level })).toMatchObject(release);
  const decided = { ...level.command, desired: { kind: "release" }, cause: "observe", until: null } as const;
  expect(decidedFor({ ...level, command: decided, replaces: level.command.desired })).toBeNull();
});

test("in observe mode a charger that left the configuration is not named as released", () => {
  const depot = observing();
  for (const charger of [first, chargerId("bay-09")])
    depot.commands.record({ ...commandRecord(charger, 1), sentAt: at("05:10") });
  expect(formatStranded(depot, at("05:10"))).toEqual([
    expect.stringMatching(/^bay-01 was left at 16 A by an earlier run: it is released now/),
    expect.stringMatching(
      /^bay-09 stays at 16 A until it is freed, as it left the configuration: put it back/,
    ),
  ]);
});

test("a charger that left the configuration may be native: then its lease ends the level", () => {
  const depot = aPicture();
  const record = { ...commandRecord(chargerId("bay-09"), 1), sentAt: at("05:10") };
  expect(formatStays(depot, record, at("05:11"))).toMatch(/A native charger goes back .* at .*05:13:00/);
  expect(formatStays(depot, record, at("05:14"))).toMatch(/A native charger went back .* at .*05:13:00/);
});
