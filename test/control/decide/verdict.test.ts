import { expect, test } from "vitest";
import { amperes, instant, minutes } from "../../../src/domain/units.ts";
import { aCharger, aVehicle, settingsWith } from "../../support/aCharger.ts";
import { aDispatch, at } from "../../support/anEvent.ts";
import { aRelease } from "../../support/aHold.ts";
import { type Circumstances, circumstancesOf, verdict } from "../../support/aVerdict.ts";

const first = aDispatch({}, { id: "EV-1", priority: 1 });
const second = aDispatch(
  { setpoint: { kind: "current", amperes: amperes(40) }, until: at("05:30") },
  { id: "EV-2", priority: 2 },
);
const on = (changes: Partial<Circumstances>) =>
  verdict(circumstancesOf([second, first], changes), settingsWith());
const hold = (...events: string[]) => aRelease("bay-01", events);

test("the winner is what the charger should do, until the winner's own end", () => {
  expect(on({})).toMatchObject({
    winner: first,
    overruled: [second],
    desired: { kind: "current", amperes: 16 },
    limits: [],
    until: at("06:00"),
    hold: null,
  });
});

test("when the winner has ended the next one resumes, under the limits", () => {
  expect(on({ inForce: [second] })).toMatchObject({
    winner: second,
    overruled: [],
    desired: { kind: "current", amperes: 32 },
    limits: [{ by: "charger maximum", asked: "40 A", allowed: "32 A" }],
    until: at("05:30"),
  });
});

test("without a dispatch the charger is to be released", () => {
  const nobody = { occupant: { kind: "nobody" }, vehicle: null, inForce: [] } as const;
  expect(on(nobody)).toMatchObject({ winner: null, desired: { kind: "release" }, until: null, limits: [] });
});

test("an operator's hold sets aside the events it names, and no others", () => {
  expect(on({ hold: hold("EV-1") })).toMatchObject({ winner: second, hold: { end: { events: ["EV-1"] } } });
  expect(on({ hold: hold("EV-1", "EV-2") })).toMatchObject({
    winner: null,
    hold: { end: { latest: at("06:00") } },
  });
});

test("a hold that sets nothing aside is not part of the reason", () => {
  expect(on({ hold: hold("EV-0") }).hold).toBeNull();
});

test("the measured voltage counts in the limits", () => {
  const power = aDispatch({
    setpoint: { kind: "current", amperes: amperes(32) },
    until: instant(at("05:00") + minutes(60)),
  });
  const charger = { ...aCharger(), maxPower: null };
  const limited = on({ charger, vehicle: { ...aVehicle(), maxCurrent: amperes(20) }, inForce: [power] });
  expect(limited.desired).toEqual({ kind: "current", amperes: 20 });
});
