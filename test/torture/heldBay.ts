import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";

import { instant } from "../../src/domain/units.ts";
import { wireEvent } from "../../src/sim/events.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { below, chance, oneOf } from "../fuzz/chance.ts";
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
/** Time for an answer, ms: several processes may be killed before one is up. */
const ANSWERED = 180_000;
const LEAST_HOLDS = 25;
/** Five ends and three scopes. */
const KINDS = 8;

/** The end of a hold. `at` and `soon`: a moment; the others come by what happens. */
type End = "at" | "soon" | "energy" | "unplugged" | "events";

interface Asked {
  readonly key: string;
  readonly scope: "charger" | "vehicle" | "site";
  /** Null: exempt. */
  readonly amperes: number | null;
  readonly end: End;
  readonly until: object;
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
 * One bay under holds of every kind, scope and end while its daemon is killed, again and again. Each request is repeated
 * with its key until it is answered, as a person at a page does. A confirmed hold survives, once; an ended one stays
 * ended; each ends by its own end, and once; in the end the charger stands at the newest that is open. Returns what was
 * broken.
 */
export async function heldBay(
  plan: { readonly seed: number; readonly kills: number },
  place: { readonly floor: Floor; readonly brokerUrl: string; readonly codeCache: string },
): Promise<{
  readonly violations: readonly string[];
  readonly holds: number;
  /** Ends and scopes of the holds that were confirmed. */
  readonly kinds: ReadonlySet<string>;
  readonly kills: number;
}> {
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
  depot.plug(BAY, true);
  const accepted: Accepted[] = [];
  const violations: string[] = [];
  using events = passingEvents(partner);
  const run = { isOver: false };
  const suffering = depot.suffer(killsFrom(plan.seed * 2, plan.kills, random)).then(() => {
    run.isOver = true;
  });
  // A busy machine restarts slowly, and an energy needs a reading: then some holds are opened after the last kill.
  const isShort = (): boolean => accepted.length < LEAST_HOLDS || kindsOf(accepted).size < KINDS;
  for (let number = 0; !run.isOver || isShort(); number += 1) {
    const asked = anyHold(number, random);
    const id = await openHold(depot, asked);
    // There is no event in force, or no reading yet: this end cannot be asked for now.
    if (id === null) continue;
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
  events[Symbol.dispose]();
  await waitFor(() => depot.isReady, PATIENCE);
  for (const end of ["soon", "events", "energy", "unplugged"] as const) {
    if (end === "unplugged") depot.plug(BAY, false);
    violations.push(...(await endsByItself(depot, accepted, end)));
  }
  depot.plug(BAY, true);
  violations.push(...(await listed(depot, accepted)), ...(await settled(depot, accepted)));
  const { damage, lives, rows } = await depot.story(new Map(), []);
  violations.push(...recordedOnce(rows, accepted));
  if (damage !== null) violations.push(`the state is damaged: ${damage}`);
  for (const { crashed } of lives.slice(0, -1)) if (crashed !== null) violations.push(crashed);
  return { violations, holds: accepted.length, kinds: kindsOf(accepted), kills: lives.length - 1 };
}

const kindsOf = (holds: readonly Accepted[]): ReadonlySet<string> =>
  new Set(holds.flatMap(({ end, scope }) => [end, scope]));

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
  const deadline = Date.now() + ANSWERED;
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

const SCOPES = {
  charger: { charger: BAY },
  vehicle: { vehicle: "veh-1" },
  site: { site: true },
} as const;

const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();

function anyHold(number: number, random: () => number): Asked {
  const scope = oneOf(["charger", "charger", "vehicle", "site"] as const, random);
  const own = ["at", "soon", "energy", "unplugged", "events"] as const;
  const end = scope === "site" ? oneOf(["at", "soon", "events"] as const, random) : oneOf(own, random);
  const untils = {
    at: { at: inMs(HOUR) },
    soon: { at: inMs(2_000 + below(4_000, random)) },
    energy: { energyWh: 1 + below(8, random) },
    unplugged: { unplugged: true },
    events: { events: true },
  } as const;
  return {
    key: `key-${number}`,
    scope,
    amperes: random() < 0.25 ? null : 6 + below(25, random),
    end,
    until: untils[end],
  };
}

/** Events of four seconds for the vehicle, one after the other with a pause. The list brings them. */
function passingEvents(partner: SimulatedPartner): Disposable {
  let number = 0;
  const put = (): void => {
    number += 1;
    const start = instant(Date.now());
    const vehicles = ["veh-1"];
    partner.put(
      wireEvent({ id: `EV-${number}`, start, durationMs: 4_000, ask: { amperes: 8 }, vehicles }, start),
    );
  };
  const timer = setInterval(put, 6_000);
  put();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Null: this end cannot be asked for now. */
async function openHold(depot: TorturedDepot, asked: Asked): Promise<string | null> {
  const { key, scope, amperes, until } = asked;
  const body = {
    scope: SCOPES[scope],
    ...(amperes === null ? { kind: "exempt" } : { kind: "level", level: { currentA: amperes } }),
    until,
    reason: "torture",
  };
  const hold = (await untilAnswered(
    depot,
    { method: "POST", path: "holds", body, key },
    [200, 201, 400],
  )) as Partial<ListedHold>;
  return hold.id ?? null;
}

/** Waits until every hold with this end is over. */
async function endsByItself(
  depot: TorturedDepot,
  accepted: readonly Accepted[],
  end: End,
): Promise<readonly string[]> {
  const own = new Map(accepted.filter((hold) => hold.end === end).map((hold) => [hold.id, hold]));
  let open: readonly ListedHold[] = [];
  const isOver = async (): Promise<boolean> => {
    open = (await list(depot)).filter(({ id, state }) => state === "open" && own.has(id));
    return open.length === 0;
  };
  const deadline = Date.now() + PATIENCE.timeoutMs;
  while (!(await isOver())) {
    if (Date.now() > deadline) return open.map(({ id }) => `${id} did not end (${end})`);
    await sleep(AGAIN);
  }
  for (const hold of own.values()) hold.isEnded = true;
  return [];
}

/** Each hold was opened once, and ended once if it is over. */
function recordedOnce(
  rows: readonly { readonly words: string }[],
  accepted: readonly Accepted[],
): readonly string[] {
  const count = (start: string, part: string): number =>
    rows.filter(({ words }) => words.startsWith(start) && words.includes(part)).length;
  return accepted.flatMap(({ id, isEnded }) => {
    const [opened, ended] = [count(`hold ${id} opened by `, ""), count(`hold ${id} of `, " ended ")];
    return opened === 1 && ended === (isEnded ? 1 : 0)
      ? []
      : [`${id} was opened ${opened} and ended ${ended} times`];
  });
}

/** A conflict: it was ended before, and the answer was lost. */
const endHold = (depot: TorturedDepot, id: string): Promise<unknown> =>
  untilAnswered(
    depot,
    { method: "DELETE", path: `holds/${id}`, body: { reason: "torture" } },
    [200, 404, 409],
  );

const list = async (depot: TorturedDepot): Promise<readonly ListedHold[]> =>
  (await untilAnswered(depot, { method: "GET", path: "holds?limit=1000" }, [200])) as ListedHold[];

/** Every confirmed hold is there once, open or ended as it was confirmed; no other one is. */
async function listed(depot: TorturedDepot, accepted: readonly Accepted[]): Promise<readonly string[]> {
  const all = await list(depot);
  const found = new Map(all.map(({ id, state }) => [id, state]));
  const missing = accepted
    .filter(({ id, isEnded }) => found.get(id) !== (isEnded ? "ended" : "open"))
    .map(
      ({ key, id, isEnded }) => `${key} (${id}) is ${found.get(id)}, and was ${isEnded ? "ended" : "open"}`,
    );
  const known = new Set(accepted.map(({ id }) => id));
  const strange = all.filter(({ id }) => !known.has(id)).map(({ id }) => `nobody asked for ${id}`);
  return [...missing, ...strange];
}

/** The charger comes to the newest hold that is open. */
async function settled(depot: TorturedDepot, accepted: readonly Accepted[]): Promise<readonly string[]> {
  const open = accepted.filter(({ isEnded }) => !isEnded);
  // A hold of the site yields to a narrower one.
  const newest = open.findLast(({ scope }) => scope !== "site") ?? open.at(-1);
  const wanted = newest?.amperes ?? null;
  const last = () => depot.told(BAY).at(-1)?.set;
  const level = (): number | null => (last()?.kind === "current" ? (last()?.value ?? null) : null);
  try {
    await waitFor(() => level() === wanted, PATIENCE);
    return [];
  } catch {
    return [`${BAY} stands at ${level()} A, and the newest open hold has ${wanted} A`];
  }
}
