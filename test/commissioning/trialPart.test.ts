import { describe, expect, test } from "vitest";

import { isGood, resultFacts, formatResult, summary } from "../../src/commissioning/commission.ts";
import { type SilencePromise, type Trial, tryCharger } from "../../src/commissioning/trial.ts";
import { amperes, seconds } from "../../src/domain/units.ts";
import { MODELS } from "../../src/sim/mixedFloor.ts";
import { BUS } from "../sim/pairing.ts";
import { aCharger } from "../support/aCharger.ts";
import { virtualBench } from "./virtualBench.ts";

const HOLDS: SilencePromise = { after: seconds(90), effect: "holds" };
const PAUSES: SilencePromise = { after: seconds(80), effect: "pauses" };

const aTrial = (over: Partial<Trial> = {}): Trial => ({
  charger: aCharger(),
  settings: { ramp: seconds(30), amperes: 0.5, percent: 5 },
  silence: null,
  answerWithin: seconds(10),
  leave: { kind: "release" },
  progress: () => {},
  ...over,
});

const AWAY = { ok: false, retry: true, reason: "broker not connected" } as const;
const failing = (): never => {
  throw new Error("bug");
};

describe("a charger on the bench", () => {
  test.each([...MODELS.keys()])(
    "a good %s passes, is measured at 32, 19 and 6 A, and is released",
    async (profile) => {
      const bench = virtualBench({ profile });
      const result = await tryCharger(aTrial(), bench);
      expect(result.steps.map(({ drawn, effect }) => [drawn, effect.kind])).toEqual([
        [32, "followed"],
        [19, "followed"],
        [6, "followed"],
      ]);
      expect([bench.ordered, isGood(result), result.left]).toEqual([
        ["32", "19", "6", "release"],
        true,
        { kind: "release" },
      ]);
      bench.pair.pass(seconds(5));
      expect(bench.pair.limit).toBe(32);
    },
  );

  test("a charger that never sent a message fails, and is not reported as a refusal", async () => {
    const bench = virtualBench({ profile: "warp" });
    bench.isMute = true;
    const result = await tryCharger(aTrial(), bench);
    expect(isGood(result)).toBe(false);
    expect(formatResult(result)).toContain("32 A   no message  -         cannot be measured: no telemetry");
    expect(formatResult(result)).toContain("it never sent a message, which is not a refusal");
    expect(formatResult(result)).not.toContain("refused");
  });

  test("a charger that ignores setpoints fails, with its measured current", async () => {
    const result = await tryCharger(
      aTrial(),
      virtualBench({ profile: "warp", faults: { ignoresSetpoints: true } }),
    );
    expect(isGood(result)).toBe(false);
    expect(formatResult(result).split("\n").slice(-3)).toEqual([
      "19 A   no answer    32.0 A    NO",
      "6 A    no answer    32.0 A    NO",
      "left with: release",
    ]);
  });

  test("a charger that confirms but does not follow is caught by its measured current", async () => {
    const result = await tryCharger(aTrial(), virtualBench({ profile: "evcc", faults: { lies: true } }));
    expect(result.steps.map(({ confirmedAfter, effect }) => [confirmedAfter !== null, effect.kind])).toEqual([
      [true, "followed"],
      [true, "notFollowed"],
      [true, "notFollowed"],
    ]);
    expect(isGood(result)).toBe(false);
  });

  test("without a vehicle a level cannot be measured: the output mentions that, and a confirmation is enough", async () => {
    const result = await tryCharger(aTrial(), virtualBench({ profile: "smartevse", vehicle: null }));
    expect(formatResult(result)).toContain("cannot be measured: nothing is plugged in");
    expect(isGood(result)).toBe(true);
    const silent = await tryCharger(aTrial(), virtualBench({ profile: "ocpp2mqtt", vehicle: null }));
    expect(isGood(silent)).toBe(false);
  });

  test("a vehicle that draws less than allowed is measured all the same", async () => {
    const vehicle = { ...BUS, maxCurrent: amperes(10) };
    const result = await tryCharger(aTrial(), virtualBench({ profile: "go-e-v2", vehicle }));
    expect(result.steps.map(({ drawn }) => drawn)).toEqual([10, 10, 6]);
    expect(isGood(result)).toBe(true);
  });

  test("a level set by another controller is restored", async () => {
    const bench = virtualBench({ profile: "victron-evcs" });
    const result = await tryCharger(aTrial({ leave: { kind: "current", amperes: amperes(10) } }), bench);
    expect([bench.ordered.at(-1), bench.pair.limit]).toEqual(["10", 10]);
    expect(summary(result)).toBe("32 A yes, 19 A yes, 6 A yes; left with: 10 A");
  });

  test("the hardware's own pace is kept between two setpoints", async () => {
    const bench = virtualBench({ profile: "go-e-v2" });
    const began = bench.now();
    await tryCharger(aTrial({ charger: aCharger({ minInterval: seconds(60) }) }), bench);
    expect(bench.now() - began).toBeGreaterThanOrEqual(120_000);
  });
});

describe("when the daemon falls silent", () => {
  test("openWB pauses 80 s after the last heartbeat", async () => {
    const result = await tryCharger(
      aTrial({ silence: PAUSES }),
      virtualBench({ profile: "openwb-secondary" }),
    );
    expect([result.silence?.seen, isGood(result)]).toEqual(["pauses", true]);
    expect(formatResult(result)).toMatch(/silence: pauses after [78]\d s, as expected/);
  });

  test("others hold", async () => {
    const result = await tryCharger(
      aTrial({ silence: HOLDS }),
      virtualBench({ profile: "everest-api-legacy" }),
    );
    expect(formatResult(result)).toContain("silence: holds at 6 A to the end, as expected");
    expect(isGood(result)).toBe(true);
  });

  test("a charger that breaks the promise of its profile fails", async () => {
    const result = await tryCharger(aTrial({ silence: PAUSES }), virtualBench({ profile: "warp" }));
    expect(formatResult(result)).toContain("NOT as expected: pauses after 80 s of silence");
    expect(isGood(result)).toBe(false);
  });

  test("without a vehicle the silence of a charger without other signals cannot be measured", async () => {
    const bench = virtualBench({ profile: "ocpp2mqtt", vehicle: null });
    const result = await tryCharger(aTrial({ silence: HOLDS }), bench);
    expect(result.silence?.seen).toBe("unmeasured");
  });
});

describe("the prior state is always restored", () => {
  test("Ctrl-C in the middle ends the trial and releases", async () => {
    const bench = virtualBench({ profile: "go-e-v2" });
    const progress = (): void => {
      if (bench.ordered.length === 1) bench.stop();
    };
    const result = await tryCharger(aTrial({ progress }), bench);
    expect([bench.ordered, result.cut, isGood(result)]).toEqual([["32", "release"], true, false]);
    expect(formatResult(result)).toContain("cut short");
  });

  test("Ctrl-C in the silence releases too", async () => {
    const bench = virtualBench({ profile: "warp" });
    const progress = (words: string): void => {
      if (words.includes("sending nothing")) bench.stop();
    };
    const result = await tryCharger(aTrial({ progress, silence: HOLDS }), bench);
    expect([bench.ordered.at(-1), result.silence]).toEqual(["release", null]);
  });

  test("a charger that control preempted receives no more orders, and its prior state is not restored", async () => {
    const bench = virtualBench({ profile: "warp" });
    const progress = (): void => {
      if (bench.ordered.length === 2) bench.take("EV-7 wants it");
    };
    const result = await tryCharger(aTrial({ progress }), bench);
    expect([bench.ordered, isGood(result)]).toEqual([["32", "19"], false]);
    expect(formatResult(result)).toContain("cut short: EV-7 wants it, so control has it again");
    expect(resultFacts(result)).toMatchObject({ takenFor: "EV-7 wants it", left: null });
  });

  test("an order that fails because the broker is down for a moment is retried", async () => {
    const bench = virtualBench({ profile: "warp" });
    bench.broker.push({ ok: true }, AWAY, AWAY, AWAY, AWAY);
    const result = await tryCharger(aTrial(), bench);
    expect(result.steps.map(({ failure }) => failure)).toEqual([null, AWAY.reason, AWAY.reason]);
    expect([bench.ordered.at(-1), result.leftFailure, isGood(result)]).toEqual(["release", null, false]);
  });

  test("a broker that stays down is reported, with the remedy", async () => {
    const bench = virtualBench({ profile: "warp" });
    bench.broker = Array.from({ length: 20 }, () => AWAY);
    const result = await tryCharger(aTrial(), bench);
    expect(formatResult(result)).toContain("NOT left with release: broker not connected; setpointd release");
  });

  test("an exception in the middle still releases the charger", async () => {
    const bench = virtualBench({ profile: "warp" });
    await expect(tryCharger(aTrial(), { ...bench, telemetry: failing })).rejects.toThrow("bug");
    expect(bench.ordered).toEqual(["32", "release"]);
  });
});
