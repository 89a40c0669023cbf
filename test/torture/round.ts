import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";

import { instant } from "../../src/domain/units.ts";
import { wireEvent } from "../../src/sim/events.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { chance } from "../fuzz/chance.ts";
import {
  isSame,
  shareOf,
  shouldHold,
  type Site,
  standingInWords,
  type TrueEvent,
} from "../simulate/oracle.ts";
import type { PlannedEvent } from "../simulate/plan.ts";
import type { Floor } from "../support/aFloor.ts";
import { waitFor } from "../support/waitFor.ts";
import { Watch } from "./delays.ts";
import { TorturedDepot } from "./depot.ts";
import { standingOf } from "./expected.ts";
import { killsFrom } from "./kills.ts";
import { violations } from "./rules.ts";
import { scriptFrom, type Step } from "./script.ts";
import type { Story } from "./story.ts";

export interface RoundPlan {
  readonly seed: number;
  /** How many depots are killed, beside the one that is not. */
  readonly depots: number;
  readonly killsEach: number;
}

export interface RoundOutcome {
  readonly violations: readonly string[];
  /** By where it happened: a point, or "outside". */
  readonly kills: readonly string[];
  /** From the start of a process to its first command that says what should hold, ms. */
  readonly restarts: readonly number[];
  /** What was seen of the depot that nobody killed, and of the others. */
  readonly stories: readonly Story[];
}

/**
 * Each plan begins so many points after the one before it. The number is odd, so that each of the eight points comes
 * early in some plan: on a busy machine the script is over before the last kills, and no delivery is left to answer.
 */
const POINTS_FURTHER = 5;
/** So many ms of script for each kill. */
const SCRIPT_PER_KILL = 2_200;
/** L1: from when nothing is ahead any more and the last process was started. */
const SETTLED_WITHIN = { timeoutMs: 30_000, everyMs: 50 };
const QUIET_WITHIN = { timeoutMs: 120_000, everyMs: 50 };
const log = pino({ level: "silent" });

/** One script, played at once to one depot that runs through and to others that are killed, each as its plan says. */
export async function playRound(
  plan: RoundPlan,
  place: { readonly floor: Floor; readonly brokerUrl: string; readonly codeCache: string },
): Promise<RoundOutcome> {
  const random = chance(plan.seed);
  await using stack = new AsyncDisposableStack();
  const partner = stack.use(await aPartner());
  const watch = stack.use(new Watch());
  const site = siteOf(plan.seed, Date.now() + 1_000);
  const script = scriptFrom(3_000 + plan.killsEach * SCRIPT_PER_KILL, random);
  const depots = await Promise.all(
    Array.from({ length: plan.depots + 1 }, (_, index) =>
      TorturedDepot.open({ id: `depot-${plan.seed}-${index}`, partner, site, ...place }),
    ),
  );
  for (const depot of depots) stack.use(depot);

  const history = new Map<string, (TrueEvent | null)[]>();
  const suffering = depots.map((depot, index) =>
    depot.suffer(
      index === 0
        ? []
        : killsFrom((plan.seed * plan.depots + index) * POINTS_FURTHER * 2, plan.killsEach, random),
    ),
  );
  await Promise.all([...suffering, play(script, { site, partner, depots, history })]);
  const unsettled = await settle(depots, site, history);
  const stories = await Promise.all(depots.map((depot) => depot.story(history, watch.delays)));
  const [untouched, ...killed] = stories;
  if (untouched === undefined) throw new Error("no depot ran through");
  const wrong = stories.flatMap((story, index) =>
    [...violations(story), ...(index === 0 ? [] : differences(story, untouched))].map(
      (words) => `depot ${index}: ${words}`,
    ),
  );
  const ends = depots.flatMap((depot) =>
    depot.lives.slice(0, -1).map(({ killedAt }) => killedAt ?? "outside"),
  );
  return {
    violations: [...unsettled, ...wrong],
    kills: ends,
    restarts: killed.flatMap(restartsOf),
    stories,
  };
}

const aPartner = (): Promise<SimulatedPartner> =>
  SimulatedPartner.start({
    host: "127.0.0.1",
    port: 0,
    clientId: "depot",
    clientSecret: "client-secret-of-the-tests",
    webhook: null,
    now: () => instant(Date.now()),
    log,
  });

/** Four chargers with a vehicle each; the key is the seed's, so that the offsets of all depots are the same. */
function siteOf(seed: number, midnight: number): Site {
  const numbers = [1, 2, 3, 4];
  return {
    chargers: numbers.map((number) => ({
      id: `bay-0${number}`,
      maxCurrent: 32,
      belowMinimum: "pause",
      phases: 3,
      tells: false,
    })),
    vehicles: numbers.map((number) => ({ id: `veh-${number}`, charger: `bay-0${number}`, maxCurrent: null })),
    knobs: {
      priority: "lower",
      priorityZero: "highest",
      ties: "newest",
      randomizedEnd: "shift",
      pollEvery: 1_000,
      reports: false,
    },
    siteKey: createHash("sha256").update(String(seed)).digest(),
    midnight,
    zone: "UTC",
    writtenIn: "UTC",
  };
}

interface Stage {
  readonly site: Site;
  readonly partner: SimulatedPartner;
  readonly depots: readonly TorturedDepot[];
  readonly history: Map<string, (TrueEvent | null)[]>;
}

/** The partner's side: each word at its time, and its deliveries to every depot. */
async function play(script: readonly Step[], { site, partner, depots, history }: Stage): Promise<void> {
  const deliveries: Promise<unknown>[] = [];
  for (const step of script) {
    await sleep(Math.max(0, site.midnight + step.at - Date.now()));
    const id = step.kind === "put" ? step.event.id : step.id;
    const words = history.get(id) ?? [];
    history.set(id, words);
    const content = say(step, partner, site, words);
    const promise = { event: id, step: words.length - 1 };
    for (const pause of step.deliveries) {
      for (const depot of depots) {
        deliveries.push(sleep(pause).then(() => depot.deliver(content, promise)));
      }
    }
  }
  await Promise.all(deliveries);
}

function say(step: Step, partner: SimulatedPartner, site: Site, words: (TrueEvent | null)[]): object {
  if (step.kind === "withdraw") {
    const object = partner.stored(step.id);
    partner.withdraw(step.id);
    words.push(null);
    return { objectType: "EVENT", operation: "DELETE", object };
  }
  const stored = partner.put(wireEvent(planOf(step.event, site), instant(Date.now())));
  words.push({
    plan: step.event,
    revised: Date.parse(stored.modificationDateTime),
    created: Date.parse(stored.createdDateTime),
  });
  return stored;
}

const planOf = ({ id, start, duration, spread, priority, ask, vehicles }: PlannedEvent, site: Site) => ({
  id,
  start: instant(site.midnight + start),
  durationMs: duration,
  ...(spread > 0 ? { randomizeStartMs: spread } : {}),
  ...(priority === null ? {} : { priority }),
  ask: { amperes: ask.kind === "current" ? ask.amperes : 0 },
  vehicles,
});

/** Waits until every charger of every depot stands at what should hold by now; what does not come to that, in words. */
async function settle(
  depots: readonly TorturedDepot[],
  site: Site,
  history: Story["history"],
): Promise<readonly string[]> {
  const live = [...history.values()].map((words) => words.at(-1) ?? null).filter((event) => event !== null);
  const wrong = (): readonly string[] =>
    depots.flatMap((depot, index) =>
      site.chargers.flatMap((charger) => {
        if (!depot.isReady) return [`depot ${index} is not ready at the end`];
        const now = Date.now();
        const vehicle = site.vehicles.find((candidate) => candidate.charger === charger.id) ?? null;
        const share = (event: TrueEvent, id: string) => shareOf(event, id, site);
        const wanted = shouldHold(charger, vehicle, live, site, now, share);
        const last = depot.told(charger.id).at(-1)?.set;
        const isLetGo = last === undefined || last.kind === "release" || wanted.kind !== "free";
        if (isLetGo && isSame(standingOf(last, now), wanted)) return [];
        return [`depot ${index} ends otherwise: ${charger.id} should be at ${standingInWords(wanted)}`];
      }),
    );
  // Nothing may be ahead: then what is right stays right.
  const ahead = live.flatMap((event) => site.vehicles.map(({ id }) => shareOf(event, id, site)));
  const isQuiet = (): boolean =>
    ahead.every((share) => share === null || settledShare(share.from, share.until));
  await waitFor(isQuiet, QUIET_WITHIN);
  try {
    await waitFor(() => wrong().length === 0, SETTLED_WITHIN);
    return [];
  } catch {
    return wrong();
  }
}

const settledShare = (from: number, until: number): boolean => {
  const now = Date.now();
  return until <= now || (from <= now && until - now > 60_000);
};

/** At the end all is as it is where nobody was killed: the same level, for the same event, until the same moment. */
function differences(story: Story, untouched: Story): readonly string[] {
  return [...story.told].flatMap(([charger, all]) => {
    const [ours, theirs] = [finalWords(all.at(-1)), finalWords(untouched.told.get(charger)?.at(-1))];
    return ours === theirs ? [] : [`${charger} ends at ${ours}, and without kills at ${theirs}`];
  });
}

function finalWords(
  last: Story["told"] extends ReadonlyMap<string, readonly (infer T)[]> ? T | undefined : never,
) {
  if (last === undefined || last.set.kind === "release") return "free";
  const { kind, value, until, event } = last.set;
  return `${value ?? kind} until ${until} for ${event}`;
}

/** Of each restart with something to say again: how long it took. */
function restartsOf({ lives, told }: Story): readonly number[] {
  return lives.slice(1).flatMap(({ startedAt }, index) => {
    const until = lives[index + 2]?.startedAt ?? Number.POSITIVE_INFINITY;
    const firsts = [...told.values()].flatMap((all) => {
      const before = all.findLast(({ at }) => at < startedAt)?.set;
      const first = all.find(({ at }) => at >= startedAt && at < until);
      return first !== undefined && before?.id === first.set.id ? [first.at - startedAt] : [];
    });
    return firsts.length === 0 ? [] : [Math.min(...firsts)];
  });
}
