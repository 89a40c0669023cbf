import { expect, test } from "vitest";

import { freshHealth } from "../../src/control/ingest/partnerHealth.ts";
import type { CommandRecord } from "../../src/domain/command.ts";
import { amperes, chargerId, iso, minutes, watts } from "../../src/domain/units.ts";
import { runToEnd } from "../../src/platform/cooperative.ts";
import { countDepot, statusView, vehiclesView } from "../../src/operator/views.ts";
import { aPicture } from "../support/aPicture.ts";
import { commandRecord, NOON } from "../store/sqlite/words.ts";

const vitals = {
  site: "depot",
  timezone: "Europe/Oslo",
  epoch: 7,
  leader: null,
  ready: true,
  lookedAt: NOON,
  partner: freshHealth(NOON),
  contact: { webhookAt: NOON, polledAt: null, tokenUntil: null },
  broker: { connected: true, reason: null, away: [] },
  alarms: null,
  startedAt: NOON,
  maxSkew: minutes(5),
  brokersAway: [],
  brokersUnstable: [],
  isLinked: () => true,
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
  certificates: null,
  configuration: null,
  store: null,
  webhookRefused: null,
  quarantine: null,
};

test("the status has the last webhook and the last poll apart", () => {
  expect(runToEnd(statusView(aPicture(), NOON, vitals))).toMatchObject({
    partner: { answeredAt: null, webhookAt: iso(NOON), polledAt: null },
  });
});

test("only chargers that received a lower limit count as limited", () => {
  const depot = aPicture();
  const limited = { ...commandRecord("bay-02", 2), sentAt: NOON };
  depot.commands.record({ ...commandRecord("bay-01", 1), progress: "observed" });
  depot.commands.record(limited);
  expect(runToEnd(statusView(depot, NOON, vitals))).toMatchObject({ chargers: { limited: 1 } });
  depot.commands.record({ ...limited, progress: "observed", standing: limited });
  expect(runToEnd(statusView(depot, NOON, vitals))).toMatchObject({ chargers: { limited: 1 } });
});

test("a limit that was never published does not count as limited", () => {
  const depot = aPicture();
  const unsent = { ...commandRecord("bay-01", 1), sentAt: null, replaces: null };
  depot.commands.record(unsent);
  expect(runToEnd(statusView(depot, NOON, vitals))).toMatchObject({ chargers: { limited: 0, notSent: 1 } });
  depot.commands.record({ ...unsent, replaces: { kind: "pause" } });
  expect(runToEnd(statusView(depot, NOON, vitals))).toMatchObject({ chargers: { limited: 1, notSent: 0 } });
});

test("the gauges have the level that was sent in watts, and the power that was measured", () => {
  const depot = aPicture();
  const counts = () => runToEnd(countDepot(depot, NOON));
  expect(Object.fromEntries(counts().setpoints)).toEqual({});
  const level = commandRecord("bay-01", 1);
  const { command } = level;
  const desired = { kind: "current", amperes: amperes(10) } as const;
  const at = (kind: CommandRecord["command"]["desired"], id = "bay-01"): CommandRecord => ({
    ...level,
    sentAt: NOON,
    command: { ...command, charger: chargerId(id), desired: kind },
  });
  for (const [kind, expected] of [
    [desired, { "bay-01": 6900 }],
    [{ kind: "power", watts: watts(5000) }, { "bay-01": 5000 }],
    [{ kind: "pause" }, { "bay-01": 0 }],
    [{ kind: "release" }, {}],
  ] as const) {
    depot.commands.record(at(kind));
    expect(Object.fromEntries(counts().setpoints)).toEqual(expected);
  }
  depot.commands.record({ ...at(desired), sentAt: null, replaces: null });
  expect(Object.fromEntries(counts().setpoints)).toEqual({});
  depot.commands.record(at(desired, "gone"));
  expect(Object.fromEntries(counts().setpoints)).toEqual({});
  expect(Object.fromEntries(counts().powers)).toEqual({});
  const telemetry = { at: NOON, powerW: 5990 };
  depot.presence.update(chargerId("bay-01"), { telemetry, online: true });
  depot.presence.update(chargerId("bay-02"), { telemetry, online: false });
  expect(Object.fromEntries(counts().powers)).toEqual({ "bay-01": 5990 });
});

test("the row of a vehicle is built when it is asked for", () => {
  const asked: string[] = [];
  const rows = vehiclesView(aPicture(), NOON, (vehicle) => {
    asked.push(vehicle);
    return null;
  });
  expect(asked).toEqual([]);
  expect(rows.next().value).toMatchObject({ id: asked[0] });
});
