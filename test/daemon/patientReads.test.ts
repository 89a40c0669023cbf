import { beforeEach, expect, test, vi, onTestFinished } from "vitest";

import {
  LeadLost,
  mostDispatchesIn,
  patientArchive,
  patientReads,
  readsAtStart,
} from "../../src/daemon/site.ts";
import type { LeaseState } from "../../src/domain/leadership.ts";
import { eventId } from "../../src/domain/units.ts";

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

const away = (): Error => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

test("a read waits for a database that is away, and a bug is passed on at once", async () => {
  const patiently = patientReads({ state: "in doubt" });
  let failures = 3;
  const read = vi.fn(async () => {
    if (failures-- > 0) throw away();
    return "rows";
  });
  const answer = patiently(read);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await answer).toBe("rows");
  expect(read).toHaveBeenCalledTimes(4);
  await expect(patiently(async () => JSON.parse("{"))).rejects.toThrow(SyntaxError);
});

test.each(["28P01", "CERT_HAS_EXPIRED"])(
  "a read waits while the password or the certificate of the database is renewed (%s), and a start ends with that reason",
  async (code) => {
    const refused = () => Promise.reject(Object.assign(new Error("refused"), { code }));
    const read = vi.fn(async () => "rows").mockImplementationOnce(refused);
    const answer = patientReads({ state: "leading" })(read);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await answer).toBe("rows");
    await expect(readsAtStart({ state: "leading" })(refused)).rejects.toThrow("refused");
  },
);

test("after the loss of the lease a flow gets no answer, and a start ends", async () => {
  let state: LeaseState = "leading";
  const lead = {
    get state() {
      return state;
    },
  };
  const settled = vi.fn();
  const archive = { whole: () => Promise.reject(away()), summaries: () => Promise.reject(away()) };
  patientArchive(archive, patientReads(lead))
    .whole([eventId("EV-1")])
    .then(settled, settled);
  const starting = readsAtStart(lead)(() => Promise.reject(away()));
  const ended = expect(starting).rejects.toThrow(LeadLost);
  await vi.advanceTimersByTimeAsync(500);
  state = "lost";
  await vi.advanceTimersByTimeAsync(60_000);
  expect(settled).not.toHaveBeenCalled();
  await ended;
});

test("without a database a read of the own disk fails at once", async () => {
  await expect(patientReads(null)(() => Promise.reject(away()))).rejects.toThrow("ECONNREFUSED");
});

test("a small heap keeps room for the program beside the events, and a tiny one still takes an event", () => {
  // 128 MB of old space, where 480 events for 1,000 vehicles in one list ended the process.
  expect(mostDispatchesIn(176 * 2 ** 20)).toBe(189_742);
  expect(mostDispatchesIn(662 * 2 ** 20)).toBe(1_403_094);
  expect(mostDispatchesIn(96 * 2 ** 20)).toBeGreaterThan(20_000);
});
