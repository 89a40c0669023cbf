import { expect, test } from "vitest";

import { freshHealth } from "../../src/core/partnerHealth.ts";
import { chargerId } from "../../src/core/units.ts";
import { statusView } from "../../src/operator/views.ts";
import { aPicture } from "../support/aPicture.ts";
import { commandRecord, NOON } from "../store/words.ts";

const vitals = {
  site: "depot",
  epoch: 7,
  ready: true,
  lookedAt: NOON,
  partner: freshHealth(NOON),
  broker: true,
  certificates: null,
  store: null,
  quarantine: null,
};

test("only chargers that were really told less count as limited", () => {
  const depot = aPicture();
  const limited = commandRecord("bay-02", 2);
  depot.commands.set(chargerId("bay-01"), { ...commandRecord("bay-01", 1), progress: "observed" });
  depot.commands.set(chargerId("bay-02"), limited);
  expect(statusView(depot, NOON, vitals)).toMatchObject({ chargers: { limited: 1 } });
  depot.commands.set(chargerId("bay-02"), { ...limited, progress: "observed", standing: limited });
  expect(statusView(depot, NOON, vitals)).toMatchObject({ chargers: { limited: 1 } });
});
