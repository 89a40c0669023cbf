import { expect, test } from "vitest";
import type { Signals } from "../../../src/chargers/profile/signals.ts";
import { folded, NOTHING_STANDS, currentSignals } from "../../../src/chargers/profile/lastKnownSignals.ts";

const after = (...messages: readonly Signals[]): Signals =>
  currentSignals(messages.reduce(folded, NOTHING_STANDS));

const PAUSED: Signals = { state: "paused" };
const UNPLUGGED: Signals = { state: "unplugged" };

test("signals of a message replace earlier ones, the rest stays", () => {
  expect(after({ powerW: 1, limitA: 16 }, { powerW: 2 }, { socPct: null })).toEqual({
    powerW: 2,
    limitA: 16,
    socPct: null,
  });
});

test.each<[string, readonly Signals[], Signals]>([
  ["a pause ends", [PAUSED, { state: "finished" }], { plugged: true, charging: false }],
  [
    "a pause of the session before is none of this",
    [PAUSED, UNPLUGGED, { state: "connected" }],
    {
      plugged: true,
      charging: false,
    },
  ],
  ["who was not there may be there now", [UNPLUGGED, PAUSED], { charging: false, paused: true }],
  ["an unknown state says nothing", [PAUSED, { state: "unknown" }], {}],
  ["nor does none", [PAUSED, { state: null }], {}],
  [
    "an error ends",
    [{ state: "error" }, { state: "charging" }],
    { plugged: true, charging: true, paused: false },
  ],
])("signals that a state implies end with that state: %s", (_, messages, implied) => {
  const { state: _state, ...rest } = after(...messages);
  expect(rest).toEqual(implied);
});

test("signals in a message with a state end with it too", () => {
  const suspended: Signals = { ...PAUSED, plugged: true };
  expect(after(UNPLUGGED, suspended)).toMatchObject({ plugged: true, paused: true });
  expect(after(UNPLUGGED, suspended, { state: "unknown" })).toEqual({ state: "unknown" });
});

test("reported signals outlive a state that does not contradict them", () => {
  expect(after({ paused: true }, { state: "connected" })).toMatchObject({ paused: true });
  expect(after({ error: true }, { state: "charging" })).toMatchObject({ error: true });
});

test("reported signals end with a state that contradicts them, also after that state", () => {
  expect(after({ paused: true }, { state: "charging" })).toMatchObject({ paused: false });
  expect(after({ paused: true }, { state: "charging" }, { state: "connected" })).not.toHaveProperty("paused");
});

test("reported signals have priority over those that the last state implied", () => {
  expect(after(PAUSED, { paused: false })).toMatchObject({ state: "paused", paused: false, charging: false });
  expect(after(PAUSED, { paused: null })).toMatchObject({ paused: null });
  expect(after(UNPLUGGED, { plugged: true }, { state: "unknown" })).toMatchObject({ plugged: true });
});

const card: Signals = { vehicleId: "04A2", vehicleIdKind: "rfid" };
const name: Signals = { vehicleId: "Bus 7", vehicleIdKind: "name" };

test("a name guessed by a gateway does not replace the identity from the vehicle", () => {
  expect(after(card, name)).toEqual(card);
  expect(after(card, { vehicleId: null }, name)).toEqual(name);
  expect(after(name, card)).toEqual(card);
});

test("the identity ends when the vehicle leaves, so the next one may have a weaker one", () => {
  expect(after(card, { plugged: false })).toEqual({ plugged: false });
  expect(after(card, { plugged: false }, name)).toEqual({ plugged: false, ...name });
  expect(after(card, { ...name, plugged: false })).toEqual({ plugged: false, ...name });
  expect(after(card, UNPLUGGED, name)).toMatchObject(name);
});
