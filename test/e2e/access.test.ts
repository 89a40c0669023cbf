import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

import { aSite, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const PASSWORD = "a long password";
const LOGIN = { operator: { listen: "127.0.0.1:0", access: "login" } };

const verb = (site: Site, name: string, input = "") =>
  setpointd([...name.split(" "), "-c", site.config], { input });

describe.skipIf(!mosquittoAvailable)("access to the operator's listener of a real daemon", () => {
  test("users and tokens of the verbs count in the running daemon, and the record names them", async () => {
    await using site = await aSite({ over: LOGIN });
    await using daemon = await site.start();
    expect(daemon.line("no user yet")?.msg).toMatch(
      /open http:\/\/127\.0\.0\.1:\d+\/login\?once=[\w-]{32} within/,
    );
    expect((await daemon.get("/api/v1/status")).status).toBe(401);
    expect((await daemon.get("/readyz")).status).toBe(200);

    expect(await verb(site, "user add kari --role operator", `${PASSWORD}\n`)).toMatchObject({
      code: 0,
      stdout: "kari may sign in as operator\n",
    });
    const made = await verb(site, "token add wall --role viewer --expires 90d");
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^setpointd_[\w-]{43}\n$/) });
    const file = join(site.state, "access.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).not.toContain(made.stdout.trim());
    expect(existsSync(`${file}.lock`)).toBe(false);

    const url = daemon.operatorUrl;
    const wall = { authorization: `Bearer ${made.stdout.trim()}` };
    expect((await fetch(`${url}/api/v1/status`, { headers: wall })).status).toBe(200);
    const signedIn = await fetch(`${url}/api/v1/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "kari", password: PASSWORD }),
    });
    expect(signedIn.status).toBe(201);
    const cookie = signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const rows = await waitFor(async () => {
      const page = await fetch(`${url}/api/v1/audit?newest=true`, { headers: { cookie } });
      const all = (await page.json()) as { words: string }[];
      return all.some(({ words }) => words === "kari signed in") ? all : null;
    });
    expect(rows).toContainEqual(
      expect.objectContaining({
        kind: "operator",
        words: "kari signed in",
        facts: { by: "kari", role: "operator", from: "127.0.0.1" },
      }),
    );
    const record = JSON.stringify(rows) + daemon.output.replace(/once=\S+/, "");
    for (const secret of [PASSWORD, made.stdout.trim(), "scrypt"]) expect(record).not.toContain(secret);

    expect(await verb(site, "user list")).toMatchObject({
      stdout: expect.stringMatching(/^times in UTC\nkari {2}operator {2}since \d\d:\d\d:\d\d\n$/),
    });
    expect(JSON.parse((await verb(site, "token list --json")).stdout)).toMatchObject([
      { name: "wall", role: "viewer", expiresAt: expect.any(String) },
    ]);
    expect((await verb(site, "token remove wall")).code).toBe(0);
    expect((await verb(site, "user remove kari")).code).toBe(0);
    expect((await fetch(`${url}/api/v1/status`, { headers: wall })).status).toBe(401);
    expect((await fetch(`${url}/api/v1/status`, { headers: { cookie } })).status).toBe(401);

    // The file is damaged: an alarm, and no way in.
    writeFileSync(file, "{");
    await waitFor(async () => (await verb(site, "alarms")).stdout.includes("critical access (open"), {
      timeoutMs: 15_000,
    });
    expect((await fetch(`${url}/api/v1/status`, { headers: { cookie } })).status).toBe(401);
    expect((await verb(site, "user add eve --role integrator", `${PASSWORD}\n`)).code).toBe(1);
    await daemon.end("SIGTERM");
    rmSync(file);
    expect((await verb(site, "user add kari --role viewer", `${PASSWORD}\n`)).stderr).not.toContain("record");
    const onRecord = (await verb(site, "audit")).stdout;
    for (const change of [
      "added the user kari as operator",
      "added the token wall as viewer",
      "removed the token wall",
      "removed the user kari",
      "added the user kari as viewer",
    ])
      expect(onRecord).toContain(change);
    expect(onRecord).not.toContain("eve");
  });

  test("a mistyped request of the verbs is explained and changes nothing", async () => {
    await using site = await aSite({ over: LOGIN });
    const add = (args: string, input = "") => verb(site, args, input);
    expect(await add("user add kari --role operator", "short\n")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("10 to 1024 characters; it is read from the first line"),
    });
    expect(await add("user add kari --role boss", `${PASSWORD}\n`)).toMatchObject({ code: 2 });
    expect(await add("user add <b> --role viewer", `${PASSWORD}\n`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("cannot be a name"),
    });
    expect(await add("token add wall --role viewer --expires soon")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("90d"),
    });
    expect(await add("user remove kari")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no user kari"),
    });
    expect(existsSync(join(site.state, "access.json"))).toBe(false);
  });
});
