import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";

import { setpointd } from "../support/setpointd.ts";

const lines = (text: string): readonly unknown[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("trying profiles from the command line, without a configuration", () => {
  test("each line is answered with one line, a bad one too, and the rest goes on", async () => {
    const params = { serial: "000001" };
    const input = [
      JSON.stringify({ profile: "go-e-v2", params, action: "setCurrent", input: { currentA: 13.7 } }),
      "{ not JSON",
      JSON.stringify({ profile: "go-e-v2", params: {}, action: "pause" }),
      JSON.stringify({ profile: "go-e-v2", params, topic: "go-eCharger/000001/car", payload: "2" }),
    ].join("\n");
    const { code, stdout, stderr } = await setpointd(["profile", "try", "--stdin"], { input });
    expect([code, stderr]).toEqual([0, ""]);
    expect(lines(stdout)).toEqual([
      { publishes: [{ topic: "go-eCharger/000001/amp/set", payload: "13", qos: 1, retain: false }] },
      { error: expect.any(String) },
      { error: expect.stringContaining("serial") },
      { means: { state: "charging", plugged: true, charging: true, paused: false } },
    ]);
  });

  test("only a line feed ends a line, a byte order mark begins none, and no payload is too deep", async () => {
    const evcc = { profile: "evcc", params: { id: 1 }, topic: "evcc/loadpoints/1/vehicleName" };
    const deep = `${"[".repeat(5000)}${"]".repeat(5000)}`;
    const input = [
      JSON.stringify({ ...evcc, payload: "A\u2028B" }),
      `{"profile":"evcc",\r"params":{"id":1},"topic":"evcc/loadpoints/1/mode","payload":${deep}}\r`,
      JSON.stringify({ profile: "evcc", params: { id: 1 }, action: "pause" }),
    ].join("\n");
    const { stdout } = await setpointd(["profile", "try", "--stdin"], { input: `\uFEFF${input}` });
    expect(lines(stdout)).toEqual([
      { means: { vehicleId: "A\u2028B", vehicleIdKind: "name" } },
      { means: expect.anything() },
      { publishes: [expect.anything()] },
    ]);
  });

  test("recorded traffic of any length is answered to its end", async () => {
    const line = JSON.stringify({
      profile: "warp",
      params: { prefix: "warp/AbCd" },
      topic: "warp/AbCd/meter/values",
      payload: '{"power":3680}',
    });
    const { stdout } = await setpointd(["profile", "try", "--stdin"], { input: `${line}\n`.repeat(5000) });
    expect(lines(stdout)).toHaveLength(5000);
  });

  test("list and show print the profiles and their parameters", async () => {
    const [list, show, unknown, flag] = await Promise.all([
      setpointd(["profile", "list"]),
      setpointd(["profile", "show", "smartevse"]),
      setpointd(["profile", "show", "smartevs"]),
      setpointd(["profile", "try"]),
    ]);
    expect([list.code, list.stdout.trim().split("\n").length]).toEqual([0, 23]);
    expect(list.stdout).toMatch(/^native +measured +/m);
    expect(show.code).toBe(0);
    for (const heading of [
      "Parameters",
      "On the charger",
      "Limits",
      "When the gateway dies",
      "Verdicts",
      "Uncertain",
    ])
      expect(show.stdout).toContain(heading);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("did you mean smartevse?")]);
    expect([flag.code, flag.stdout]).toEqual([2, ""]);
    const file = await setpointd(["profile", "list", "--profiles", "config/profiles/warp.yaml"]);
    expect([file.code, file.stderr]).toEqual([2, expect.stringContaining("this is no folder")]);
  });

  test("a site's own profile is tried like the others, and its mistakes are explained", async () => {
    const site = mkdtempSync(join(tmpdir(), "site-"));
    onTestFinished(() => rmSync(site, { recursive: true }));
    const folder = join(site, "profiles");
    mkdirSync(folder);
    writeFileSync(
      join(folder, "our-box.yaml"),
      `profile: our-box
title: Our box
limits: { current: { min: 6, max: 16 }, zero: ignored, belowMinimum: ignored }
actions: { setCurrent: [{ topic: box/amps, text: "{current}" }] }
ifWeDie: It holds the last.
`,
    );
    writeFileSync(join(folder, "torn.yaml"), "profile: torn\ntitel: Torn\n");
    const input = JSON.stringify({ profile: "our-box", action: "setCurrent", input: { currentA: 32 } });
    const { code, stdout, stderr } = await setpointd(["profile", "--profiles", folder, "try", "--stdin"], {
      input,
    });
    expect(code).toBe(0);
    expect(lines(stdout)).toMatchObject([{ publishes: [{ topic: "box/amps", payload: "16" }] }]);
    expect(stderr).toContain("torn.yaml:2");
    expect(stderr).toContain("did you mean title?");
    const beside = await setpointd(["profile", "show", "our-box", "-c", join(site, "config.yaml")]);
    expect([beside.code, beside.stdout]).toEqual([0, expect.stringContaining("our-box: Our box")]);
    const nowhere = await setpointd(["profile", "--profiles", join(site, "nowhere"), "list"]);
    expect([nowhere.code, nowhere.stdout]).toEqual([2, ""]);
  });
});
