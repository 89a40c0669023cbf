import { chmodSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { Mosquitto, mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

interface Status {
  readonly problems: readonly { readonly kind: string; readonly subject: string; readonly message: string }[];
}

const kindsOf = async (config: string): Promise<readonly string[]> => {
  const { stdout } = await setpointd(["status", "--json", "-c", config]);
  return stdout === "" ? [] : (JSON.parse(stdout) as Status).problems.map(({ kind }) => kind);
};

describe.skipIf(!mosquittoAvailable)("setpointd status", () => {
  test("needs no secret, shows counts, and what a refused topic means for its charger", async () => {
    const acl = [
      "user depot",
      "topic readwrite setpointd/#",
      "topic deny setpointd/depot/chargers/bay-02/set",
    ];
    await using broker = await Mosquitto.start({ users: { depot: "one" }, acl });
    const over = { mqtt: { url: broker.url, username: "depot", password: { env: "MQTT_PASSWORD" } } };
    await using site = await aSite({ over });
    await using daemon = await site.run({ MQTT_PASSWORD: "one" });
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60_000, vehicles: ["veh-1", "veh-2"] }));
    await waitFor(async () => (await kindsOf(site.config)).includes("publish"));
    // Whoever asks may not read the secrets.
    for (const secret of ["client-secret", "webhook-secret"]) chmodSync(join(site.directory, secret), 0o000);
    const said = await setpointd(["status", "-c", site.config]);
    expect(said).toMatchObject({ code: 0, stderr: "" });
    expect(said.stdout).toMatch(/^depot, mode drive, up since \d\d:\d\d:\d\d; times in UTC$/m);
    expect(said.stdout).toContain("commands: 1 limited, 0 followed, 0 not followed, 0 refused, 1 not sent");
    expect(said.stdout).toContain("broker: connected");
    expect(said.stdout).toMatch(/^overrides: none$/m);
    expect(said.stdout).toMatch(
      /^events: 1 known, 1 active, next change .*\n {2}EV-1.*: 16 A for 2 vehicles until \d\d:\d\d:\d\d; last changed by the partner \d\d:\d\d:\d\d$/m,
    );
    expect(said.stdout).toMatch(
      /^clock: (not compared with the partner's yet|\d+\.\d s from the partner's)$/m,
    );
    expect(said.stdout).toMatch(
      /publish, since \d\d:\d\d:\d\d: the command of bay-02 was not published: .*Not authorized \(topic setpointd\/depot\/chargers\/bay-02\/set\)\n {4}allow that topic in the broker's access list/,
    );
    const wrong = { ...anEvent("EV-BAD", { lastsMs: 60_000 }), intervalPeriod: { start: "soon" } };
    await daemon.deliver(wrong);
    const shown = async () => (await setpointd(["status", "-c", site.config])).stdout;
    await waitFor(async () =>
      /^alarms: \d open.*\n(?: .*\n)* {2}\w+, since .*EV-BAD.*\n {4}\S/m.test(await shown()),
    );
    // A problem is not repeated among the alarms.
    expect((await shown()).match(/the command of bay-02 was not published/g)).toHaveLength(1);
    const metrics = await daemon.get("/metrics");
    expect(metrics.text).toContain('setpointd_problems{kind="publish"} 1');
  });

  test("reports that no daemon answers, and the path of the socket", async () => {
    await using site = await aSite();
    const said = await setpointd(["status", "-c", site.config]);
    expect(said.code).toBe(1);
    expect(said.stderr).toContain(`setpointd does not answer at ${join(site.state, "status.sock")}`);
  });

  test("a broker that goes away is one problem with its reason, and its chargers are unreachable", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    await site.broker.kill();
    await waitFor(async () => (await kindsOf(site.config)).includes("broker"));
    const status = () =>
      daemon.view<{ chargers: { unreachable: number }; broker: { reason: string } }>("/api/v1/status");
    expect((await status()).chargers.unreachable).toBe(4);
    // The first reason is the closed connection; the refused one comes with the next attempt.
    await waitFor(async () => (await status()).broker.reason.includes("ECONNREFUSED"));
    expect((await kindsOf(site.config)).filter((kind) => kind === "broker")).toHaveLength(1);
  });
});
