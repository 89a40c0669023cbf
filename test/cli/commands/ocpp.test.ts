import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { parse, stringify } from "yaml";

import { least, SECRET } from "../../support/aConfiguration.ts";
import { anOrder, TestBridge, TestStation } from "../../support/anOcppBridge.ts";
import { Floor } from "../../support/aFloor.ts";
import { Mosquitto, mosquittoAvailable } from "../../support/mosquitto.ts";
import { setpointd } from "../../support/setpointd.ts";
import { waitFor } from "../../support/waitFor.ts";

/** A configuration whose status is that of a running bridge. */
function configFor(statusPort: number): string {
  const directory = mkdtempSync(join(tmpdir(), "setpointd-ocpp-status-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "ocpp.yaml");
  const mqtt = { url: "mqtt://127.0.0.1:9" };
  writeFileSync(file, stringify({ site: "depot", mqtt, status: `127.0.0.1:${statusPort}` }));
  return file;
}

test("ocpp status shows each charger with its problems, and its exit code is an alarm", async () => {
  await using bridge = await TestBridge.start();
  await using station = await TestStation.boot(bridge.url());
  await waitFor(() => bridge.view().state === "ready");
  const config = configFor(bridge.bridge.statusPort);
  const fine = await setpointd(["ocpp", "status", "-c", config]);
  expect(fine.code).toBe(0);
  expect(fine.stdout).toContain("depot: 1 of 2 chargers ready");
  expect(fine.stdout).toMatch(
    /CP-1, ready since .*, OCPP 1.6, Test One\n {2}connector 1, bay-01: no status yet/,
  );
  station.send("{");
  await TestStation.refusal(bridge.url("CP-9"));
  await waitFor(() => bridge.view().counts.malformed === 1);
  const bad = await setpointd(["ocpp", "status", "-c", config]);
  expect(bad.code).toBe(1);
  expect(bad.stdout).toContain("  problem: 1 of its messages could not be read");
  expect(bad.stdout).toContain(
    "refused 1 times: CP-9 at 127.0.0.1: this identity is not in the configuration",
  );
  const { stdout } = await setpointd(["ocpp", "status", "-c", config, "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ site: "depot", refused: { count: 1 } });
});

test("ocpp status fails where no bridge answers, and where no configuration is named", async () => {
  const absent = await setpointd(["ocpp", "status", "-c", configFor(9)]);
  expect([absent.code, absent.stderr]).toEqual([1, expect.stringContaining("is setpointd ocpp running?")]);
  const unnamed = await setpointd(["ocpp", "status"]);
  expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining("Name the bridge's own")]);
});

test("every alert about the bridge uses its metrics", async () => {
  const file = fileURLToPath(new URL("../../../config/alerts.yml", import.meta.url));
  const { groups } = parse(readFileSync(file, "utf8")) as {
    groups: readonly { name: string; rules: readonly { expr: string; annotations: object }[] }[];
  };
  const rules = groups.find(({ name }) => name === "setpointd-ocpp")?.rules ?? [];
  expect(rules).toHaveLength(3);
  await using bridge = await TestBridge.start();
  const { text } = await bridge.get("/metrics");
  for (const { expr, annotations } of rules) {
    for (const name of expr.match(/setpointd_\w+/g) ?? ["none"]) expect(text).toContain(`# TYPE ${name} `);
    expect(Object.keys(annotations)).toEqual(["summary", "action"]);
  }
});

test("check warns of a vehicle without identities at a charger of the bridge whose file is beside it", async () => {
  const bridge = configFor(9);
  const site = join(bridge, "..", "site.yaml");
  const vehicles = [{ id: "veh-1", charger: "bay-01" }];
  writeFileSync(site, stringify({ ...least, vehicles }));
  const check = () => setpointd(["check", "-c", site], { env: { SECRET } });
  expect((await check()).stderr).toBe("");
  const stations = [{ identity: "CP-1", connectors: [{ id: 1, charger: "bay-01" }] }];
  const text = readFileSync(bridge, "utf8");
  writeFileSync(bridge, stringify({ ...(parse(text) as object), stations }));
  const warned = await check();
  expect(warned.code).toBe(0);
  expect(warned.stderr).toContain("no identities, at a charger that may report one: veh-1 at bay-01");
  writeFileSync(bridge, "stations: [");
  expect((await check()).stderr).toBe("");
});

test.skipIf(!mosquittoAvailable)(
  "the access list of the bridge lets it serve its chargers, and no others",
  async () => {
    const file = configFor(9);
    const stations = [1, 2].map((n) => ({
      identity: `CP-${n}`,
      connectors: [{ id: 1, charger: `bay-0${n}` }],
    }));
    const ocpp = { listen: "127.0.0.1:9000" };
    writeFileSync(file, stringify({ site: "depot", mqtt: { url: "mqtt://127.0.0.1:9" }, ocpp, stations }));
    const printed = await setpointd(["acl", "-c", file]);
    expect(printed).toMatchObject({ code: 0, stderr: "" });
    expect(printed.stdout).not.toContain("bay-03");
    const password = "password-of-the-tests";
    await using broker = await Mosquitto.start({
      users: { ocpp: password, floor: password },
      acl: [...printed.stdout.split("\n"), "user floor", "topic readwrite #"],
    });
    await using floor = await Floor.at(broker.url, { username: "floor", password });
    const mqtt = { url: broker.url, username: "ocpp", password: { file: "password" } };
    await using bridge = await TestBridge.start({ mqtt });
    await using first = await TestStation.boot(bridge.url("CP-1"));
    await using second = await TestStation.boot(bridge.url("CP-2"));
    for (const bay of ["bay-01", "bay-02"]) {
      await waitFor(() => floor.on(`/${bay}/online`).at(-1)?.text === "true");
      await floor.publish(`setpointd/depot/chargers/${bay}/set`, anOrder());
      await waitFor(() => floor.on(`/${bay}/ack`).length === 1);
    }
    await first.call("StatusNotification", { connectorId: 1, status: "Charging", errorCode: "NoError" });
    await waitFor(() => floor.on("/bay-01/telemetry").length > 0);
    expect(second.closed).toBeNull();
  },
);
