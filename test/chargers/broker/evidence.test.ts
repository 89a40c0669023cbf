import { expect, test } from "vitest";

import { TopicEvidence } from "../../../src/chargers/broker/evidence.ts";
import { instant } from "../../../src/domain/units.ts";

test("a message proves every filter that it came by, and no other", () => {
  const evidence = new TopicEvidence(["gx/+/soc", "gx/1/soc", "gx/2/soc", "gx/+/+"], [], () => instant(0));
  evidence.received("gx/1/soc");
  evidence.received("gx/1/soc");
  evidence.received("other");
  const filters = ["gx/+/soc", "gx/1/soc", "gx/2/soc", "gx/+/+"];
  expect(filters.filter((filter) => evidence.isReceived(filter))).toEqual(["gx/+/soc", "gx/1/soc", "gx/+/+"]);
  expect([evidence.since, evidence.isAccepted("gx/1/soc")]).toEqual([null, false]);
});
