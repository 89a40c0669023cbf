import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";

import { instant } from "../../src/domain/units.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { below, chance } from "../fuzz/chance.ts";
import type { Floor } from "../support/aFloor.ts";
import { ask } from "../support/aDaemon.ts";
import { waitFor } from "../support/waitFor.ts";
import { TorturedDepot } from "./depot.ts";
import { killsFrom } from "./kills.ts";

const BAY = "bay-01";
const HOUR = 3_600_000;
/** Between two requests that wait for a daemon, ms. */
const AGAIN = 100;
const PATIENCE = { timeoutMs: 60_000, everyMs: 50 };

interface Asked {
  readonly key: string;
  readonly amperes: number;
  readonly until: string;
}

/** A hold that a daemon confirmed. */
interface Accepted extends Asked {
  readonly id: string;
  isEnded: boolean;
}

interface ListedHold {
  readonly id: string;
  readonly state: "open" | "ended";
}

/**
 * One bay under holds while its daemon is killed, again and again. Each request is repeated with its key until it is
 * answered, as a person at a page does. A confirmed hold survives, once; an ended one stays ended; in the end the
 * charger stands at the newest that is open. Returns what was broken.
 */
export async function heldBay(
  plan: { readonly seed: number; readonly kills: number },
  place: { readonly floor: Floor; readonly brokerUrl: string; readonly codeCache: string },
): Promise<{ readonly violations: readonly string[]; readonly holds: number; readonly kills: number }> {
  const random = chance(plan.seed);
  await using partner = await SimulatedPartner.start({
    host: "127.0.0.1",
    port: 0,
    clientId: "depot",
    clientSecret: "client-secret-of-the-tests",
    webhook: null,
    now: () => instant(Date.now()),
    log: pino({ level: "silent" }),
  });
  await using depot = await TorturedDepot.open({
    id: `held-${plan.seed}`,
    partner,
    site: siteOf(plan.seed),
    ...place,
  });
  const accepted: Accepted[] = [];
  const violations: string[] = [];
  const run = { isOver: false };
  const suffering = depot.suffer(killsFrom(plan.seed * 2, plan.kills, random)).then(() => {
    run.isOver = true;
  });
  for (let number = 0; !run.isOver; number += 1) {
    const asked = {
      key: `key-${number}`,
      amperes: 6 + below(25, random),
      until: new Date(Date.now() + HOUR).toISOString(),
    };
    const id = await openHold(depot, asked);
    // A page repeats a request whose answer was lost.
    const again = await openHold(depot, asked);
    if (again !== id) violations.push(`${asked.key} opened ${id}, and repeated ${again}`);
    const hold: Accepted = { ...asked, id, isEnded: false };
    accepted.push(hold);
    if (random() < 0.3) {
      await endHold(depot, id);
      hold.isEnded = true;
    }
    await sleep(below(300, random));
  }
  await suffering;
  await waitFor(() => depot.isReady, PATIENCE);
  violations.push(...(await listed(depot, accepted)), ...(await settled(depot, accepted)));
  const { damage, lives } = await depot.story(new Map(), []);
  if (damage !== null) violations.push(`the state is damaged: ${damage}`);
  for (const { crashed } of lives.slice(0, -1)) if (crashed !== null) violations.push(crashed);
  return { violations, holds: accepted.length, kills: lives.length - 1 };
}

const siteOf = (seed: number): TorturedDepot["setup"]["site"] => ({
  chargers: [{ id: BAY, maxCurrent: 32, belowMinimum: "pause", phases: 3, tells: false }],
  vehicles: [{ id: "veh-1", charger: BAY, maxCurrent: null }],
  knobs: {
    priority: "lower",
    priorityZero: "highest",
    ties: "newest",
    randomizedEnd: "shift",
    pollEvery: 1_000,
    reports: false,
  },
  siteKey: createHash("sha256").update(String(seed)).digest(),
  midnight: Date.now(),
  zone: "UTC",
  writtenIn: "UTC",
});

/** Sends a request to whichever process is there, until one of these statuses comes. */
async function untilAnswered(
  depot: TorturedDepot,
  request: {
    readonly method: "GET" | "POST" | "DELETE";
    readonly path: string;
    readonly body?: object;
    readonly key?: string;
  },
  statuses: readonly number[],
): Promise<unknown> {
  const { method, path, body, key } = request;
  const deadline = Date.now() + PATIENCE.timeoutMs;
  for (;;) {
    const url = depot.lives.at(-1)?.operatorUrl ?? null;
    const answer =
      url === null
        ? null
        : await ask(`${url}/api/v1/${path}`, {
            method,
            headers: {
              "content-type": "application/json",
              ...(key === undefined ? {} : { "idempotency-key": key }),
            },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          }).catch(() => null);
    if (answer !== null && statuses.includes(answer.status)) return answer.json;
    if (Date.now() > deadline) throw new Error(`${method} ${path}: ${answer?.status} ${answer?.text}`);
    await sleep(AGAIN);
  }
}

async function openHold(depot: TorturedDepot, { key, amperes, until }: Asked): Promise<string> {
  const body = {
    scope: { charger: BAY },
    kind: "level",
    level: { currentA: amperes },
    until: { at: until },
    reason: "torture",
  };
  const hold = await untilAnswered(depot, { method: "POST", path: "holds", body, key }, [200, 201]);
  return (hold as ListedHold).id;
}

/** A conflict: it was ended before, and the answer was lost. */
const endHold = (depot: TorturedDepot, id: string): Promise<unknown> =>
  untilAnswered(
    depot,
    { method: "DELETE", path: `holds/${id}`, body: { reason: "torture" } },
    [200, 404, 409],
  );

/** Every confirmed hold is there once, open or ended as it was confirmed; no other one is. */
async function listed(depot: TorturedDepot, accepted: readonly Accepted[]): Promise<readonly string[]> {
  const list = (await untilAnswered(
    depot,
    { method: "GET", path: "holds?limit=1000" },
    [200],
  )) as ListedHold[];
  const found = new Map(list.map(({ id, state }) => [id, state]));
  const missing = accepted
    .filter(({ id, isEnded }) => found.get(id) !== (isEnded ? "ended" : "open"))
    .map(
      ({ key, id, isEnded }) => `${key} (${id}) is ${found.get(id)}, and was ${isEnded ? "ended" : "open"}`,
    );
  const known = new Set(accepted.map(({ id }) => id));
  const strange = list.filter(({ id }) => !known.has(id)).map(({ id }) => `nobody asked for ${id}`);
  return [...missing, ...strange];
}

/** The charger comes to the newest hold that is open. */
async function settled(depot: TorturedDepot, accepted: readonly Accepted[]): Promise<readonly string[]> {
  const wanted = accepted.findLast(({ isEnded }) => !isEnded)?.amperes ?? null;
  const last = () => depot.told(BAY).at(-1)?.set;
  const level = (): number | null => (last()?.kind === "current" ? (last()?.value ?? null) : null);
  try {
    await waitFor(() => level() === wanted, PATIENCE);
    return [];
  } catch {
    return [`${BAY} stands at ${level()} A, and the newest open hold has ${wanted} A`];
  }
}
