import { describe, expect, test } from "vitest";

import { Authority } from "../support/certificates.ts";
import { CentralSystem, ChargePoint, OcppProcess, pythonOcppAvailable } from "../support/aChargePoint.ts";
import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;

/** A lease of a few seconds, so that its end is seen. */
const QUICK = {
  control: { refresh: "2s", verdict: { ramp: "1s" } },
  chargers: [{ id: "bay-01", current: { min: 6, max: 32 } }],
  vehicles: [{ id: "veh-1", identities: [{ rfid: "04A2B3C4" }] }],
};

describe.skipIf(!mosquittoAvailable || !pythonOcppAvailable)("an OCPP charger of another make", () => {
  test("follows an event with a measured verdict, and is free by itself when the bridge is killed", async () => {
    await using site = await aSite({ over: QUICK });
    await using daemon = await site.run();
    await using bridge = await OcppProcess.start(site.broker.url);
    await using charger = ChargePoint.start(bridge.url);
    await waitFor(() => charger.draws === 32);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 16 }));
    await waitFor(() => charger.draws === 16);
    await waitFor(async () => {
      const { stdout } = await setpointd(["audit", "-c", site.config]);
      return /followed: .*16 A/.test(stdout);
    });
    await waitFor(async () => (await bridge.station()).connectors[0]?.composite?.value === 16);
    await bridge.end("SIGKILL");
    await waitFor(() => site.floor.on("/chargers/bay-01/online").at(-1)?.text === "false");
    await waitFor(() => charger.shown("free").length === 1);
  });

  test("with OCPP 2.0.1 follows as well, with a measured verdict", async () => {
    await using site = await aSite({ over: QUICK });
    await using daemon = await site.run();
    await using bridge = await OcppProcess.start(site.broker.url);
    await using charger = ChargePoint.start(bridge.url, { version: "2.0.1" });
    await waitFor(() => charger.draws === 32);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 16 }));
    await waitFor(() => charger.draws === 16);
    await waitFor(async () =>
      /followed: .*16 A/.test((await setpointd(["audit", "-c", site.config])).stdout),
    );
    await waitFor(async () => (await bridge.station()).connectors[0]?.composite?.value === 16);
    const limitShown = async () =>
      (await daemon.view<readonly { measured: { limitA: number | null } | null }[]>("/api/v1/chargers"))[0]
        ?.measured?.limitA;
    await waitFor(async () => (await limitShown()) === 16);
    await setpointd(["release", "bay-01", "-c", site.config]);
    // The limit is gone, and is not shown beside what the vehicle draws now.
    await waitFor(() => charger.draws === 32);
    await waitFor(async () => (await limitShown()) === null);
    await bridge.end("SIGKILL");
  });

  test("follows over TLS, in both versions: with a certificate of its own, and with a password", async () => {
    using authority = new Authority();
    const chargers = ["bay-01", "bay-02"].map((id) => ({ id, current: { min: 6, max: 32 } }));
    await using site = await aSite({ over: { ...QUICK, chargers } });
    await using daemon = await site.run();
    await using bridge = await OcppProcess.start(site.broker.url, {
      ocpp: { tls: { ...authority.issue("gateway"), clientCa: authority.ca } },
      stations: [
        { identity: "CP-1", certificate: "CP-1", connectors: [{ id: 1, charger: "bay-01" }] },
        { identity: "CP-2", password: { file: "cp-1" }, connectors: [{ id: 1, charger: "bay-02" }] },
      ],
    });
    const url = bridge.url.replace("ws:", "wss:");
    const CA = authority.ca;
    const { cert: CERT, key: KEY } = authority.issue("CP-1");
    await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 16 }));
    {
      const own = { password: "", version: "2.0.1", env: { CA, CERT, KEY } } as const;
      await using certified = ChargePoint.start(url, own);
      await waitFor(() => certified.draws === 16);
    }
    // The vehicle has gone to the next bay.
    await using usual = ChargePoint.start(url, { identity: "CP-2", env: { CA } });
    await waitFor(() => usual.draws === 16);
    await using stranger = ChargePoint.start(url, { env: { CA } });
    const wrong = { identity: "CP-2", password: "wrong", env: { CA } };
    await using liar = ChargePoint.start(url, wrong);
    for (const refused of [stranger, liar])
      await waitFor(() => /401/.test(String(refused.shown("disconnected")[0]?.["reason"])));
  });

  test("without Smart Charging, or that rejects it, is refused by name; one that ignores its limit is not followed", async () => {
    await using site = await aSite({ over: QUICK });
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 16 }));
    const record = async () => (await setpointd(["audit", "-c", site.config])).stdout;
    for (const [mode, said] of [
      ["noSmartCharging", /no Smart Charging/],
      ["refuse", /SetChargingProfile with Rejected/],
      ["ignore", /not followed: setpoint 16 A.*draws 32 A/],
    ] as const) {
      await using bridge = await OcppProcess.start(site.broker.url);
      await using charger = ChargePoint.start(bridge.url, { mode });
      await waitFor(async () => said.test(await record()));
      expect(charger.draws).toBe(32);
    }
  });
});

describe.skipIf(!mosquittoAvailable || !pythonOcppAvailable)("beside another central system", () => {
  test("a whole session passes unchanged, while the limit of an event is in force", async () => {
    await using site = await aSite({ over: QUICK });
    await using daemon = await site.run();
    await using other = await CentralSystem.start();
    await using bridge = await OcppProcess.start(site.broker.url, {
      upstream: { url: `ws://127.0.0.1:${other.port}/csms` },
    });
    await using charger = ChargePoint.start(bridge.url);
    await waitFor(() => charger.draws === 32);
    expect(other.shown("connected")[0]).toMatchObject({
      path: "/csms/CP-1",
      authorization: expect.stringMatching(/^Basic /),
    });
    expect(charger.shown("started")[0]).toMatchObject({ transaction: 4711 });
    await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 16 }));
    await waitFor(() => charger.draws === 16);
    await waitFor(async () =>
      /followed: .*16 A/.test((await setpointd(["audit", "-c", site.config])).stdout),
    );
    // The other system's requests are answered by the charger, and its settings stay.
    await waitFor(() => other.shown("configuration").length === 1);
    expect(charger.shown("setting")).toEqual([]);
    await other.end("SIGKILL");
    await waitFor(async () => ((await bridge.station()).upstream?.waiting ?? 0) > 2);
    expect(charger.draws).toBe(16);
    await using back = await CentralSystem.start(other.port);
    await waitFor(async () => (await bridge.station()).upstream?.waiting === 0);
    expect(back.shown("MeterValues").length).toBeGreaterThan(2);
    const times = back.shown("MeterValues").map(({ meter_value: value }) => JSON.stringify(value));
    expect(times).toEqual(times.toSorted());
    // The end of the session passes, with the limit still in force.
    expect((await bridge.station()).connectors[0]?.limit).toMatchObject({ level: "16 A" });
    charger.write("stop");
    await waitFor(() => charger.shown("stopped").length === 1);
    expect(back.shown("StopTransaction")).toMatchObject([
      { transaction_id: 4711, meter_stop: charger.shown("stopped")[0]?.["meter"], id_tag: "04A2B3C4" },
    ]);
    expect(back.shown("StartTransaction")).toEqual([]);
  });

  test("a bridge that is killed in a session with waiting messages loses none, and the session ends once", async () => {
    await using site = await aSite({ over: QUICK });
    await using daemon = await site.run();
    await using other = await CentralSystem.start();
    await using bridge = await OcppProcess.start(site.broker.url, {
      upstream: { url: `ws://127.0.0.1:${other.port}/csms` },
    });
    await using charger = ChargePoint.start(bridge.url);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 10 * MINUTE, amperes: 16 }));
    await waitFor(() => charger.draws === 16);
    await other.end("SIGKILL");
    await waitFor(async () => ((await bridge.station()).upstream?.waiting ?? 0) > 2);
    await bridge.end("SIGKILL");
    // The session goes on and ends while nothing answers the charger.
    const before = charger.shown("metered").length;
    await waitFor(() => charger.shown("metered").length > before + 2);
    charger.write("stop");
    await using restarted = await bridge.again();
    await waitFor(() => charger.shown("stopped").length === 1);
    expect((await restarted.station()).upstream?.waiting).toBeGreaterThan(5);
    await using back = await CentralSystem.start(other.port);
    await waitFor(async () => (await restarted.station()).upstream?.waiting === 0);
    const times = [other, back].flatMap((system) =>
      system.shown("MeterValues").map(({ meter_value: value }) => timeOf(value)),
    );
    expect(times).toEqual(times.toSorted());
    // A meter value that was under way when the other system was killed comes a second time.
    expect([...new Set(times)]).toEqual(charger.shown("metered").map(({ at }) => at));
    expect(times.length - new Set(times).size).toBeLessThan(2);
    expect(back.shown("StopTransaction")).toMatchObject([
      { transaction_id: 4711, meter_stop: charger.shown("stopped")[0]?.["meter"] },
    ]);
    expect(other.shown("StartTransaction").length + back.shown("StartTransaction").length).toBe(1);
  });
});

const timeOf = (value: unknown): string => (value as readonly [{ readonly timestamp: string }])[0].timestamp;
