import { describe, expect, test } from "vitest";

import { aFleet, siteFile } from "../support/aFleet.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { postgresMissing } from "../support/postgres.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const PASSWORD = "a long password";

interface Shown {
  readonly sites: number;
  readonly processes: readonly { readonly led: number }[];
}

interface Row {
  readonly kind: string;
  readonly words: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

describe.skipIf(!mosquittoAvailable || postgresMissing() !== null)("the record of a fleet", () => {
  test("what a verb or a person at the page changes is on the record of the fleet, by name: users, tokens and sites", async () => {
    const fleet = await aFleet();
    const config = fleet.configure("login", { operator: { listen: "127.0.0.1:0", access: "login" } });
    const verb = (name: string, input = "") => setpointd([...name.split(" "), "-c", config], { input });
    const rows = async (): Promise<readonly Row[]> => {
      const { code, stdout, stderr } = await verb("audit --json");
      expect([code, stderr]).toEqual([0, ""]);
      return stdout
        .trim()
        .split("\n")
        .map((line): Row => JSON.parse(line));
    };
    const none = await verb("audit");
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("nothing has run there yet")]);

    expect(await verb("user add kari --role integrator", `${PASSWORD}\n`)).toMatchObject({
      code: 0,
      stderr: "",
    });
    // Verbs at the same time wait for each other.
    const [token, ...others] = await Promise.all([
      verb("token add boss --role integrator"),
      verb("token add wall --role viewer"),
    ]);
    expect([token, ...others].map(({ code, stderr }) => [code, stderr.includes("not on record")])).toEqual([
      [0, false],
      [0, false],
    ]);
    const daemon = await fleet.start(config);
    const url = `${daemon.operatorUrl}/api/v1`;
    const headers = {
      authorization: `Bearer ${token.stdout.trim()}`,
      "content-type": "application/json",
    };
    const post = (path: string, body: object) =>
      fetch(`${url}/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    expect((await post("session", { name: "kari", password: PASSWORD })).status).toBe(201);
    expect((await post("users", { name: "ola", role: "viewer", password: PASSWORD })).status).toBe(201);
    await waitFor(async () => (await rows()).length === 5);
    expect((await verb("user remove ola")).code).toBe(0);
    const all = await rows();
    const here = expect.stringMatching(/./);
    const where = { machine: here, folder: expect.stringContaining("login") };
    expect(all[0]).toMatchObject({
      kind: "operator",
      words: expect.stringMatching(/ added the user kari as integrator$/),
      facts: { by: here, added: "user", name: "kari", role: "integrator", ...where },
    });
    expect(all.map(({ words }) => words.replace(/^\S+ (?=added the token)/, "")).toSorted()).toEqual(
      expect.arrayContaining([
        "added the token boss as integrator",
        "added the token wall as viewer",
        "boss added the user ola as viewer",
        "kari signed in",
      ]),
    );
    expect(all.at(-1)?.words).toMatch(/ removed the user ola$/);
    const file = fleet.write("north.yaml", siteFile("north"));
    expect(await verb(`site put ${file}`)).toMatchObject({ code: 0, stderr: "" });
    expect(await verb("site remove north")).toMatchObject({ code: 0, stderr: "" });
    const ofSites = (await rows()).slice(all.length);
    expect(ofSites.map(({ words }) => words.replace(/^\S+ /, ""))).toEqual([
      "stored the site north",
      "removed the site north",
    ]);
    expect(ofSites[0]?.facts).toMatchObject({ by: here, stored: "site", name: "north", ...where });
    expect(JSON.stringify(all)).not.toContain(PASSWORD);
    // The record is no site: no list shows it, and no process leads it once the removed site is let go.
    await waitFor(async () => {
      const { sites, processes }: Shown = JSON.parse(
        await fetch(`${url}/fleet`, { headers }).then((shown) => shown.text()),
      );
      return sites === 0 && processes.length === 1 && processes[0]?.led === 0;
    });
    expect(await daemon.end("SIGTERM")).toBe(0);

    expect((await verb("audit verify")).stdout).toContain("the record is whole: 8 rows");
    await fleet.query("UPDATE audit SET body = replace(body, 'kari', 'nils') WHERE seq = 1");
    const edited = await verb("audit verify");
    expect([edited.code, edited.stderr]).toEqual([
      1,
      expect.stringContaining("the record is broken at row 1"),
    ]);
  });

  test("a change that cannot be stored is made, and its person is warned", async () => {
    const fleet = await aFleet();
    await fleet.verb("token", "add", "one", "--role", "viewer");
    await fleet.query("ALTER TABLE audit RENAME TO away");
    const added = await fleet.verb("token", "add", "two", "--role", "viewer");
    expect([added.code, added.stderr]).toEqual([0, expect.stringContaining("this change is not on record:")]);
    expect((await fleet.verb("token", "list")).stdout).toMatch(/^two /m);
  });
});
