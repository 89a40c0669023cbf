import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { anEvent, aSite, type Site } from "../support/aSite.ts";
import type { Daemon } from "../support/aDaemon.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { type Said, setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const STACK = /^\s+at /m;

interface Line {
  readonly section: string;
  readonly what: string;
  readonly words?: string;
  readonly value?: number;
  readonly unit?: string;
  readonly vehicle?: string;
  readonly command?: string;
}

const proof = (site: Site, ...args: readonly string[]): Promise<Said> =>
  setpointd(["proof", "-c", site.config, ...args]);

/** A proof as a file beside the configuration. */
async function filed(site: Site, name: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await proof(site, ...args);
  expect([code, stderr]).toEqual([0, ""]);
  const file = join(site.directory, name);
  writeFileSync(file, stdout);
  return file;
}

const linesOf = (file: string): readonly Line[] => JSON.parse(readFileSync(file, "utf8"));

/** `veh-1 decided 16 A` of what was done with each vehicle. */
const deeds = (file: string): readonly string[] =>
  linesOf(file)
    .filter(({ section, command }) => section === "vehicle" && command !== undefined)
    .map(({ vehicle, what, value, unit }) => [vehicle, what, value, unit].filter(Boolean).join(" "));

const USAGE = {
  payloadType: "USAGE",
  readingType: "DIRECT_READ",
  aggregate: false,
  frequency: -1,
  historical: true,
  numIntervals: -1,
  repeat: 1,
  startInterval: -1,
};

/** What bay-01 says of itself. A change of state is always kept, whatever came just before. */
async function telemetry(site: Site, state: string, powerW: number, energyWh: number): Promise<void> {
  await site.floor.publish(
    "setpointd/depot/chargers/bay-01/telemetry",
    JSON.stringify({
      at: new Date().toISOString(),
      state,
      powerW,
      energyWh,
      limitA: 16,
    }),
  );
}

/** EV-1 from 16 A on veh-1, followed as measured, and over. */
async function played(site: Site, daemon: Daemon): Promise<void> {
  await telemetry(site, "connected", 0, 1000);
  await waitFor(async () => (await daemon.get("/api/v1/chargers")).text.includes("connected"));
  await daemon.deliver(
    anEvent("EV-1", { lastsMs: 3 * SECOND, vehicles: ["veh-1", "veh-9"], reportDescriptors: [USAGE] }),
  );
  const { set } = await site.floor.nth("bay-01", 1);
  await site.floor.publish(
    "setpointd/depot/chargers/bay-01/ack",
    JSON.stringify({ id: set.id, accepted: true, value: 16, reason: null }),
  );
  await waitFor(() => daemon.line("accepted by the charger"));
  await waitFor(
    async () => {
      await telemetry(site, "charging", 11_040, 1010);
      return daemon.line("followed: ");
    },
    { everyMs: 200 },
  );
  await waitFor(() => daemon.line("report EV-1/0/0 sent"), { timeoutMs: 15_000 });
}

describe.skipIf(!mosquittoAvailable)("proof of an event", () => {
  test("prints the same from the running daemon and from the stored state, verifies, and finds any edited line", async () => {
    await using site = await aSite({
      over: { control: { verdict: { ramp: "1s" } }, report: { settleDelay: "0s" } },
    });
    let running = "";
    {
      await using daemon = await site.run();
      await played(site, daemon);
      running = await filed(site, "running.json", "EV-1");
      const verified = await proof(site, "verify", running);
      expect([verified.code, verified.stderr]).toEqual([0, ""]);
      expect(verified.stdout).toMatch(
        /is whole: \d+ lines, \d+ rows.*\n.*site's key\n\d+ of its rows are those of the record\n$/,
      );
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    expect(deeds(running).slice(0, 5)).toEqual([
      "veh-1 decided 16 A",
      "veh-1 sent",
      "veh-1 acknowledged",
      "veh-1 accepted",
      "veh-1 followed",
    ]);
    expect(deeds(running)).toContain("veh-1 released");
    const lines = linesOf(running);
    const words = (what: string) => lines.filter((line) => line.what === what).map(({ words }) => words);
    expect(words("end")).toEqual(["followed"]);
    expect(words("source")).toEqual(["webhook"]);
    expect(words("report")[0]).toMatch(/^EV-1\/0\/0 \(USAGE\): /);
    expect(lines.find(({ section, what }) => section === "report" && what === "sent")).toMatchObject({
      value: 1,
      unit: "tries",
    });
    expect(lines.find(({ section, what }) => section === "report" && what === "acknowledged")).toMatchObject({
      value: 201,
      unit: "HTTP status",
      words: expect.stringContaining('"id":"R-1"'),
    });
    expect(words("report asked for")).toEqual(["USAGE (DIRECT_READ)"]);
    expect(lines.find(({ what }) => what === "targets that are not ours")?.value).toBe(1);
    expect(lines.find(({ what }) => what === "peak power")).toMatchObject({ value: 11.04, unit: "kW" });
    expect(lines.find(({ what }) => what === "energy")?.value).toBe(0.01);

    const stored = await filed(site, "stored.json", "EV-1");
    expect(deeds(stored).slice(0, 5)).toEqual(deeds(running).slice(0, 5));
    const table = await filed(site, "stored.csv", "EV-1", "--format", "csv");
    expect(readFileSync(table, "utf8")).toMatch(/^\uFEFFsection,vehicle,.*print\n/);
    const key = join(site.state, "site.key");
    const verified = (file: string) => setpointd(["proof", "verify", file, "--key", key]);
    const whole = await Promise.all([running, stored, table].map(verified));
    expect(whole.map(({ code }) => code)).toEqual([0, 0, 0]);

    const edited = [stored, table].map(async (file) => {
      const text = readFileSync(file, "utf8");
      const number = text.split("\n").findIndex((line) => line.includes("decided")) + 1;
      writeFileSync(file, text.replace(/to 16 A until/, "to 26 A until"));
      const { code, stdout, stderr } = await verified(file);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(`${file}, line ${number}: "decided" of veh-1 (row `);
      expect(stderr).not.toMatch(STACK);
    });
    await Promise.all(edited);
  });

  test("verify reports what it could not check, and another site's key or record is found", async () => {
    await using site = await aSite();
    await using other = await aSite();
    for (const place of [site, other]) {
      await using daemon = await place.run();
      await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
      await place.floor.nth("bay-01", 1);
      await waitFor(() => daemon.line("acknowledged by the broker"));
      await daemon.end("SIGTERM");
    }
    const file = await filed(site, "proof.json", "EV-1");
    const keyless = await setpointd(["proof", "verify", file]);
    expect(keyless.code).toBe(0);
    expect(keyless.stdout).toContain(`${file} is consistent, not authenticated: `);
    expect(keyless.stderr).toMatch(/^not checked: who created it.*\nnot checked: whether its rows.*\n$/);
    const [publicKey, foreignKey] = await Promise.all(
      [site, other].map(async (place) => {
        const { code, stdout } = await proof(place, "key");
        expect([code, stdout]).toEqual([0, expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/)]);
        const path = join(place.directory, "public.pem");
        writeFileSync(path, stdout);
        return path;
      }),
    );
    const partners = await setpointd(["proof", "verify", file, "--public-key", publicKey ?? ""]);
    expect([partners.code, partners.stdout]).toEqual([
      0,
      expect.stringMatching(/ is whole: .*\nit was signed with the private key of this public key\n$/),
    ]);
    const strangers = await setpointd(["proof", "verify", file, "--public-key", foreignKey ?? ""]);
    expect([strangers.code, strangers.stderr]).toEqual([
      1,
      expect.stringContaining("the signature was not made with the private key of this public key"),
    ]);
    const noKey = await setpointd(["proof", "verify", file, "--public-key", file]);
    expect([noKey.code, noKey.stderr]).toEqual([
      1,
      expect.stringContaining("cannot be used as a public key"),
    ]);
    const key = join(site.state, "site.key");
    const keyed = await setpointd(["proof", "verify", file, "--key", key]);
    expect([keyed.code, keyed.stdout.split("\n").length]).toEqual([0, 3]);
    expect(keyed.stderr).toMatch(/^not checked: whether its rows.*\n$/);

    const foreign = await setpointd(["proof", "verify", file, "-c", other.config]);
    expect(foreign.code).toBe(1);
    expect(foreign.stderr).toContain("the seal was not made with this site's key");
    // A state that was made anew with the same key has another record.
    for (const name of readdirSync(site.state).filter((name) => name !== "site.key"))
      rmSync(join(site.state, name), { recursive: true });
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await waitFor(() => daemon.line("acknowledged by the broker"));
    const rows = await proof(site, "verify", file);
    expect([rows.code, rows.stdout]).toEqual([1, ""]);
    expect(rows.stderr).toMatch(/, line \d+: row \d+ is not the one of the record\n/);

    expect((await setpointd(["proof", "verify", file, "-c", site.config, "--key", key])).code).toBe(2);
    expect((await setpointd(["proof", "verify", join(site.directory, "absent")])).code).toBe(1);
    expect((await setpointd(["proof", "verify", file, "--key", site.config])).stderr).toContain(
      "32 raw bytes",
    );
  });

  test("outages during the event stand beside the figures, and an event may be called like a verb", async () => {
    await using site = await aSite();
    {
      await using daemon = await site.run();
      await daemon.deliver(anEvent("verify", { lastsMs: 60 * SECOND }));
      await site.floor.nth("bay-01", 1);
      await waitFor(() => daemon.line("acknowledged by the broker"));
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    await using daemon = await site.run();
    const file = await filed(site, "proof.json", "show", "verify");
    expect(linesOf(file).find(({ what }) => what === "event")?.words).toBe("verify");
    const outages = linesOf(file).filter(({ what }) => what === "outage");
    expect(outages.map(({ vehicle, words }) => [vehicle, words])).toEqual([
      ["veh-1", expect.stringMatching(/^setpointd: setpointd started/)],
    ]);
    expect((await proof(site, "verify", file)).code).toBe(0);
    expect(await daemon.end("SIGTERM")).toBe(0);
  });

  test("an unknown event gets one sentence: it has no proof", async () => {
    await using site = await aSite();
    const nothing = await proof(site, "EV-404");
    expect([nothing.code, nothing.stdout]).toEqual([1, ""]);
    expect(nothing.stderr).toContain("there is no state");
    await using daemon = await site.run();
    const unknown = await proof(site, "EV-404");
    expect([unknown.code, unknown.stdout, unknown.stderr]).toEqual([
      1,
      "",
      "nothing is known of an event EV-404\n",
    ]);
    expect((await proof(site, "EV-404", "--format", "pdf")).code).toBe(2);
    await daemon.end("SIGTERM");
    expect((await proof(site, "EV-404")).stderr).toBe("nothing is known of an event EV-404\n");
  });
});
