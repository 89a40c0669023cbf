import * as fc from "fast-check";
import { expect, test } from "vitest";

import { Occupancy } from "../../../src/control/observe/occupancy.ts";
import type { Telemetry } from "../../../src/domain/telemetry.ts";
import { chargerId, type Instant, instant, vehicleId } from "../../../src/domain/units.ts";
import { identityKey } from "../../../src/domain/vehicle.ts";
import { aVehicle, byId } from "../../support/aCharger.ts";
import { at } from "../../support/anEvent.ts";
import { processorMs } from "../../support/processorMs.ts";

const [bay1, bay2, bay3] = [chargerId("bay-01"), chargerId("bay-02"), chargerId("bay-03")];
const mac = (value: string) => ({ kind: "mac", value });
/** veh-214 is fixed to bay-01, veh-1 to bay-02; veh-9 is fixed to none. */
const plugs = () =>
  new Occupancy(
    byId([
      aVehicle({ identities: [mac("02:aa:bb:00:00:01")] }),
      aVehicle({ id: "veh-1", charger: bay2 }),
      aVehicle({ id: "veh-9", charger: null, identities: [mac("02:aa:bb:00:00:09")] }),
    ]),
  );
const says = (more: Omit<Telemetry, "at">, moment = at("05:00")): Telemetry => ({ at: moment, ...more });
const bus = vehicleId("veh-214");
const free = vehicleId("veh-9");

/** Notes one message at a time of day. */
function note(site: Occupancy, charger: typeof bay1, more: Omit<Telemetry, "at">, time = "05:00") {
  return site.note(charger, says(more, at(time)), at(time));
}

test("without any telemetry the fixed vehicle is there, and a charger without one is empty", () => {
  const site = plugs();
  expect(site.at(bay1)).toEqual({ kind: "vehicle", vehicle: "veh-214", source: "fixed" });
  expect(site.at(bay3)).toEqual({ kind: "nobody" });
  expect([site.where(bus), site.where(free), site.where(vehicleId("?"))]).toEqual([bay1, null, null]);
});

test("an identity or an id that the configuration knows is that vehicle", () => {
  const site = plugs();
  expect(note(site, bay3, { vehicle: "veh-9" })).toEqual({ affectedChargers: [bay3], warning: null });
  expect(site.at(bay3)).toEqual({ kind: "vehicle", vehicle: "veh-9", source: "telemetry" });
  expect(site.where(free)).toBe(bay3);
  const other = plugs();
  note(other, bay3, { identity: mac("02:AA:BB:00:00:09") });
  expect(other.where(free)).toBe(bay3);
});

test.each(["02aabb000009", "02-AA-BB-00-00-09", " 02:aa:bb:00:00:09 "])(
  "chargers spell one MAC in many ways: %s",
  (value) => {
    const site = plugs();
    note(site, bay3, { identity: { kind: "MAC", value } });
    expect(site.where(free)).toBe(bay3);
  },
);

test("a query of one message's occupant changes nothing", () => {
  const site = plugs();
  const told = (charger: typeof bay1, more: Omit<Telemetry, "at">) =>
    site.reportedVehicle(charger, says(more));
  expect([told(bay3, { vehicle: "veh-9" }), told(bay3, { vehicle: "unheard of" })]).toEqual(["veh-9", null]);
  // A fixed binding stays; elsewhere nobody was there.
  expect([told(bay1, { vehicle: null }), told(bay3, { state: "unplugged" })]).toEqual(["veh-214", null]);
  expect(told(bay1, { powerW: 0 })).toBeUndefined();
  expect(site.where(free)).toBeNull();
});

test("a known identity helps where the id beside it is not known", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "unheard of", identity: mac("02:aa:bb:00:00:09") });
  expect(site.where(free)).toBe(bay3);
});

test("an identity that is not configured is an unknown vehicle, without any dispatch", () => {
  const site = plugs();
  note(site, bay1, { identity: mac("66:66") });
  expect(site.at(bay1)).toEqual({ kind: "unknown", identity: "mac 66:66" });
  expect(site.where(bus)).toBeNull();
  note(site, bay1, { vehicle: "stranger" });
  expect(site.at(bay1)).toEqual({ kind: "unknown", identity: "stranger" });
  expect(note(site, bay1, { vehicle: "stranger" }).affectedChargers).toEqual([]);
});

test("no identity means the fixed vehicle, whether it is absent or reported as null", () => {
  const site = plugs();
  expect(note(site, bay1, { powerW: 5 }).affectedChargers).toEqual([]);
  note(site, bay1, { identity: mac("66:66") });
  expect(note(site, bay1, { identity: null }).affectedChargers).toEqual([bay1]);
  expect(site.at(bay1)).toEqual({ kind: "vehicle", vehicle: "veh-214", source: "fixed" });
  note(site, bay3, { vehicle: "veh-9" });
  note(site, bay3, { vehicle: null });
  expect(site.where(free)).toBeNull();
});

test("a message without an identity leaves the last report in place", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-9" });
  expect(note(site, bay3, { state: "charging", powerW: 11_000 }).affectedChargers).toEqual([]);
  expect(site.where(free)).toBe(bay3);
});

test("unplugged means no vehicle, but a fixed vehicle stays, so that the next plug-in starts limited", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-9" });
  note(site, bay3, { state: "unplugged", vehicle: "veh-9" });
  expect([site.at(bay3).kind, site.where(free)]).toEqual(["nobody", null]);
  note(site, bay1, { vehicle: "veh-214" });
  note(site, bay1, { state: "unplugged" });
  expect(site.at(bay1)).toEqual({ kind: "vehicle", vehicle: "veh-214", source: "fixed" });
});

test("a vehicle that moves leaves its former charger empty", () => {
  const site = plugs();
  expect(new Set(note(site, bay3, { vehicle: "veh-214" }).affectedChargers)).toEqual(new Set([bay1, bay3]));
  expect([site.at(bay1).kind, site.where(bus)]).toEqual(["nobody", bay3]);
  expect(new Set(note(site, bay3, { state: "unplugged" }).affectedChargers)).toEqual(new Set([bay1, bay3]));
  expect(site.where(bus)).toBe(bay1);
});

test("the same vehicle at two chargers: the newer report wins, warned", () => {
  const site = plugs();
  note(site, bay1, { vehicle: "veh-9" }, "05:00");
  const { affectedChargers: touched, warning } = note(site, bay3, { vehicle: "veh-9" }, "05:01");
  expect(new Set(touched)).toEqual(new Set([bay1, bay3]));
  expect(warning).toBe("vehicle veh-9 is claimed by bay-01 and bay-03: the newer report, bay-03, wins");
  expect([site.at(bay1).kind, site.where(free)]).toEqual(["nobody", bay3]);
  expect(note(site, bay1, { vehicle: "veh-9" }, "05:02").warning).toBeNull();
});

test("when the newer claim is given up, the newest of the others counts again", () => {
  const site = plugs();
  note(site, bay1, { vehicle: "veh-9" }, "05:00");
  note(site, bay2, { vehicle: "veh-9" }, "05:01");
  note(site, bay3, { vehicle: "veh-9" }, "05:02");
  expect(note(site, bay3, { state: "unplugged" }, "05:03").affectedChargers).toContain(bay2);
  expect(site.where(free)).toBe(bay2);
  note(site, bay1, { state: "unplugged" }, "05:04");
  expect(site.where(free)).toBe(bay2);
});

test("the newest of the others is found whatever their order", () => {
  const site = plugs();
  note(site, bay2, { vehicle: "veh-9" }, "05:01");
  note(site, bay1, { vehicle: "veh-9" }, "05:00");
  note(site, bay3, { vehicle: "veh-9" }, "05:02");
  note(site, bay3, { vehicle: "stranger" }, "05:03");
  expect(site.where(free)).toBe(bay2);
});

test("another vehicle on the same charger takes over, and the one before is nowhere", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-9" });
  expect(new Set(note(site, bay3, { vehicle: "veh-1" }).affectedChargers)).toEqual(new Set([bay2, bay3]));
  expect([site.where(free), site.where(vehicleId("veh-1"))]).toEqual([null, bay3]);
});

test("two vehicles fixed to one charger: only an identity decides which of them is there", () => {
  const site = new Occupancy(
    byId([
      aVehicle({ id: "veh-1", identities: [mac("01")] }),
      aVehicle({ id: "veh-2", identities: [mac("02")] }),
    ]),
  );
  expect([site.at(bay1).kind, site.where(vehicleId("veh-1"))]).toEqual(["nobody", null]);
  note(site, bay1, { identity: mac("02") });
  expect([site.where(vehicleId("veh-1")), site.where(vehicleId("veh-2"))]).toEqual([null, bay1]);
});

test("after any reports, a vehicle is at one charger at most, and both directions agree", () => {
  const message = fc.record({
    charger: fc.constantFrom(bay1, bay2, bay3),
    lag: fc.constantFrom(0, 90_000),
    isWhole: fc.boolean(),
    telemetry: fc.constantFrom<Omit<Telemetry, "at">>(
      { vehicle: "veh-214" },
      { vehicle: "veh-9" },
      { vehicle: "stranger" },
      { vehicle: null },
      { identity: mac("02:aa:bb:00:00:01") },
      { state: "unplugged" },
      { state: "charging" },
    ),
  });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 15 }), (messages) => {
      const site = plugs();
      site.recall(bay2, bus, instant(5 * 40_000));
      site.recall(bay3, free, instant(0));
      messages.forEach(({ charger, telemetry, lag, isWhole }, index) => {
        const moment: Instant = instant(index * 40_000);
        const before = [bay1, bay2, bay3].map((bay) => JSON.stringify(site.at(bay)));
        const { affectedChargers: touched } = site.note(
          charger,
          says(telemetry, instant(moment - lag)),
          moment,
          isWhole,
        );
        [bay1, bay2, bay3].forEach((bay, n) => {
          if (JSON.stringify(site.at(bay)) !== before[n]) expect(touched).toContain(bay);
        });
        for (const vehicle of [bus, free, vehicleId("veh-1")]) {
          const holding = [bay1, bay2, bay3].filter((bay) => {
            const occupant = site.at(bay);
            return occupant.kind === "vehicle" && occupant.vehicle === vehicle && occupant.source !== "kept";
          });
          expect(holding).toEqual([site.where(vehicle)].filter((bay) => bay !== null));
        }
      });
    }),
  );
});

test("the occupant from before a restart counts until the charger reports another", () => {
  const site = plugs();
  site.recall(bay3, free, at("05:00"));
  expect(site.where(free)).toBe(bay3);
  note(site, bay3, { vehicle: null }, "05:01");
  expect(site.where(free)).toBeNull();
});

test("a restart restores no occupant that is fixed there, was reported already, or is no longer configured", () => {
  const site = plugs();
  site.recall(bay1, bus, at("05:00"));
  expect(site.at(bay1)).toEqual({ kind: "vehicle", vehicle: "veh-214", source: "fixed" });
  note(site, bay3, { vehicle: "veh-9" });
  site.recall(bay3, bus, at("05:01"));
  expect(site.where(free)).toBe(bay3);
  site.recall(bay2, vehicleId("sold"), at("05:00"));
  expect(site.at(bay2)).toEqual({ kind: "vehicle", vehicle: "veh-1", source: "fixed" });
});

test("a restored occupant gives way to the fixed binding at the charger's first message without an identity", () => {
  const site = plugs();
  // The bindings were swapped while it was down.
  site.recall(bay1, vehicleId("veh-1"), at("05:00"));
  site.recall(bay2, bus, at("05:00"));
  note(site, bay1, { state: "charging", powerW: 4000 }, "05:01");
  expect([site.at(bay1).kind, site.where(bus)]).toEqual(["nobody", bay2]);
  const { affectedChargers: touched } = note(site, bay2, { powerW: 4000 }, "05:01");
  expect(new Set(touched)).toEqual(new Set([bay1, bay2]));
  expect(site.at(bay1)).toEqual({ kind: "vehicle", vehicle: "veh-214", source: "fixed" });
  expect(site.at(bay2)).toEqual({ kind: "vehicle", vehicle: "veh-1", source: "fixed" });
  // A commit that failed later brings the stored commands back: the charger has spoken since.
  site.recall(bay2, bus, at("05:00"));
  expect(site.where(bus)).toBe(bay1);
});

test("a restored occupant that its charger confirms counts as reported", () => {
  const site = plugs();
  site.recall(bay3, free, at("05:00"));
  expect(note(site, bay3, { vehicle: "veh-9" }, "05:01").affectedChargers).toEqual([]);
  note(site, bay3, { powerW: 4000 }, "05:02");
  expect(site.where(free)).toBe(bay3);
});

test("a charger that publishes single values has a minute to report its identity", () => {
  const site = plugs();
  const part = (time: string) => site.note(bay3, says({ powerW: 4000 }), at(time), false);
  site.recall(bay3, bus, at("05:00"));
  expect(part("05:10").affectedChargers).toEqual([]);
  // The clock is set back: the minute begins anew.
  expect([part("05:01"), part("05:01:59")].flatMap(({ affectedChargers: touched }) => touched)).toEqual([]);
  expect(site.where(bus)).toBe(bay3);
  expect(part("05:02").affectedChargers).toEqual([bay3, bay1]);
  expect(site.where(bus)).toBe(bay1);
});

test("without another binding, a vehicle that was reported once stays over a restart", () => {
  const site = plugs();
  site.recall(bay3, free, at("05:00"));
  expect(note(site, bay3, { powerW: 4000 }, "05:01").affectedChargers).toEqual([]);
  expect(site.where(free)).toBe(bay3);
});

test("the newer command counts for two chargers with the same restored vehicle", () => {
  const site = plugs();
  site.recall(bay2, free, at("05:01"));
  site.recall(bay3, free, at("05:00"));
  expect(site.where(free)).toBe(bay2);
  site.recall(bay1, free, at("05:02"));
  expect(site.where(free)).toBe(bay1);
});

/** One message that was measured at one time of day and came in at another. */
const late = (site: Occupancy, charger: typeof bay1, measured: string, received: string) =>
  site.note(charger, says({ vehicle: "veh-9" }, at(measured)), at(received));

test("a message that is older than the newest report of another charger does not take the vehicle", () => {
  const site = plugs();
  note(site, bay1, { vehicle: "stranger" }, "05:00");
  late(site, bay2, "05:00", "05:00");
  late(site, bay2, "05:10", "05:10");
  const { affectedChargers: touched, warning } = late(site, bay1, "04:10", "05:10");
  expect(touched).toEqual([bay1]);
  expect(warning).toBe("vehicle veh-9 is claimed by bay-01 and bay-02: the newer report, bay-02, wins");
  expect([site.at(bay1).kind, site.where(free)]).toEqual(["nobody", bay2]);
});

test("a clock that is ahead counts as the receipt", () => {
  const site = plugs();
  late(site, bay1, "09:00", "05:00");
  late(site, bay3, "08:00", "05:01");
  expect(site.where(free)).toBe(bay3);
});

test("buffered telemetry counts only where nothing newer was reported", () => {
  const site = plugs();
  const kept = (more: Omit<Telemetry, "at">, moment: string) =>
    site.note(bay3, says(more, at(moment)), at("05:00"), true, true);
  kept({ vehicle: "veh-1" }, "04:00");
  expect(site.at(bay3)).toMatchObject({ vehicle: "veh-1" });
  note(site, bay3, { vehicle: "veh-9" });
  kept({ vehicle: "veh-1" }, "04:30");
  kept({ state: "unplugged" }, "04:40");
  expect(site.at(bay3)).toMatchObject({ vehicle: "veh-9" });
});

test("a charger that goes on claiming a vehicle wins it back from one that does not", () => {
  const site = plugs();
  late(site, bay1, "05:00", "05:00");
  late(site, bay3, "05:00:01", "05:00:01");
  expect(late(site, bay1, "05:01", "05:01").warning).toBeNull();
  late(site, bay1, "05:01:02", "05:01:02");
  expect(site.where(free)).toBe(bay3);
  const { affectedChargers: touched, warning } = late(site, bay1, "05:01:03", "05:01:03");
  expect(new Set(touched)).toEqual(new Set([bay1, bay3]));
  expect(warning).toBe("vehicle veh-9 is claimed by bay-03 and bay-01: the newer report, bay-01, wins");
  expect([site.at(bay3).kind, site.where(free)]).toEqual(["nobody", bay1]);
});

test.each([1, 7, 300])("two chargers that both claim a vehicle every %i s do not alternate", (every) => {
  const site = plugs();
  const say = (charger: typeof bay1, second: number) => {
    const moment = instant(at("05:00") + second * 1000);
    return site.note(charger, says({ vehicle: "veh-9" }, moment), moment);
  };
  const warnings = Array.from({ length: 60 }, (_, n) => [
    say(bay1, n * every).warning,
    say(bay3, (n + 0.5) * every).warning,
  ]).flat();
  expect(warnings.filter((warning) => warning !== null)).toHaveLength(1);
  expect(site.where(free)).toBe(bay3);
});

test("a clock that was set back moves no vehicle", () => {
  const site = plugs();
  late(site, bay3, "06:00", "06:00");
  expect(late(site, bay3, "05:00", "05:00")).toEqual({ affectedChargers: [], warning: null });
  late(site, bay1, "05:01", "05:01");
  expect(site.where(free)).toBe(bay1);
});

test("a MAC address is the same vehicle whether a charger calls it mac or evccid", () => {
  expect(identityKey("evccid", "02AABB000001")).toBe(identityKey("mac", "02:AA:BB:00:00:01"));
  expect(identityKey("rfid", "02AABB000001")).not.toBe(identityKey("mac", "02AABB000001"));
});

test("a report from before a clock set back is no newer than one after it", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-9" }, "06:00");
  note(site, bay1, { vehicle: "unheard of" }, "06:00");
  site.onClockMovedBack(at("05:00"));
  expect(note(site, bay2, { vehicle: "veh-9" }, "05:01").affectedChargers).toContain(bay2);
  expect(site.where(free)).toBe(bay2);
  const kept = site.note(bay3, says({ vehicle: "unheard of" }, at("05:01")), at("05:03"), true, true);
  expect(kept.affectedChargers).toContain(bay3);
});

test("a charger that departs keeps no claim against the vehicle's own charger, and renews it with its next message", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-214" });
  expect([site.where(bus), site.at(bay1).kind]).toEqual([bay3, "nobody"]);
  expect(new Set(site.depart(bay3))).toEqual(new Set([bay1, bay3]));
  expect([site.where(bus), site.at(bay3).kind]).toEqual([bay1, "nobody"]);
  expect(site.depart(bay3)).toEqual([]);
  expect(note(site, bay3, { powerW: 4000 }, "05:01").affectedChargers).toContain(bay1);
  expect(site.where(bus)).toBe(bay3);
});

test("a silent charger may still have the vehicle that it named last, until another charger names it", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-214" });
  expect(new Set(site.depart(bay3, "silent"))).toEqual(new Set([bay1, bay3]));
  expect(site.at(bay3)).toEqual({ kind: "vehicle", vehicle: "veh-214", source: "kept" });
  expect([site.where(bus), site.chargersOf(bus)]).toEqual([bay1, [bay1, bay3]]);
  expect(site.hasLost(bay3)).toBe(true);
  expect(site.depart(bay3, "silent")).toEqual([]);
  expect(site.chargersOf(bus)).toEqual([bay1, bay3]);
  expect(note(site, bay2, { vehicle: "veh-214" }, "05:01").affectedChargers).toContain(bay3);
  expect([site.at(bay3).kind, site.chargersOf(bus)]).toEqual(["nobody", [bay2]]);
  expect(note(site, bay2, { vehicle: "unheard of" }, "05:02").affectedChargers).toContain(bay3);
  expect(site.chargersOf(bus)).toEqual([bay1, bay3]);
  expect(site.depart(bay3)).toEqual([bay3]);
  expect([site.at(bay3).kind, site.chargersOf(bus)]).toEqual(["nobody", [bay1]]);
});

test("a silent charger that names another vehicle has the former one no more", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-214" });
  site.depart(bay3, "silent");
  note(site, bay3, { vehicle: "unheard of" }, "05:01");
  expect(site.chargersOf(bus)).toEqual([bay1]);
  note(site, bay2, { vehicle: "veh-214" }, "05:02");
  site.depart(bay2, "silent");
  expect(site.chargersOf(bus)).toEqual([bay1, bay2]);
});

test("a charger that departs keeps the claim on a vehicle without a charger of its own, and its own vehicle", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-9" });
  note(site, bay1, { vehicle: "veh-214" });
  expect([site.depart(bay3), site.depart(bay1), site.depart(bay2)]).toEqual([[], [], []]);
  expect([site.where(free), site.where(bus)]).toEqual([bay3, bay1]);
});

test("a charger that is online again has the vehicle of its last report again, unless another claims it", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-214" });
  expect(site.comeBack(bay3)).toEqual([]);
  site.depart(bay3);
  expect(new Set(site.comeBack(bay3))).toEqual(new Set([bay1, bay3]));
  expect([site.where(bus), site.comeBack(bay3), site.comeBack(bay2)]).toEqual([bay3, [], []]);
  site.depart(bay3);
  note(site, bay1, { vehicle: "veh-214" }, "05:01");
  expect([site.comeBack(bay3), site.where(bus)]).toEqual([[], bay1]);
});

test("a claim of a charger that departed does not count again", () => {
  const site = plugs();
  note(site, bay2, { vehicle: "veh-214" }, "05:00");
  note(site, bay3, { vehicle: "veh-214" }, "05:01");
  expect(site.depart(bay2)).toEqual([]);
  note(site, bay3, { state: "unplugged" }, "05:02");
  expect(site.where(bus)).toBe(bay1);
});

test("a limit is kept while no other vehicle is there, until its charger reports unplugged or another vehicle", () => {
  const site = plugs();
  note(site, bay3, { vehicle: "veh-214" });
  site.kept.keep(bay1, bus, at("05:00"));
  expect(site.at(bay1)).toEqual({ kind: "vehicle", vehicle: "veh-214", source: "kept" });
  expect([site.where(bus), site.chargersOf(bus)]).toEqual([bay3, [bay3, bay1]]);
  expect(note(site, bay1, { vehicle: null, powerW: 4000 }, "05:01").affectedChargers).toEqual([]);
  expect(site.at(bay1).kind).toBe("vehicle");
  expect(note(site, bay1, { state: "unplugged" }, "05:02").affectedChargers).toEqual([bay1]);
  expect(site.at(bay1).kind).toBe("nobody");
  site.kept.keep(bay1, bus, at("05:00"));
  expect(note(site, bay1, { vehicle: "stranger" }, "05:03").affectedChargers).toEqual([bay1]);
  expect([site.at(bay1).kind, site.kept.of(bay1)]).toEqual(["unknown", null]);
});

test("a vehicle that is at no charger belongs only to the chargers that keep its limit", () => {
  const site = plugs();
  expect(site.chargersOf(free)).toEqual([]);
  site.kept.keep(bay3, free, at("05:00"));
  expect(site.chargersOf(free)).toEqual([bay3]);
});

test("chargers whose occupant comes from a stored command are listed until their first message", () => {
  const site = plugs();
  site.recall(bay3, bus, at("05:00"));
  note(site, bay2, { vehicle: "stranger" }, "05:01");
  expect(site.recalled()).toEqual([bay3]);
  note(site, bay3, { vehicle: "veh-214" }, "05:01");
  expect(site.recalled()).toEqual([]);
});

test("an unplugged vehicle costs the same at a site of 20,000 chargers", () => {
  const bays = Array.from({ length: 20_000 }, (_, n) => ({ charger: chargerId(`c${n}`), vehicle: `v${n}` }));
  const site = new Occupancy(byId(bays.map(({ vehicle }) => aVehicle({ id: vehicle, charger: null }))));
  for (const { charger, vehicle } of bays) note(site, charger, { vehicle });
  const took = processorMs(() => {
    for (const { charger } of bays) note(site, charger, { state: "unplugged" }, "05:01");
  });
  expect(took).toBeLessThan(1_500);
});
