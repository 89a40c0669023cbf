import { expect, test } from "vitest";

import { freshHealth } from "../../src/control/ingest/partnerHealth.ts";
import { minutes } from "../../src/domain/units.ts";
import { statusView } from "../../src/operator/views.ts";
import { aPicture } from "../support/aPicture.ts";
import { commandRecord, NOON } from "../store/sqlite/words.ts";

const vitals = {
  site: "depot",
  timezone: "Europe/Oslo",
  epoch: 7,
  ready: true,
  lookedAt: NOON,
  partner: freshHealth(NOON),
  broker: true,
  startedAt: NOON,
  maxSkew: minutes(5),
  brokersAway: [],
  brokersUnstable: [],
  isLinked: () => true,
  failingCommits: null,
  clockDoubtedSince: null,
  refusedWebhooks: null,
  reportRequests: null,
  retention: [],
  certificates: null,
  store: null,
  webhookRefused: null,
  quarantine: null,
};

test("only chargers that received a lower limit count as limited", () => {
  const depot = aPicture();
  const limited = { ...commandRecord("bay-02", 2), sentAt: NOON };
  depot.commands.record({ ...commandRecord("bay-01", 1), progress: "observed" });
  depot.commands.record(limited);
  expect(statusView(depot, NOON, vitals)).toMatchObject({ chargers: { limited: 1 } });
  depot.commands.record({ ...limited, progress: "observed", standing: limited });
  expect(statusView(depot, NOON, vitals)).toMatchObject({ chargers: { limited: 1 } });
});

test("a limit that was never published does not count as limited", () => {
  const depot = aPicture();
  const unsent = { ...commandRecord("bay-01", 1), sentAt: null, replaces: null };
  depot.commands.record(unsent);
  expect(statusView(depot, NOON, vitals)).toMatchObject({ chargers: { limited: 0, notSent: 1 } });
  depot.commands.record({ ...unsent, replaces: { kind: "pause" } });
  expect(statusView(depot, NOON, vitals)).toMatchObject({ chargers: { limited: 1, notSent: 0 } });
});
