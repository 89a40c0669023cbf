import { ErrorWithReasonCode } from "mqtt";
import { expect, test } from "vitest";
import {
  endOfClose,
  endOfDisconnect,
  endOfError,
  sentOf,
} from "../../../src/chargers/broker/brokerAnswers.ts";

const system = (code: string, message = code): Error => Object.assign(new Error(message), { code });

test.each([
  [new ErrorWithReasonCode("Connection refused: Unacceptable protocol version", 1), "version"],
  [new ErrorWithReasonCode("Connection refused: Unsupported Protocol Version", 0x84), "version"],
  [new ErrorWithReasonCode("Connection refused: Not authorized", 0x87), "denied"],
  [new ErrorWithReasonCode("Connection refused: Bad username or password", 4), "denied"],
  [new ErrorWithReasonCode("Connection refused: Server unavailable", 0x88), "refused"],
  [system("ECONNRESET"), "unanswered"],
  [system("ECONNREFUSED"), "unreachable"],
  [new Error("connack timeout"), "unreachable"],
])("before the broker has accepted us, %s means %s", (error, kind) => {
  expect(endOfError(error, false).kind).toBe(kind);
  expect(endOfError(error, true).kind).toBe("dropped");
});

test("a refusal is reported with the text for its code only", () => {
  const refused = new ErrorWithReasonCode("Connection refused: Not authorized", 5);
  expect(endOfError(refused, false)).toEqual({ kind: "denied", reason: "Not authorized" });
});

test("an error without a message is reported by its code", () => {
  expect(endOfError(system("ECONNREFUSED", ""), false).reason).toBe("ECONNREFUSED");
});

test("F84: only reason code 0x8e means that another client has our id", () => {
  expect(endOfDisconnect(0x8e).kind).toBe("takenOver");
  expect(endOfDisconnect(0x8b)).toEqual({
    kind: "dropped",
    reason: "the broker disconnected us (Server shutting down, 0x8b)",
  });
  expect(endOfDisconnect(0).reason).toBe("the broker disconnected us (0x00)");
});

test('a close without a packet means "unanswered" only before CONNACK', () => {
  expect(endOfClose(false).kind).toBe("unanswered");
  expect(endOfClose(true).kind).toBe("dropped");
});

test("F86: a refused publish is not retried, a lost one is", () => {
  const topic = "setpointd/depot/chargers/bay-01/set";
  expect(sentOf(undefined, topic)).toEqual({ ok: true });
  expect(sentOf(new ErrorWithReasonCode("Publish error: Not authorized", 0x87), topic)).toEqual({
    ok: false,
    retry: false,
    reason: `Publish error: Not authorized (topic ${topic})`,
  });
  expect(sentOf(new Error("Connection closed"), topic)).toEqual({
    ok: false,
    retry: true,
    reason: "Connection closed",
  });
});
