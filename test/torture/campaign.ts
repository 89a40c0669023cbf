import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Floor } from "../support/aFloor.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { heldBay } from "./heldBay.ts";
import { warmUp } from "./life.ts";
import { playRound, type RoundOutcome } from "./round.ts";

export interface CampaignPlan {
  /** At least so many. */
  readonly kills: number;
  readonly seed: number;
  /** Killed side by side. */
  readonly depots: number;
  readonly killsEach: number;
  /** Rounds side by side, each with a broker of its own; one unless told. */
  readonly jobs?: number;
  /** No round is begun after this, by performance.now(); absent: only the kills count. */
  readonly until?: number;
  /** After each round; `seed` plays it again. */
  readonly onRound?: (round: {
    readonly seed: number;
    readonly kills: number;
    readonly outcome: RoundOutcome;
  }) => void;
}

export interface CampaignOutcome {
  readonly kills: ReadonlyMap<string, number>;
  readonly violations: readonly string[];
  readonly restarts: readonly number[];
}

/** Rounds until there were as many kills as asked for. The seed of a round is that of the campaign plus its number. */
export async function campaign(plan: CampaignPlan): Promise<CampaignOutcome> {
  await using stack = new AsyncDisposableStack();
  const codeCache = mkdtempSync(join(tmpdir(), "torture-code-"));
  stack.defer(() => rmSync(codeCache, { recursive: true, force: true }));
  await warmUp(codeCache);
  const [kills, violations, restarts] = [new Map<string, number>(), [] as string[], [] as number[]];
  let done = 0;
  let next = plan.seed;
  const work = async (): Promise<void> => {
    await using broker = await Mosquitto.start();
    while (done < plan.kills && performance.now() < (plan.until ?? Infinity)) {
      const seed = next;
      next += 1;
      await using floor = await Floor.at(broker.url);
      const outcome = await playRound({ ...plan, seed }, { floor, brokerUrl: broker.url, codeCache });
      for (const where of outcome.kills) kills.set(where, (kills.get(where) ?? 0) + 1);
      done += outcome.kills.length;
      violations.push(...outcome.violations.map((words) => `seed ${seed}, ${words}`));
      restarts.push(...outcome.restarts);
      plan.onRound?.({ seed, kills: done, outcome });
    }
  };
  await Promise.all(Array.from({ length: plan.jobs ?? 1 }, work));
  return { kills, violations, restarts };
}

/** A bay under holds, killed so often. As `heldBay`. */
export async function heldCampaign(plan: Parameters<typeof heldBay>[0]): ReturnType<typeof heldBay> {
  await using stack = new AsyncDisposableStack();
  const codeCache = mkdtempSync(join(tmpdir(), "torture-code-"));
  stack.defer(() => rmSync(codeCache, { recursive: true, force: true }));
  await warmUp(codeCache);
  await using broker = await Mosquitto.start();
  await using floor = await Floor.at(broker.url);
  return await heldBay(plan, { floor, brokerUrl: broker.url, codeCache });
}

/** The value that so many percent do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}
