import { expect, test } from "vitest";

import { SimulatedPartner } from "../../src/sim/partner.ts";
import { runScript, readScript, type Script } from "../../src/sim/script.ts";
import { waitFor } from "../support/waitFor.ts";
import { now } from "./clock.ts";
import { START } from "./partnerSetup.ts";

const aPartner = () => SimulatedPartner.start(START);

function aScript(text: string): Script {
  const read = readScript(text);
  if (!read.ok) throw new Error(read.reason);
  return read.script;
}

const PUT =
  "{ at: 0s, do: put, via: poll, event: { key: a, amperes: 16, startIn: 1s, duration: 4s, vehicles: [bus-1] } }";

test("a change keeps omitted members, a withdrawal removes the event", async () => {
  await using partner = await aPartner();
  const lines: string[] = [];
  const script = aScript(`
steps:
  - ${PUT}
  - { at: 20ms, do: change, via: poll, event: { key: a, kilowatts: 7 } }`);
  await runScript(script, partner, {
    now,
    signal: AbortSignal.timeout(5000),
    log: (line) => lines.push(line),
  });
  expect(partner.stored("EV-1001")).toMatchObject({
    payload: { payloadType: "PowerLevel", targetPower: 7 },
    targets: [{ values: ["bus-1"] }],
    intervalPeriod: { duration: "00:00:04" },
  });
  expect(lines).toEqual([
    `new: EV-1001 "EV-1001", 16 A for bus-1, priority 5; available by polling only`,
    `changed: EV-1001 "EV-1001", 7 kW for bus-1, priority 5; available by polling only`,
  ]);

  const withdrawn = aScript(`steps: [ ${PUT}, { at: 1ms, do: withdraw, via: poll, event: { key: a } } ]`);
  await runScript(withdrawn, partner, { now, signal: AbortSignal.timeout(5000), log: () => undefined });
  expect(partner.stored("EV-1001")).toBeUndefined();
});

test("a repeating script continues with new ids until it is stopped, and forgets old rounds", async () => {
  await using partner = await aPartner();
  const stop = new AbortController();
  const script = aScript(`{ repeatEvery: 10ms, firstId: 1, steps: [ ${PUT} ] }`);
  const running = runScript(script, partner, { now, signal: stop.signal, log: () => undefined });
  await waitFor(() => partner.stored("EV-5"));
  stop.abort();
  await running;
  expect(partner.stored("EV-1")).toBeUndefined();
});

test("a webhook that does not answer is logged and does not delay the script", async () => {
  await using partner = await aPartner();
  const lines: string[] = [];
  const script = aScript(`steps: [ ${PUT.replace("poll", "webhook")} ]`);
  await runScript(script, partner, {
    now,
    signal: AbortSignal.timeout(5000),
    log: (line) => lines.push(line),
  });
  expect(lines[1]).toBe("EV-1001 was not accepted: no answer after 0 attempts");
});
