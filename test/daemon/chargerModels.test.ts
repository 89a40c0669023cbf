import { stringify } from "yaml";
import { expect, test } from "vitest";

import { configFrom, type Loaded } from "../../src/config/load.ts";
import { loadProfiles, type LoadedProfiles } from "../../src/daemon/loadProfiles.ts";
import { profileChecks } from "../../src/daemon/chargerModels.ts";
import { aProfile } from "../chargers/profile/aProfile.ts";
import { least } from "../support/aConfiguration.ts";

const builtIn = loadProfiles(null);
type Fields = Readonly<Record<string, unknown>>;

const from = (text: string, known: LoadedProfiles = builtIn): Loaded =>
  configFrom(
    text,
    { env: { SECRET: "a secret of the tests" }, directory: "/etc/setpointd" },
    profileChecks(known),
  );

const textOf = (chargers: readonly Fields[]): string =>
  stringify({
    ...least,
    chargers: chargers.map((fields, n) => ({ id: `bay-${n}`, current: { max: 16 }, ...fields })),
  });

const loaded = (chargers: readonly Fields[], known?: LoadedProfiles): Loaded => from(textOf(chargers), known);

const mistakes = (...chargers: readonly Fields[]) => {
  const result = loaded(chargers);
  return result.ok
    ? []
    : result.mistakes.map(({ path, found, expected }) => `${path}: ${found}; ${expected}`);
};
const warnings = (known: LoadedProfiles, ...chargers: readonly Fields[]) => {
  const result = loaded(chargers, known);
  return result.ok ? result.warnings.map(({ path, found }) => `${path}: ${found}`) : [JSON.stringify(result)];
};
const warp = (prefix: string): Fields => ({ profile: "warp", params: { prefix } });
const goE = (serial: string): Fields => ({ profile: "go-e-v2", params: { serial } });

const bridge = (connector: number): Fields => ({ profile: "ocpp2mqtt", params: { base: "o", connector } });

test("chargers of known makes with their parameters are fine", () => {
  expect(mistakes(warp("warp/a"), goE("000001"), {})).toEqual([]);
});

test("a serial number keeps its leading zeros without quotes, and a number that has them is explained", () => {
  const text = textOf([goE("000001"), { profile: "evcc", params: { id: "04" } }]);
  const unquoted = from(text.replace('"000001"', "000001").replace('"04"', "4"));
  expect(unquoted.ok && unquoted.config.chargers.map(({ params }) => params)).toEqual([
    { serial: "000001" },
    { id: 4 },
  ]);
  expect(from(text.replace('"000001"', "000001").replace('"04"', "04"))).toMatchObject({
    mistakes: [{ path: "chargers[1].params.id", found: '"04"' }],
  });
  expect(from(text.replace("max: 16", "max: 016").replace('"04"', "4"))).toMatchObject({
    mistakes: [
      {
        path: "chargers[0].current.max",
        found: '"016" (text)',
        expected: expect.stringMatching(/^a number/),
      },
    ],
  });
});

test("phases can be switched only by a make that can, and only where there are three", () => {
  const phaseSwitching = {};
  expect(mistakes({ ...warp("warp/a"), phaseSwitching })).toEqual([]);
  expect(mistakes({ ...warp("warp/a"), phaseSwitching, phases: 1 })).toEqual([
    "chargers[0].phaseSwitching: phaseSwitching with phases: 1; phases: 3, or no phaseSwitching",
  ]);
  expect(mistakes({ phaseSwitching })).toEqual([
    "chargers[0].phaseSwitching: phaseSwitching with native, which cannot: the native topics have no phases; no phaseSwitching, or a profile that can, such as warp",
  ]);
  expect(mistakes({ ...warp("warp/a"), phaseSwitching: { every: "30s" } })).toEqual([
    expect.stringMatching(/^chargers\[0\]\.phaseSwitching\.every: /),
  ]);
});

test("an unknown profile is refused, and the nearest is named", () => {
  expect(mistakes({ profile: "goe-v2" })).toEqual([
    expect.stringMatching(
      /^chargers\[0\]\.profile: "goe-v2", which is no profile; did you mean go-e-v2\? one of: /,
    ),
  ]);
  expect(mistakes({ profile: "something-else-entirely" })[0]).toContain("; one of: ");
});

test("a missing, an unknown and a wrong parameter are explained where they are", () => {
  expect(mistakes({ profile: "warp" })).toEqual([
    expect.stringMatching(/^chargers\[0\]\.params: no prefix; warp: the parameter prefix is missing: /),
  ]);
  expect(mistakes(goE("#"))).toEqual([expect.stringMatching(/^chargers\[0\]\.params\.serial: "#"; /)]);
  expect(mistakes({ profile: "warp", params: { prefix: "w", serial: "000001" } })).toEqual([
    expect.stringMatching(/^chargers\[0\]\.params\.serial: "000001"; warp: unknown parameter/),
  ]);
});

test("limits beyond what a make can are explained", () => {
  expect(mistakes({ ...goE("000001"), current: { min: 33, max: 40 } })).toEqual([
    "chargers[0].current.min: 33 A; at most 32 A: go-e-v2 never gets more",
  ]);
  expect(mistakes({ ...goE("000001"), current: { min: 4, max: 16 } })).toEqual([
    "chargers[0].current.min: 4 A; at least 6 A: go-e-v2 charges with no less",
  ]);
  expect(mistakes({ ...goE("000001"), discharge: { max: 5 } })[0]).toContain("which cannot feed back");
  expect(mistakes({ profile: "everest-api-legacy", params: { evse: "e" }, discharge: { max: 5 } })).toEqual(
    [],
  );
});

test("a maximum beyond the range of a make is cut, with a warning; for a relay it is refused", () => {
  const wbec = { profile: "wbec", params: { lp: "1" }, current: { max: 32 } };
  expect(mistakes(wbec)).toEqual([]);
  const result = loaded([wbec]);
  expect(result).toMatchObject({ ok: true, config: { chargers: [{ maxCurrent: 16 }] } });
  expect(result.ok && result.warnings).toContainEqual(
    expect.objectContaining({
      path: "chargers[0].current.max",
      found: "32 A",
      expected: "at most 16 A: wbec never gets more",
    }),
  );
  expect(warnings(builtIn, { ...wbec, current: { max: 16 } }).join()).not.toContain("current.max");
  const relay = { profile: "tasmota-switch", params: { topic: "t" }, current: { max: 100 } };
  expect(mistakes(relay)).toEqual([expect.stringContaining("tasmota-switch never gets more")]);
});

test("two chargers on the same topics are refused; connectors of one station, and the same serial elsewhere, are not", () => {
  expect(mistakes(warp("warp/a"), goE("000001"), { ...warp("warp/a"), current: { max: 10 } })).toEqual([
    expect.stringMatching(/^chargers\[2\]\.params: the same topics as chargers\[0\]/),
  ]);
  expect(mistakes(bridge(1), bridge(2))).toEqual([]);
});

test("a profile that is experimental or uncertain warns once, with what is uncertain", () => {
  expect(warnings(builtIn, goE("000001"), goE("000002"), warp("w"))).toEqual([
    expect.stringMatching(/^chargers\[0\]\.profile: go-e-v2; not confirmed: The official documents/),
  ]);
  expect(warnings(builtIn, { profile: "wbec", params: { lp: "1" } })[0]).toContain(
    "wbec, which is experimental; not",
  );
});

test("a maximum that a make never charges with is explained where it stands", () => {
  expect(mistakes({ ...goE("000001"), current: { min: 5, max: 5 } }).join()).toContain(
    "chargers[0].current.max",
  );
  expect(mistakes({ ...goE("000001"), current: { min: 5, max: 5 } }).join()).not.toContain("params");
});

test("parameters of a charger that needs none are pointed out", () => {
  expect(warnings(builtIn, { params: { serial: "000001" } })).toEqual([
    "chargers[0].params: serial with native, which has no parameters",
  ]);
});

test("a site's own profile that cannot be used is explained, by itself and where it is used", () => {
  const whole = { path: "limits", line: 3, column: null, found: "nothing", expected: "a section" };
  const known = { ...builtIn, broken: [{ file: "/site/profiles/mine.yaml", mistakes: [whole] }] };
  expect(warnings(known, warp("w"))).toEqual([": the profile mine cannot be used"]);
  expect(loaded([{ profile: "mine" }], known)).toMatchObject({
    mistakes: [{ path: "chargers[0].profile", expected: "/site/profiles/mine.yaml:3: limits a section" }],
  });
});

test("a make that falls back by itself, and that receives no orders in time, is refused", () => {
  const profile = aProfile({ rate: { wear: "flash" }, deviceTimeout: { after: "300s", effect: "pause" } });
  const known = { profiles: new Map([["some-make", profile]]), broken: [] };
  const result = loaded([{ profile: "some-make", params: { id: "1" } }], known);
  expect(result).toMatchObject({
    mistakes: [{ path: "chargers[0].profile", found: "some-make, which falls back after 300 s without us" }],
  });
});

const mixedSite = (vehicles: readonly Fields[]) =>
  stringify({
    ...least,
    chargers: [goE("000001"), {}, {}, warp("w")].map((fields, n) => ({
      id: `bay-${n}`,
      current: { max: 16 },
      ...fields,
    })),
    vehicles,
  });

const namelessWarnings = (
  vehicles: readonly Fields[],
  bridged: Parameters<typeof profileChecks>[1] = null,
) => {
  const place = { env: { SECRET: "a secret of the tests" }, directory: "/etc/setpointd" };
  const result = configFrom(mixedSite(vehicles), place, profileChecks(builtIn, bridged));
  if (!result.ok) throw new Error(JSON.stringify(result.mistakes));
  const all = result.warnings.filter(({ path }) => path.startsWith("vehicles"));
  return all.map(({ path, found }) => `${path}: ${found}`);
};

test("vehicles without identities at chargers that report one are named in one warning", () => {
  const fixed = [0, 1, 2, 3].map((n) => ({ id: `v${n}`, charger: `bay-${n}` }));
  const no = "no identities, at a charger that may report one";
  expect(namelessWarnings(fixed)).toEqual([`vehicles[0]: ${no}: v0 at bay-0, v3 at bay-3`]);
  // Nothing shows that native chargers report identities.
  expect(namelessWarnings(fixed.slice(1, 3))).toEqual([]);
  const bridge = { site: "depot", chargers: new Set(["bay-2"]) };
  expect(namelessWarnings(fixed.slice(1, 3), bridge)).toEqual([`vehicles[1]: ${no}: v2 at bay-2`]);
  expect(namelessWarnings(fixed.slice(1, 3), { ...bridge, site: "another" })).toEqual([]);
  const named = { id: "v9", identities: [{ rfid: "04AA" }] };
  expect(namelessWarnings([...fixed, named])).toEqual([
    `vehicles[0]: ${no}: v0 at bay-0, v1 at bay-1, v2 at bay-2 and 1 more`,
  ]);
  expect(namelessWarnings([{ ...named, charger: "bay-0" }, { id: "v8" }])).toEqual([]);
});

/** Warnings about a vehicle with a badge, at a site with these chargers. */
function badgeWarnings(chargers: readonly Fields[]) {
  const text = textOf(chargers) + stringify({ vehicles: [{ id: "v1", identities: [{ badge: "17" }] }] });
  const result = from(text);
  if (!result.ok) throw new Error(JSON.stringify(result.mistakes));
  return result.warnings.filter(({ path }) => path.startsWith("vehicles"));
}

test("a kind of identity that no profile reports is a warning where no native charger may report it", () => {
  expect(badgeWarnings([warp("warp/a")])).toMatchObject([
    {
      path: "vehicles[0].identities[0]",
      found: 'the kind "badge", which no make is known to report',
      expected: "one of: mac, evccid, rfid, vin, name, emaid",
    },
  ]);
  expect(badgeWarnings([warp("warp/a"), {}])).toEqual([]);
});

const about = (charger: Fields) =>
  warnings(builtIn, charger).filter((words) => words.startsWith("chargers[0]:"));

test("a charger that takes amperes only and has no current is a warning, as nobody gave what its fuse allows", () => {
  const power = { current: undefined, power: { max: 11 } };
  expect(about({ ...warp("warp/a"), ...power })).toEqual([
    "chargers[0]: power without current, for warp, which takes amperes only: 32 A count as its maximum",
  ]);
  expect(about({ ...warp("warp/a"), ...power, current: { max: 16 } })).toEqual([]);
  expect(about(power)).toEqual([]);
});
