import { describe, expect, test } from "vitest";

import { commandsIn } from "../../../src/operator/page/commands.ts";
import { progressState } from "../../../src/operator/page/derive.ts";
import { aRow } from "../../support/aPageRow.ts";

const decision = (time: string, command: string, told: object) =>
  aRow(time, "decision", { command, facts: { told }, words: "because" });
const outcome = (time: string, command: string, facts: object) => aRow(time, "outcome", { command, facts });

const SIXTEEN = { kind: "current", value: 16, unit: "A" };

describe("the commands of a charger", () => {
  test("stand with the newest first, each with its level, its result and its delays", () => {
    const rows = [
      decision("05:00", "1-1", SIXTEEN),
      outcome("05:00:01", "1-1", { progress: "acknowledged", ms: 12 }),
      outcome("05:00:02", "1-1", { progress: "accepted" }),
      outcome("05:00:09", "1-1", { progress: "followed" }),
      decision("06:00", "1-2", { kind: "release", value: null, unit: null }),
    ];
    expect(commandsIn(rows.toReversed())).toEqual([
      expect.objectContaining({
        id: "1-2",
        value: "free",
        outcome: progressState("planned"),
        acknowledgedMs: null,
        acceptedMs: null,
      }),
      expect.objectContaining({
        id: "1-1",
        value: "16 A",
        because: "because",
        outcome: progressState("followed"),
        acknowledgedMs: 12,
        acceptedMs: 2000,
      }),
    ]);
  });

  test("a level in W is shown in kW, a pause as a pause, and a row without a level as nothing", () => {
    const rows = [
      decision("05:00", "1-1", { kind: "power", value: 7400, unit: "W" }),
      decision("05:01", "1-2", { kind: "pause", value: null, unit: null }),
      aRow("05:02", "decision", { command: "1-3" }),
    ];
    expect(commandsIn(rows).map(({ value }) => value)).toEqual(["", "pause", "7.4 kW"]);
  });

  test("an outcome without progress does not hide the one before it", () => {
    const rows = [
      decision("05:00", "1-1", SIXTEEN),
      outcome("05:00:01", "1-1", { progress: "notFollowed" }),
      outcome("05:00:02", "1-1", {}),
    ];
    expect(commandsIn(rows)[0]?.outcome).toEqual(progressState("notFollowed"));
  });

  test("a decision without a command, and outcomes of nothing, are no commands", () => {
    expect(commandsIn([aRow("05:00", "decision"), aRow("05:00", "outcome")])).toEqual([]);
  });

  test("a delay is never negative after a step of the clock", () => {
    const rows = [
      decision("05:00:10", "1-1", SIXTEEN),
      outcome("05:00:01", "1-1", { progress: "acknowledged" }),
    ];
    expect(commandsIn(rows)[0]?.acknowledgedMs).toBe(0);
  });
});
