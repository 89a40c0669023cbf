import { from, lastValueFrom, toArray } from "rxjs";
import { expect, test } from "vitest";

import { batchPerTick } from "../../src/platform/scheduling.ts";
import { chargerId, millis, minutes, vehicleId } from "../../src/domain/units.ts";
import type { ControlPorts } from "../../src/control/ports.ts";
import { restoringState } from "../../src/control/recovery.ts";
import { Stages } from "../../src/control/stages.ts";
import { freshHealth } from "../../src/control/ingest/partnerHealth.ts";
import { reportingUnplugged } from "../../src/control/schedule/advance.ts";
import { formatChargerMetrics } from "../../src/operator/gauges.ts";
import { problems } from "../../src/operator/problems.ts";
import { countDepot, statusView } from "../../src/operator/views.ts";
import { inSteps, type ResumableTask } from "../../src/platform/cooperative.ts";
import { ReadingCollector } from "../../src/reporting/collect.ts";
import { AlarmRegistry } from "../../src/alarms/registry.ts";
import { ChargerFacts } from "../../src/daemon/alarmFacts.ts";
import { commandRecord } from "../store/sqlite/words.ts";
import { aCharger, aVehicle } from "../support/aCharger.ts";
import { aDepot } from "../support/aDepot.ts";
import { anEvent, at, live, targetsOf } from "../support/anEvent.ts";
import { aPicture, rememberedOf } from "../support/aPicture.ts";
import { quietEdges } from "../support/quietEdges.ts";

test("messages that arrive within one turn of the loop are handled together, in order", async () => {
  const turns = await lastValueFrom(from([1, 2, 3]).pipe(batchPerTick(), toArray()));
  expect(turns.filter(({ length }) => length > 0)).toEqual([[1, 2, 3]]);
});

test("a burst of deliveries, one for each vehicle, costs one commit", async () => {
  const depot = await aDepot().withVehicles(9).running();
  const bodies = Array.from({ length: 9 }, (_, index) =>
    depot.has({ id: `EV-${index}`, start: "08:00", vehicles: [`v${index + 1}`] }),
  );
  const before = depot.commits();
  const answers = await depot.postTogether(bodies);
  expect(answers.every(({ kind }) => kind === "ingested")).toBe(true);
  expect(depot.commits() - before).toBe(1);
});

const now = at("12:00");
const NAMES = Array.from({ length: 5_000 }, (_, index) => String(index));

/** A site that is too large for one turn of the loop. Every charger has a command. */
function largeSite() {
  const depot = aPicture({
    chargers: NAMES.map((name) => aCharger({ id: `c${name}` })),
    vehicles: NAMES.map((name) => aVehicle({ id: vehicleId(`v${name}`), charger: chargerId(`c${name}`) })),
  });
  for (const name of NAMES) depot.commands.record(commandRecord(`c${name}`, Number(name)));
  return depot;
}

const sources = {
  startedAt: now,
  partner: freshHealth(now),
  maxSkew: minutes(5),
  brokersAway: [],
  brokersUnstable: [],
  isLinked: (): boolean => true,
  failingCommits: null,
  database: null,
  clockDoubtedSince: null,
  unboundWebhook: null,
  refusedWebhooks: null,
  reportRequests: null,
  retention: [],
  failingReceivers: [],
  accessFault: null,
  configurationFault: null,
};

const vitals = {
  ...sources,
  site: "depot",
  timezone: "Europe/Oslo",
  epoch: 7,
  leader: null,
  ready: true,
  lookedAt: now,
  contact: { webhookAt: null, polledAt: null, tokenUntil: null },
  broker: { connected: true, reason: null, away: [] },
  alarms: null,
  certificates: null,
  configuration: null,
  store: null,
  webhookRefused: null,
  quarantine: null,
};

type Walk = (depot: ReturnType<typeof largeSite>) => ResumableTask<unknown>;

test.for<readonly [string, number, Walk]>([
  ["the alarms", 2, (depot) => problems(depot, sources, now)],
  ["the status", 4, (depot) => statusView(depot, now, vitals)],
  ["the counts of a scrape", 2, (depot) => countDepot(depot, now)],
  [
    "the lines of a scrape",
    1,
    () =>
      formatChargerMetrics([
        { name: "m", help: "A count.", type: "gauge", values: new Map(NAMES.map((name) => [name, 1])) },
      ]),
  ],
  ["alarms that no message shows", 1, (depot) => new ChargerFacts(depot).facts(() => true, now)],
  [
    "open alarms, observed again",
    3,
    () => {
      const facts = NAMES.map((subject) => ({
        kind: "offline",
        subject,
        severity: "warning" as const,
        since: null,
        message: "offline",
        action: "see to it",
      }));
      const registry = new AlarmRegistry([], now);
      registry.observe(facts, now);
      return registry.observing(facts, now);
    },
  ],
  [
    "readings that go on",
    1,
    (depot) => {
      const ports = { edges: () => [], maxGap: minutes(5), isLinked: () => true, monotonic: () => millis(0) };
      return inSteps(new ReadingCollector(depot, ports).carryForward(now), () => {});
    },
  ],
  [
    "a start from a stored event and the last commands",
    5,
    (depot) => {
      const event = anEvent({ start: at("11:30"), targets: targetsOf(...depot.vehicles.keys()) });
      const commands = [...depot.commands.values()];
      return restoringState(depot, rememberedOf({ events: [live(event)], commands }), now);
    },
  ],
  ["vehicles at no charger", 1, (depot) => reportingUnplugged(depot, depot.vehicles.keys(), now)],
])("%s leave the loop after a few hundred chargers, however large the site is", ([, walks, walk]) => {
  let steps = 0;
  for (const task = walk(largeSite()); task.next().done !== true;) steps += 1;
  expect(steps).toBeGreaterThanOrEqual(walks * Math.floor(NAMES.length / 256));
});

test("the return of the broker of a large site is handled in several turns, and that of a small one at once", async () => {
  let tick = 0;
  const ports: ControlPorts = {
    ...quietEdges,
    now: () => now,
    monotonic: () => millis((tick += 4)),
  };
  const returned = (depot: ReturnType<typeof largeSite>) => {
    const stages = new Stages(depot, ports);
    return stages.run([() => stages.brokerReturned(""), () => stages.unlocked(chargerId("c7"))]);
  };
  const all = returned(largeSite());
  expect(all).toBeInstanceOf(Promise);
  expect(await all).toHaveLength(NAMES.length + 1);
  expect(returned(aPicture())).toHaveLength(3);
});
