import { expect, test } from "vitest";
import { configured, mistakesIn, theMistake } from "../../support/aConfiguration.ts";

test("limits of a charger are in amperes and watts, absent ones are null, and the rest comes from control", () => {
  const control = { atEnd: { current: 10 }, minInterval: "5s", deadband: 2 };
  const { chargers } = configured({
    control,
    chargers: [
      { id: "ac", current: { max: 32 }, phases: 1 },
      {
        id: "dc",
        power: { min: 5, max: 150 },
        discharge: { max: 50 },
        atEnd: { power: 7.4 },
        minInterval: "0s",
        deadband: 0,
      },
    ],
  });
  expect(chargers).toEqual([
    {
      id: "ac",
      profile: "native",
      params: {},
      broker: "",
      minCurrent: 6,
      maxCurrent: 32,
      minPower: null,
      maxPower: null,
      maxDischarge: null,
      phases: 1,
      voltage: 230,
      belowMinimum: "pause",
      atEnd: { kind: "current", amperes: 10 },
      takesWatts: true,
      currentStep: 0.1,
      minInterval: 5000,
      minOff: 0,
      minOn: 0,
      phaseSwitching: null,
      writesPerHour: null,
      refresh: 60_000,
      refreshesRelease: false,
      whenSilent: { kind: "lease" },
      deadband: 2,
    },
    {
      id: "dc",
      profile: "native",
      params: {},
      broker: "",
      minCurrent: null,
      maxCurrent: null,
      minPower: 5000,
      maxPower: 150_000,
      maxDischarge: 50_000,
      phases: 3,
      voltage: 230,
      belowMinimum: "pause",
      atEnd: { kind: "power", watts: 7400 },
      takesWatts: true,
      currentStep: 0.1,
      minInterval: 0,
      minOff: 0,
      minOn: 0,
      phaseSwitching: null,
      writesPerHour: null,
      refresh: 60_000,
      refreshesRelease: false,
      whenSilent: { kind: "lease" },
      deadband: 0,
    },
  ]);
});

test("absent limits of a vehicle are null, its name defaults to its id, and identities are in lower case", () => {
  const { vehicles } = configured({
    vehicles: [
      { id: "v" },
      {
        id: "w",
        name: "Bus",
        charger: "bay-01",
        current: { max: 16 },
        power: { max: 11 },
        phases: 1,
        identities: [{ MAC: "02:AA" }],
      },
    ],
  });
  expect(vehicles).toEqual([
    { id: "v", name: "v", charger: null, maxCurrent: null, maxPower: null, phases: null, identities: [] },
    {
      id: "w",
      name: "Bus",
      charger: "bay-01",
      maxCurrent: 16,
      maxPower: 11_000,
      phases: 1,
      identities: [{ kind: "mac", value: "02:aa" }],
    },
  ]);
});

test.each([[{ mac: "a", rfid: "b" }], [{}], ["mac"], [{ rfid: 413 }], [{ "": "x" }], [{ mac: "a\nb" }]])(
  "%j is not an identity",
  (identity) => {
    expect(theMistake({ vehicles: [{ id: "v", identities: [identity] }] }).expected).toMatch(
      /^one kind and its value/,
    );
  },
);

test.each(["", "a\u0000b", "a\nb", "x".repeat(257), "\ud800"])("%j is not a vehicle id (F67)", (id) => {
  expect(mistakesIn({ vehicles: [{ id }] })).toHaveLength(1);
});

test("an unknown time zone suggests a known one", () => {
  expect(theMistake({ site: { timezone: "Europe/Olso" } }).expected).toContain("Europe/Oslo");
  expect(configured({ site: { timezone: "America/New_York" } }).site.timezone).toBe("America/New_York");
  expect(configured({}).site.timezone).toBe("UTC");
});

test.each([
  ["phases", 4],
  ["phases", 1.5],
  ["voltage", 48],
  ["voltage", 11_000],
  ["belowMinimum", "stop"],
  ["power", { max: 150_000 }],
  ["current", { max: 0 }],
])("a charger with %s %j is refused", (key, value) => {
  expect(mistakesIn({ chargers: [{ id: "a", current: { max: 32 }, [key]: value }] })).toHaveLength(1);
});
