import { expect, test } from "vitest";
import { commandId } from "../../../src/core/control/command.ts";

test("a command is named by epoch and number, as chargers compare them", () => {
  expect(commandId({ epoch: 7, seq: 1042 })).toBe("7-1042");
});
