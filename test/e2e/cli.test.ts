import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

import { SITE_KEY } from "../support/aCharger.ts";
import { proofText } from "../support/aProof.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { aSite, anEvent, type Site, startOf } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const STACK = /^\s+at /m;

const verb = (site: Site, name: string, ...args: readonly string[]) =>
  setpointd([...name.split(" "), "-c", site.config, ...args]);

const example = (name: string): string => fileURLToPath(new URL(`../../config/${name}`, import.meta.url));

/** Last line of what a verb complains about. */
const last = async (name: string, file: string): Promise<string | undefined> =>
  (await setpointd([...name.split(" "), "-c", file])).stderr.trimEnd().split("\n").at(-1);

describe("the command line", () => {
  test("each verb's --help lists its options", async () => {
    const verbs = {
      check: ["--config", "--live"],
      run: ["--config"],
      plan: ["--config", "--events", "--at", "--json", "--dispatches"],
      audit: ["--config", "--json", "--event", "--charger", "--since", "--until", "--problems", "verify"],
      status: ["--config", "--json"],
      poll: ["--config"],
      hold: [
        "--config",
        "[target]",
        "--site",
        "--exempt",
        "--level",
        "--until",
        "--reason",
        "--json",
        "list",
        "end",
      ],
      "hold list": ["--config", "--all", "--json"],
      "hold end": ["--config", "<id>", "--reason", "--json"],
      bind: ["--config", "<charger>", "[vehicle]", "--take-back", "--reason", "--json"],
      alarms: ["--config", "--all", "--json", "acknowledge"],
      "alarms acknowledge": ["--config", "<key>", "--note", "--json"],
      explain: ["--config", "--at", "--json", "<target>"],
      "audit verify": ["--config", "--json"],
      backup: ["--config", "<file>"],
      proof: ["--config", "--format", "<event>", "verify"],
      "proof verify": ["--config", "--key", "<file>", "Exit code 0"],
      prices: ["--config", "--json"],
      reports: ["--config", "--json", "show", "resend"],
      "reports show": ["--config", "--json", "<name>"],
      "reports resend": ["--config", "<name>"],
      release: ["--config", "--all", "[charger]"],
      "webhook test": ["--config", "--event"],
      "user add": ["--config", "--role", "<name>"],
      "user list": ["--config", "--json"],
      "user remove": ["--config", "<name>"],
      "token add": ["--config", "--role", "--expires", "<name>"],
      "token list": ["--config", "--json"],
      "token remove": ["--config", "<name>"],
    };
    const helped = Object.entries(verbs).map(async ([name, options]) => {
      const { code, stdout, stderr } = await setpointd([...name.split(" "), "--help"]);
      expect([name, code, stderr]).toEqual([name, 0, ""]);
      for (const option of options) expect(stdout).toContain(option);
      expect([name, /default: (false|"")/.exec(stdout)]).toEqual([name, null]);
    });
    await Promise.all(helped);
    expect((await setpointd(["hold", "list", "--help"])).stdout).not.toContain("--exempt");
    expect((await setpointd(["profile", "list", "--help"])).stdout).toContain("--profiles");
    expect((await setpointd(["user", "add", "--help"])).stdout).toMatch(/--role[^-]*;\s+needed/);
  });

  test("every command that the help and the pages show names the configuration where it needs one", async () => {
    const { stdout } = await setpointd(["--help"]);
    const root = fileURLToPath(new URL("../..", import.meta.url));
    const pages = globSync(["README.md", "docs/*.md"], { cwd: root }).map((page) =>
      readFileSync(join(root, page), "utf8"),
    );
    const blocks = [...pages.join("\n").matchAll(/```sh\n([\s\S]*?)```/g)]
      .map(([, block]) => block)
      .join("\n");
    const NEEDS =
      /setpointd (?:check|run|plan|poll|audit|backup|proof|prices|reports|release|commission|webhook|user|token)\b[^\n&#]*/g;
    const [helped, told] = [stdout.match(NEEDS) ?? [], blocks.match(NEEDS) ?? []];
    expect([helped.length, told.length > 15]).toEqual([14, true]);
    // A partner verifies a proof with the public key alone.
    const missing = [...helped, ...told].filter((line) => !/ -c | --public-key /.test(line));
    expect(missing).toEqual([]);
  });

  test("a configuration that is named without -c is refused with the option to use", async () => {
    for (const [args, verb] of [
      [["check", "site.yaml"], "check"],
      [["run", "site.yaml"], "run"],
      [["site.yaml"], "run"],
    ] as const)
      expect(await setpointd(args)).toEqual({
        code: 2,
        stdout: "",
        stderr: `name the configuration with -c: setpointd ${verb} -c site.yaml\n`,
      });
  });

  test("a mistake in a hold or a binding is explained before anything is asked", async () => {
    const wrong = [
      [["hold"], "hold what?"],
      [["hold", "bay-01"], "either --exempt, or --level"],
      [["hold", "bay-01", "--level", "16"], "a level is 16A"],
      [["hold", "bay-01", "--exempt"], "--until is missing"],
      [["hold", "bay-01", "--exempt", "--until", "05:40"], "--reason is missing"],
      [["bind", "bay-01"], "bind which vehicle to bay-01?"],
      [["bind", "bay-01", "Bus 214", "--take-back", "--reason", "x"], "bind which vehicle to bay-01?"],
      [["bind", "bay-01", "Bus 214"], "--reason is missing"],
    ] as const;
    for (const [args, words] of wrong) {
      const { code, stderr } = await setpointd(args);
      expect([args, code]).toEqual([args, 2]);
      expect(stderr).toContain(words);
    }
  });

  test("a wrong option names the help of its own verb", async () => {
    const wrong = [
      ["status", "--jsn"],
      ["state", "move"],
      ["user", "add", "kari", "--role", "boss"],
    ];
    const hints = await Promise.all(
      wrong.map(async (args) => (await setpointd(args)).stderr.trimEnd().split("\n").at(-1)),
    );
    expect(hints).toEqual([
      "(see setpointd status --help)",
      "(see setpointd state move --help)",
      "(see setpointd user add --help)",
    ]);
  });

  test("a configuration that does not exist is named by the verbs that need only its state", async () => {
    expect((await setpointd(["status", "-c", "absent.yaml"])).stderr).toBe(
      "absent.yaml does not exist: name the configuration that setpointd runs with\n",
    );
    expect((await setpointd(["rollback", "-c", "absent.yaml"])).stderr).toBe(
      "absent.yaml cannot be read: name a configuration that this user may read\n",
    );
  });

  test("an unknown verb or option ends with 2 and one sentence", async () => {
    const wrong = [["frobnicate"], ["check", "--frobnicate"], ["plan"], ["release"], ["audit", "frobnicate"]];
    const refusals = wrong.map(async (args) => {
      const { code, stdout, stderr } = await setpointd(args);
      expect([args, code, stdout]).toEqual([args, 2, ""]);
      expect(stderr).not.toMatch(STACK);
      expect(stderr).not.toBe("");
    });
    await Promise.all(refusals);
  });
});

describe("the environment", () => {
  test("a level that does not exist ends run and the demo with 2, and with those that do", async () => {
    const wrong = ["loud", "warning", "INFO"].map(async (level) => {
      const { code, stdout, stderr } = await setpointd([], { env: { LOG_LEVEL: level } });
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toBe(
        `LOG_LEVEL is "${level}", which is not a level; the levels are trace, debug, info, warn, error, fatal, silent\n`,
      );
    });
    await Promise.all(wrong);
  });

  test("an empty SETPOINTD_CONFIG names no configuration", async () => {
    const { code, stderr } = await setpointd(["audit"], { env: { SETPOINTD_CONFIG: "" } });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^which configuration\?/)]);
  });
});

describe.skipIf(!mosquittoAvailable)("the verbs on a configuration", () => {
  test("check summarises a good configuration, and run and check explain a broken one alike", async () => {
    await using site = await aSite();
    const good = await verb(site, "check");
    expect([good.code, good.stderr]).toEqual([0, ""]);
    expect(good.stdout).toContain("site depot (UTC), chargers: 4, vehicles: 4 (4 with a fixed charger)");

    site.configure({ webhook: {} });
    expect((await verb(site, "check")).stdout).toContain(
      "deliveries as hints only: not signed, they trigger a fetch of the list\n",
    );
    site.configure({
      chargers: [
        { id: "bay-01", current: { min: 6, max: "thirty" } },
        { id: "bay/02", current: { max: 16 } },
      ],
      vehicles: [{ id: "veh-1", charger: "bay-09" }],
      operater: {},
    });
    const explained = ["check", "run", "audit", "plan --events none.json", "release --all"].map(
      async (name) => {
        const { code, stdout, stderr } = await verb(site, name);
        expect([name, code, stdout]).toEqual([name, 2, ""]);
        for (const path of ["chargers[0].current.max", "chargers[1].id", "operater"])
          expect(stderr).toContain(path);
        expect(stderr).toMatch(/found +"thirty" \(text\)\n +expected +\S/);
        expect(stderr).not.toMatch(STACK);
      },
    );
    await Promise.all(explained);
    writeFileSync(site.config, "site: [\n");
    expect((await verb(site, "run")).code).toBe(2);
    const absent = await setpointd(["run", "-c", join(site.directory, "absent.yaml")]);
    expect([absent.code, absent.stdout]).toEqual([2, ""]);
    expect(absent.stderr).toContain("does not exist");
  });

  test("a configuration of another program is named as such, with the command that reads it", async () => {
    await using site = await aSite();
    const [bridge, fleet, ofFleet] = ["ocpp-example.yaml", "example-fleet.yaml", "example-site.yaml"].map(
      example,
    );
    expect(
      await Promise.all([
        last("run", bridge ?? ""),
        last("run", fleet ?? ""),
        last("check", ofFleet ?? ""),
        last("fleet", site.config),
        last("ocpp", site.config),
        last("ocpp status", site.config),
        last("status", bridge ?? ""),
        last("check", bridge ?? ""),
      ]),
    ).toEqual([
      `${bridge} looks like the configuration of the OCPP bridge: setpointd ocpp -c ${bridge}`,
      `${fleet} looks like the configuration of a fleet: setpointd fleet -c ${fleet}`,
      `${ofFleet} looks like the configuration of a site of a fleet: setpointd site check ${ofFleet} -c FLEET.yaml`,
      `${site.config} looks like the configuration of one site: setpointd run -c ${site.config}`,
      `${site.config} looks like the configuration of one site: setpointd run -c ${site.config}`,
      `${site.config} looks like the configuration of one site: setpointd run -c ${site.config}`,
      `${bridge} is the configuration of the OCPP bridge: setpointd ocpp status -c ${bridge} shows its chargers`,
      `2 mistakes in ${bridge}`,
    ]);
  });

  test("audit and release report that no state exists yet, and make none", async () => {
    await using site = await aSite();
    const said = ["audit", "release --all"].map(async (name) => {
      const { code, stdout, stderr } = await verb(site, name);
      expect([name, code, stdout]).toEqual([name, 1, ""]);
      expect(stderr).toBe(`there is no state in ${site.state}: nothing has run there yet\n`);
    });
    await Promise.all(said);
    expect(existsSync(site.state)).toBe(false);
  });

  test("a mistaken target or span ends with 2 and a sentence that names what is right, also without a daemon", async () => {
    await using site = await aSite();
    const hold = ["--exempt", "--until", "events", "--reason", "works"];
    const [explained, bound, held, audited] = await Promise.all([
      verb(site, "explain", "bay-91"),
      verb(site, "bind", "bay-91", "veh-214", "--reason", "works"),
      verb(site, "hold", "bay-91", ...hold),
      verb(site, "audit", "--since", "2026-11-21", "--until", "2026-11-20"),
    ]);
    const strange = await verb(site, "hold", "nothing-like-it", ...hold);
    expect(strange.stderr).toContain(
      "; chargers: bay-01, bay-02, bay-03, bay-04; vehicles: veh-1, veh-2, veh-3, veh-4\n",
    );
    for (const { code, stderr } of [explained, bound, held]) {
      expect(stderr).toMatch(/^there is no charger and no vehicle bay-91; did you mean bay-01\?$/m);
      expect(code).toBe(2);
    }
    expect(audited).toMatchObject({
      code: 2,
      stderr: "--until 2026-11-20 is not after --since 2026-11-21: no moment lies between them\n",
    });
  });

  test("a daemon that cannot be asked ends a verb with 1 and one sentence, and check all the same with 0", async () => {
    await using site = await aSite();
    mkdirSync(site.state, { mode: 0o700 });
    writeFileSync(join(site.state, "site.key"), SITE_KEY, { mode: 0o600 });
    // `backup` asks a daemon only where there is a state.
    writeFileSync(join(site.state, "setpointd.db"), "", { mode: 0o600 });
    const shown = join(site.directory, "proof.json");
    writeFileSync(shown, proofText("json"));
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((up) => server.listen(join(site.state, "control.sock"), up));
    await using _stop = { [Symbol.asyncDispose]: async () => void server.close() };
    const asked = [
      ["audit"],
      ["audit", "verify"],
      ["release", "--all"],
      ["reports", "resend", "EV-1/0/0"],
      ["commission", "bay-01"],
      ["backup", join(site.directory, "copy")],
      ["proof", "verify", shown],
    ].map(async ([name = "", ...args]) => {
      const { code, stdout, stderr } = await verb(site, name, ...args);
      expect([name, code, stdout]).toEqual([name, 1, ""]);
      expect(stderr).toMatch(/^(no backup was made: )?the running daemon cannot be asked: .+\n$/);
    });
    await Promise.all(asked);
    expect(await verb(site, "check")).toMatchObject({ code: 0, stderr: "" });
  });

  test("audit verify --json reports where a record is broken, and ends with 1", async () => {
    await using site = await aSite();
    mkdirSync(site.state, { mode: 0o700 });
    const found = { ok: false, seq: 7, reason: "it was changed" };
    const server = createHttpServer((_request, response) => response.end(JSON.stringify(found)));
    await new Promise<void>((up) => server.listen(join(site.state, "control.sock"), up));
    await using _stop = { [Symbol.asyncDispose]: async () => void server.close() };
    const { code, stdout, stderr } = await verb(site, "audit verify", "--json");
    expect([code, stdout, stderr]).toEqual([1, `${JSON.stringify(found)}\n`, ""]);
  });

  test("a listener that cannot have its address ends run with 1 and the reason", async () => {
    await using site = await aSite();
    site.configure({ operator: { listen: `127.0.0.1:${site.broker.port}` } });
    const { code, stderr } = await verb(site, "run");
    expect(code).toBe(1);
    expect(stderr).toBe(
      `operator.listen: 127.0.0.1:${site.broker.port} is in use by another program: stop that, or choose another port\n`,
    );
  });

  test("audit prints the record with and without a daemon, whole or of one event, and verify finds one changed letter (S8)", async () => {
    await using site = await aSite();
    const soon = new Date(Date.now() + 60 * SECOND).toISOString();
    {
      await using daemon = await site.run();
      await daemon.deliver([
        anEvent("EV-1", { lastsMs: 60 * SECOND }),
        anEvent("EV-2", { lastsMs: 60 * SECOND, vehicles: ["veh-2"] }),
        anEvent("Z\u00fcrich", { startIn: 60 * SECOND, lastsMs: 60 * SECOND, vehicles: ["veh-3"] }),
      ]);
      await waitFor(async () => (await daemon.view<unknown[]>("/api/v1/audit?event=EV-2")).length === 3);
      const people = await verb(site, "audit");
      expect([people.code, people.stderr]).toEqual([0, ""]);
      expect(people.stdout).toContain("bay-01 (veh-1) to 16 A until");
      const verified = await verb(site, "audit verify");
      expect([verified.code, verified.stderr]).toEqual([0, ""]);
      expect(verified.stdout).toMatch(
        /^the record is whole: \d+ rows, head [0-9a-f]{64}\nevents, holds and reports are as they were stored, and so are \d+ messages with readings\n$/,
      );
      const asJson = await verb(site, "audit verify", "--json");
      expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([
        0,
        {
          ok: true,
          rows: expect.any(Number),
          head: expect.stringMatching(/^[0-9a-f]{64}$/),
          readings: expect.any(Number),
          unsigned: 0,
        },
      ]);
      expect((await verb(site, "audit", "--event", "Zu\u0308rich")).stdout).toContain("Z\u00fcrich");
      expect(people.stdout).toMatch(/^times in UTC\n/);
      expect((await verb(site, "audit", "--since", "2020-01-01", "--until", soon)).stdout).toBe(
        people.stdout,
      );
      expect(await verb(site, "audit", "--since", soon)).toEqual({
        code: 0,
        stdout: "",
        stderr: "the record has nothing in that time\n",
      });
      expect((await verb(site, "audit", "--problems")).stderr).toBe("the record has no problem\n");
      expect(await verb(site, "audit", "--since", "yesterday")).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("--since yesterday: a moment is ISO 8601"),
      });
      expect(await daemon.end("SIGTERM")).toBe(0);
    }
    expect((await verb(site, "audit", "--event", "Zu\u0308rich")).stdout).toContain("Z\u00fcrich");
    for (const [code, args, words] of [
      [0, ["--event", "nope"], "the record has nothing of event nope"],
      [0, ["--event", "nope", "--since", soon], "the record has nothing of event nope in that time"],
      [
        2,
        ["--charger", "bay-9"],
        "there is no charger bay-9; the configuration has bay-01, bay-02, bay-03, bay-04",
      ],
      [0, ["--event", "EV-2", "--charger", "bay-04"], "the record has nothing of event EV-2 at bay-04"],
    ] as const)
      expect(await verb(site, "audit", ...args)).toEqual({ code, stdout: "", stderr: `${words}\n` });
    // The record knows a charger that has left the configuration.
    site.configure({ chargers: [{ id: "bay-09", current: { max: 32 } }], vehicles: [] });
    const left = await verb(site, "audit", "--charger", "bay-01");
    expect([left.code, left.stdout]).toEqual([0, expect.stringContaining("bay-01 (veh-1) to 16 A until")]);
    expect(await verb(site, "audit", "--charger", "bay-01", "--since", soon)).toEqual({
      code: 0,
      stdout: "",
      stderr: "the record has nothing of bay-01 in that time\n",
    });
    site.configure();
    const all = await verb(site, "audit", "--json");
    expect([all.code, all.stderr]).toEqual([0, ""]);
    const rows = all.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, index) => index + 1));
    expect(Object.keys(rows[0]).toSorted()).toEqual([
      "at",
      "charger",
      "command",
      "event",
      "facts",
      "hash",
      "kind",
      "seq",
      "vehicle",
      "words",
    ]);
    const one = await verb(site, "audit", "--json", "--event", "EV-2");
    const ofOne = one.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(ofOne).toEqual(rows.filter(({ event }) => event === "EV-2"));
    expect(ofOne.map(({ kind }) => kind)).toEqual(["event", "decision", "outcome"]);
    expect((await verb(site, "audit verify")).code).toBe(0);

    const database = new DatabaseSync(join(site.state, "setpointd.db"));
    const changed = database.prepare(
      "UPDATE audit SET words = replace(words, '16 A', '15 A') WHERE kind = 'decision'",
    );
    expect(changed.run().changes).toBe(2);
    database.close();
    const broken = await verb(site, "audit verify");
    expect([broken.code, broken.stdout]).toEqual([1, ""]);
    expect(broken.stderr).not.toMatch(STACK);
    expect(broken.stderr).toMatch(/^the record is broken at row \d+: /);
    // To look does not change what is looked at: it is still broken.
    const asJson = await verb(site, "audit verify", "--json");
    expect([asJson.code, asJson.stderr]).toEqual([1, ""]);
    expect(JSON.parse(asJson.stdout)).toEqual({
      ok: false,
      seq: expect.any(Number),
      reason: expect.any(String),
    });
  });
});

// Both wait much longer than they work.
describe.skipIf(!mosquittoAvailable)("release by a person", { concurrent: true }, () => {
  test("a charger that an operator released stays free until its event ends, and obeys the next one", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const event = anEvent("EV-1", { lastsMs: 14 * SECOND });
    const later = anEvent("EV-2", { startIn: 15 * SECOND, lastsMs: 60 * SECOND, amperes: 10 });
    await daemon.deliver([event, later, anEvent("EV-3", { lastsMs: 60 * SECOND, vehicles: ["veh-2"] })]);
    await site.floor.nth("bay-01", 1);
    const freed = await verb(site, "release", "VEH-1");
    expect(freed).toMatchObject({ code: 0, stderr: "" });
    expect(freed.stdout).toMatch(
      /^freed bay-01 \(veh-1\) from 16 A until \d\d:\d\d:\d\d, event EV-1; a new event limits it again\n$/,
    );
    expect((await site.floor.nth("bay-01", 2)).set).toMatchObject({
      kind: "release",
      until: null,
      event: "EV-1",
    });
    // Neither a duplicate nor the charger's return takes it back.
    expect((await daemon.deliver(event)).json).toMatchObject({ repeats: 1 });
    await site.floor.publish("setpointd/depot/chargers/bay-01/online", "true");
    await waitFor(() => site.floor.told("bay-01").includes("10 A EV-2"), { timeoutMs: 25_000 });
    expect(
      site.floor
        .told("bay-01")
        .slice(1, -1)
        .every((told) => told === "release EV-1"),
    ).toBe(true);
    expect(site.floor.sets("bay-01").at(-1)?.at).toBeGreaterThanOrEqual(startOf(later));

    expect(site.floor.told("bay-02")).toEqual(["16 A EV-3"]);
    const rest = await verb(site, "release", "--all");
    expect(rest.code).toBe(0);
    expect(rest.stdout).toMatch(/^freed bay-01 .*EV-2; bay-02 .*EV-3; a new event limits them again\n$/);
    await waitFor(() => site.floor.told("bay-02").at(-1) === "release EV-3");
    expect((await verb(site, "release", "--all")).stdout).toBe("nothing was limited\n");
    expect((await verb(site, "release", "bay-99")).code).toBe(2);
    const record = await verb(site, "audit", "--charger", "bay-01");
    expect(record.stdout).toContain("bay-01 freed by an operator until");
  });

  test("check names a charger that left the configuration while it was limited, with and without a daemon", async () => {
    await using site = await aSite();
    const orphan =
      "bay-01 is not in this configuration, but is limited to 16 A: put it back, release it, then remove it\n";
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await site.floor.nth("bay-01", 1);
    expect((await verb(site, "check")).stderr).toBe("");
    site.configure({
      chargers: [{ id: "bay-02", current: { max: 32 } }],
      vehicles: [{ id: "veh-2", charger: "bay-02" }],
    });
    const gone = await verb(site, "audit", "--charger", "bay-01");
    expect([gone.stderr, gone.stdout]).toEqual(["", expect.stringContaining("bay-01 (veh-1) to 16 A")]);
    expect(await verb(site, "check")).toMatchObject({ code: 0, stderr: orphan });
    await daemon.end("SIGKILL");
    expect(await verb(site, "check")).toMatchObject({ code: 0, stderr: orphan });
  });

  test("check, backup and bundle leave a stopped state of an earlier version as it is, so that one can go on", async () => {
    await using site = await aSite();
    await site.start().then((daemon) => daemon.end("SIGTERM"));
    const onStored = <T>(use: (database: DatabaseSync) => T): T => {
      using database = new DatabaseSync(join(site.state, "setpointd.db"));
      return use(database);
    };
    // The table of the last migration: without it the state is that of the version before.
    const earlier = MIGRATIONS.length - 1;
    onStored((database) =>
      database.exec(
        `DROP TABLE binding; UPDATE meta SET value = '${earlier}' WHERE name = 'schema'; PRAGMA user_version = ${earlier}`,
      ),
    );
    const found = [
      await verb(site, "check"),
      await verb(site, "backup", join(site.directory, "copy.db")),
      await verb(site, "bundle", join(site.directory, "bundle.tar.gz")),
    ];
    expect(found).toMatchObject([
      { code: 0, stderr: "" },
      { code: 1, stderr: expect.stringContaining("was written by an older setpointd") },
      { code: 0 },
    ]);
    expect(onStored((database) => database.prepare("PRAGMA user_version").get())).toEqual({
      user_version: earlier,
    });
    await using daemon = await site.start();
    expect((await daemon.get("/readyz")).status).toBe(200);
  });

  test("without a daemon release frees by itself, and a daemon started later leaves the charger free", async () => {
    await using site = await aSite();
    const event = site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    {
      await using daemon = await site.run();
      await daemon.deliver([event, anEvent("EV-2", { lastsMs: 60 * SECOND, vehicles: ["veh-2"] })]);
      await site.floor.nth("bay-01", 1);
      await site.floor.nth("bay-02", 1);
      await daemon.end("SIGKILL");
    }
    const released = await verb(site, "release", "bay-01");
    expect(released).toMatchObject({ code: 0, stderr: "" });
    expect(released.stdout).toMatch(/^freed bay-01\b/);
    expect(site.floor.told("bay-01").at(-1)).toBe("release EV-1");
    const [limited] = site.floor.sets("bay-01");
    const release = site.floor.sets("bay-01").at(-1);
    expect(release?.set.epoch).toBeGreaterThan(limited?.set.epoch ?? 0);
    const before = site.floor.commands.length;
    await using daemon = await site.run();
    // The other one is said again, so the first look and the broker's welcome are over.
    await waitFor(() => site.floor.commands.slice(before).some(({ text }) => text.includes("EV-2")));
    await waitFor(() => site.partner.faults.requests.list > 1);
    expect((await daemon.deliver(event)).json).toMatchObject({ repeats: 1 });
    expect(
      site.floor.commands
        .slice(before)
        .filter(({ text }) => text.includes('"value":16,') && text.includes("EV-1")),
    ).toEqual([]);

    await daemon.end("SIGKILL");
    await site.broker.kill();
    const unreachable = await verb(site, "release", "bay-02");
    expect([unreachable.code, unreachable.stdout]).toEqual([1, ""]);
    expect(unreachable.stderr).toMatch(
      /^the broker 127\.0\.0\.1:\d+ cannot be reached \(.*ECONNREFUSED.*\); nothing was released$/m,
    );
  });
});

describe.skipIf(!mosquittoAvailable)("release by a person without a daemon", () => {
  test("chargers are released without a command, and unreachable ones are named", async () => {
    await using site = await aSite();
    const having = (chargers: readonly number[], vehicles: readonly number[]): void =>
      site.configure({
        chargers: chargers.map((number) => ({ id: `bay-0${number}`, current: { max: 32 } })),
        vehicles: vehicles.map((number) => ({ id: `veh-${number}`, charger: `bay-0${number}` })),
      });
    having([1, 2, 3], [2, 3]);
    site.partner.put(anEvent("EV-1", { lastsMs: 120 * SECOND, vehicles: ["veh-1", "veh-2", "veh-3"] }));
    {
      await using daemon = await site.run();
      await site.floor.nth("bay-02", 1);
      await site.floor.nth("bay-03", 1);
      await daemon.end("SIGKILL");
    }
    having([1, 3, 4], [1, 3, 4]);
    const released = await verb(site, "release", "bay-01");
    expect(released).toMatchObject({ code: 0, stderr: "" });
    expect(released.stdout).toMatch(/^freed bay-01\b/);
    const all = await verb(site, "release", "--all");
    expect([all.code, all.stdout]).toEqual([1, ""]);
    expect(all.stderr).toContain("except what is not in this configuration: bay-02");
    expect(site.floor.told("bay-02")).toEqual(["16 A EV-1"]);
    expect(site.floor.told("bay-03")).toEqual(["16 A EV-1", "release EV-1"]);

    site.partner.put(anEvent("EV-4", { lastsMs: 120 * SECOND, vehicles: ["veh-4"] }));
    await using daemon = await site.run();
    await site.floor.nth("bay-04", 1);
    expect((await verb(site, "release", "--all")).stderr).toContain(
      "except what is not in this configuration: bay-02",
    );
    expect([site.floor.told("bay-01"), daemon.errors]).toEqual([[], ""]);
  });
});
