import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { type Make, MAKES, ScriptedMake } from "../support/scriptedMakes.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const SOON = { timeoutMs: 25 * SECOND };
const all = Object.values(MAKES);

/** One charger and one vehicle for each make, called as the profile is; openWB is its own broker. */
const depotOf = (makes: readonly Make[], boxUrl: string, control: object = {}) => ({
  brokers: { box: { url: boxUrl } },
  control: { verdict: { ramp: "1s" }, ...control },
  chargers: makes.map(({ profile, params }) => ({
    id: profile,
    profile,
    params,
    current: { max: 32 },
    ...(profile === "openwb-secondary" ? { broker: "box" } : {}),
  })),
  vehicles: makes.map(({ profile }) => ({ id: `bus-${profile}`, charger: profile })),
});

async function aMixedDepot(makes: readonly Make[], control: object = {}) {
  await using stack = new AsyncDisposableStack();
  const box = stack.use(await Mosquitto.start());
  const site = stack.use(await aSite({ over: depotOf(makes, box.url, control) }));
  const chargers = new Map<string, ScriptedMake>();
  for (const make of makes) {
    const url = make.profile === "openwb-secondary" ? box.url : site.broker.url;
    chargers.set(make.profile, stack.use(await ScriptedMake.at(make, url)));
  }
  const daemon = stack.use(await site.run());
  const of = (profile: string): ScriptedMake => {
    const charger = chargers.get(profile);
    if (charger === undefined) throw new Error(`no ${profile}`);
    return charger;
  };
  const record = async (): Promise<readonly string[]> => {
    const rows = await daemon.view<readonly { readonly words: string }[]>("/api/v1/audit?limit=1000");
    return rows.map(({ words }) => words);
  };
  const running = stack.move();
  return { site, daemon, of, record, chargers, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

const vehiclesOf = (makes: readonly Make[]) => makes.map(({ profile }) => `bus-${profile}`);

describe.skipIf(!mosquittoAvailable)("real makes", () => {
  test("an event reaches each make in its own format, is confirmed, followed and released", async () => {
    await using depot = await aMixedDepot(all);
    await depot.daemon.deliver(
      anEvent("EV-1", { lastsMs: 6 * SECOND, amperes: 13.7, vehicles: vehiclesOf(all) }),
    );
    await waitFor(() => all.every(({ profile }) => depot.of(profile).limit < 14), SOON);
    expect(Object.fromEntries([...depot.chargers].map(([profile, { told }]) => [profile, told]))).toEqual({
      "go-e-v2": ["amp/set 13"],
      warp: ['evse/external_current_update {"current":13700}'],
      smartevse: ["Set/Mode Normal", "Set/CurrentOverride 137"],
      "openwb-secondary": ['0/data/parent_cp "1"', "0/data/set_current 13.7"],
      "openevse-override": ['{"state":"active","charge_current":13,"auto_release":false}'].map(
        (text) => `override/set ${text}`,
      ),
      evcc: ["loadpoints/1/maxCurrent/set 13.7", "loadpoints/1/mode/set now"],
    });
    const closed = async (what: RegExp) => {
      const words = await depot.record();
      return all.every(({ profile }) =>
        words.some((line) => line.startsWith(`${profile} `) && what.test(line)),
      );
    };
    await waitFor(() => closed(/accepted by the charger/), SOON);
    await waitFor(() => closed(/followed: .*13(\.7)? A/), SOON);
    await waitFor(() => all.every(({ profile }) => depot.of(profile).limit === 32), SOON);
    await waitFor(() => closed(/followed: .*(20|32) A/), SOON);
    expect((await depot.record()).filter((line) => /not followed|refused/.test(line))).toEqual([]);
  });

  test("0 A pauses each make, whatever a 0 means to it, and the end lets it go", async () => {
    await using depot = await aMixedDepot(all);
    await depot.daemon.deliver(
      anEvent("EV-1", { lastsMs: 3 * SECOND, amperes: 0, vehicles: vehiclesOf(all) }),
    );
    await waitFor(() => all.every(({ profile }) => depot.of(profile).limit === 0), SOON);
    expect(depot.of("smartevse").told).not.toContain("Set/CurrentOverride 0");
    // Those whose flash is spared wait 10 s from the pause on.
    await waitFor(() => all.every(({ profile }) => depot.of(profile).limit === 32), SOON);
  });

  test("F89: a charger that ignores its setpoint receives it again, and does not count as following", async () => {
    const { GO_E } = MAKES;
    await using depot = await aMixedDepot([GO_E]);
    depot.of("go-e-v2").ignores = true;
    await depot.daemon.deliver(
      anEvent("EV-1", { lastsMs: 60 * SECOND, amperes: 10, vehicles: vehiclesOf([GO_E]) }),
    );
    const says = async (what: RegExp) => (await depot.record()).some((line) => what.test(line));
    await waitFor(
      () => says(/not followed: setpoint 10 A, reports a limit of 32 A and draws 20 A; sent again/),
      SOON,
    );
    await waitFor(() => says(/refused by the charger: not confirmed within 5 s, it repeats 32 A/), SOON);
    await waitFor(() => depot.of("go-e-v2").told.length >= 2, SOON);
  });

  test("a make that somebody takes out of the mode that obeys us is put back into it", async () => {
    const { SMARTEVSE } = MAKES;
    await using depot = await aMixedDepot([SMARTEVSE]);
    const charger = depot.of("smartevse");
    await depot.daemon.deliver(
      anEvent("EV-1", { lastsMs: 60 * SECOND, amperes: 10, vehicles: vehiclesOf([SMARTEVSE]) }),
    );
    await waitFor(() => charger.limit === 10, SOON);
    await depot.site.floor.publish("SmartEVSE/1/Set/Mode", "Solar");
    await waitFor(() => charger.limit === 32, SOON);
    await waitFor(() => charger.limit === 10, SOON);
    expect(charger.word("Mode")).toBe("Normal");
  });

  test("a maximum beyond the profile's limit is warned of, and control applies the lower one", async () => {
    await using site = await aSite({
      over: {
        chargers: [{ id: "bay-01", profile: "wbec", params: { lp: 1 }, current: { max: 32 } }],
        vehicles: [{ id: "veh-1", charger: "bay-01" }],
      },
    });
    await using daemon = await site.run();
    expect(daemon.line("chargers[0].current.max: 32 A; expected at most 16 A")?.level).toBe(40);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND, amperes: 20 }));
    await waitFor(() => site.floor.on("lp/1/maxcurrent").length > 0, SOON);
    expect(site.floor.on("lp/1/maxcurrent").map(({ text }) => text)).toEqual(["16"]);
    const rows = await daemon.view<readonly { readonly words: string }[]>("/api/v1/audit?event=EV-1");
    expect(rows.some(({ words }) => words.includes("bay-01 (veh-1) to 16 A"))).toBe(true);
  });

  test("F88: a charger that fell silent is offline, and receives its setpoint once when it is back", async () => {
    const { GO_E } = MAKES;
    await using depot = await aMixedDepot([GO_E]);
    const charger = depot.of("go-e-v2");
    await depot.daemon.deliver(
      anEvent("EV-1", { lastsMs: 120 * SECOND, amperes: 10, vehicles: vehiclesOf([GO_E]) }),
    );
    // Muted before it was confirmed, it would be told again for that.
    await waitFor(
      async () => (await depot.record()).some((line) => /go-e-v2 .*accepted by the charger/.test(line)),
      SOON,
    );
    charger.isMuted = true;
    const isOnline = async () =>
      (await depot.daemon.view<readonly { readonly online: boolean | null }[]>("/api/v1/chargers"))[0]
        ?.online;
    await waitFor(async () => (await isOnline()) === false, SOON);
    charger.isMuted = false;
    await waitFor(async () => (await isOnline()) === true, SOON);
    await waitFor(() => charger.told.length > 1, SOON);
    expect(charger.told).toEqual(["amp/set 10", "amp/set 10"]);
  });
});
