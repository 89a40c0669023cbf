import { expect, test } from "vitest";

import { chargerBench } from "../../src/daemon/commissioningBench.ts";
import { commissioned } from "../../src/commissioning/commission.ts";
import { acquireCharger } from "../../src/control/decide/commissioningAccess.ts";
import type { Change, Committed } from "../../src/domain/changes.ts";
import { chargerId } from "../../src/domain/units.ts";
import { NOON, profileNamed } from "../chargers/profile/aTrial.ts";
import { settingsWith } from "../support/aCharger.ts";
import { aDispatch } from "../support/anEvent.ts";
import { circumstancesOf, verdict } from "../support/aVerdict.ts";
import { aPicture } from "../support/aPicture.ts";

/** A trial of a charger that says nothing, on a disk that answers this. */
function aTrialOf(id: string, disk: Committed = { ok: true }) {
  const depot = aPicture();
  const charger = depot.chargers.get(chargerId(id));
  if (charger === undefined) throw new Error(`no charger ${id}`);
  const written: Change[] = [];
  const told: string[] = [];
  const acquired = acquireCharger(depot, charger, NOON);
  const { lock } = acquired;
  const bench = chargerBench({
    charger: charger.id,
    before: null,
    lastTelemetry: null,
    nextId: () => depot.nextId(),
    now: () => NOON,
    send: async ({ desired }) => {
      told.push(desired.kind);
      return { ok: true };
    },
    fallSilent: () => {},
    isStopped: () => lock.isCut,
    preemptedBy: () => lock.preemptedBy,
  });
  const ended = commissioned(
    {
      charger,
      profile: profileNamed("native"),
      silence: false,
      asked: null,
      acquired,
      state: depot,
      settings: settingsWith().verdict,
      shows: () => null,
      write: (changes) => void written.push(...changes),
      committed: async () => disk,
      progress: () => {},
    },
    bench,
  );
  const words = (): readonly string[] =>
    written.flatMap((change) => (change.kind === "audit" ? [change.entry.words] : []));
  return { acquired, written, words, told, ended };
}

test("the lock is stored before control can decide again, and a charger that control preempted is never tried", async () => {
  const { acquired, written, told, ended } = aTrialOf("bay-01");
  expect(written).toEqual(acquired.pendingRelease);
  const inForce = [aDispatch({}, { id: "EV-C" })];
  acquired.lock.reconsider(verdict(circumstancesOf(inForce), settingsWith()));
  expect(await ended).toEqual({
    good: false,
    tried: null,
    words: null,
    complaint: "nothing was tried: EV-C wants it",
  });
  expect([written, told]).toEqual([acquired.pendingRelease, []]);
});

test("a trial that is stopped before its start leaves the charger as it was", async () => {
  const { acquired, words, told, ended } = aTrialOf("bay-01");
  acquired.lock.cancel();
  expect(await ended).toMatchObject({ complaint: "nothing was tried: stopped" });
  expect([words().at(-1), told]).toEqual(["bay-01 is back from commissioning as it was", []]);
});

test("without a stored lock no charger is tried", async () => {
  const { told, ended } = aTrialOf("bay-01", {
    ok: false,
    reason: "the disk is full",
    dropped: [],
    stored: null,
  });
  expect(await ended).toMatchObject({ complaint: "nothing was tried: the disk is full" });
  expect(told).toEqual([]);
});
