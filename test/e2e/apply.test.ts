import { createServer } from "node:net";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";

import { ask, type Daemon } from "../support/aDaemon.ts";
import { aSite, anEvent, type Site } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

interface Configuration {
  readonly fingerprint: string;
  readonly state: string;
  readonly changes: readonly object[];
  readonly running: { readonly fingerprint: string; readonly because: string; readonly sentence: string };
  readonly kept: readonly { readonly fingerprint: string; readonly paths: readonly string[] }[];
  readonly interrupts: readonly { readonly kind: string; readonly subject: string }[];
  readonly last: { readonly result: string; readonly failure: string | null; readonly tookMs: number } | null;
}

const shown = (daemon: Daemon): Promise<Configuration> => daemon.view("/api/v1/configuration");

const send = (daemon: Daemon, what: "apply" | "rollback", body: object) =>
  ask(`${daemon.operatorUrl}/api/v1/configuration/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ reason: "second panel", ...body }),
  });

/** The result of a change that was accepted. The daemon has another port afterwards. */
const ended = (daemon: Daemon): Promise<Configuration> =>
  waitFor(async () => {
    const found = await shown(daemon).catch(() => null);
    return found?.last != null && found.last.result !== "underWay" ? found : undefined;
  });

const wordsOf = async (daemon: Daemon): Promise<readonly string[]> =>
  (await daemon.view<{ words: string }[]>("/api/v1/audit")).map(({ words }) => words);

const problems = async (daemon: Daemon): Promise<readonly object[]> =>
  (await daemon.view<{ problems: object[] }>("/api/v1/status")).problems;

/** The chargers of the site, all at most so many amperes. */
const upTo = (max: number) => ({
  chargers: [1, 2, 3, 4].map((number) => ({ id: `bay-0${number}`, current: { min: 6, max } })),
});

/** An address that is taken until the test is over. */
async function takenAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise((resolve) => server.close(() => resolve())));
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

const HELD = anEvent("EV-1", { lastsMs: 600_000 });

/** A daemon whose event has 16 A on bay-01. */
async function driven(site: Site): Promise<Daemon> {
  const daemon = await site.run();
  await daemon.deliver(site.partner.put(HELD));
  await waitFor(() => site.floor.told("bay-01").includes("16 A EV-1"));
  return daemon;
}

describe.skipIf(!mosquittoAvailable)("the configuration is changed while the daemon runs", () => {
  test("a changed file is applied by force during an event: the charger is driven before and after, with the new limit", async () => {
    await using site = await aSite();
    await using daemon = await driven(site);
    const before = await shown(daemon);
    expect(before).toMatchObject({ state: "same", running: { because: "file" }, last: null });

    site.configure(upTo(10));
    const preview = await shown(daemon);
    expect(preview).toMatchObject({
      state: "differs",
      changes: [1, 2, 3, 4].map((number) => ({
        path: `chargers.bay-0${number}.current.max`,
        change: "changed",
      })),
      interrupts: [{ kind: "event", subject: "EV-1" }],
    });
    const refused = await send(daemon, "apply", { fingerprint: preview.fingerprint });
    expect(refused).toMatchObject({
      status: 409,
      json: { errors: [{ path: "force", found: "EV-1" }] },
    });
    expect(await send(daemon, "apply", { fingerprint: before.fingerprint, force: true })).toMatchObject({
      status: 409,
      json: { errors: [{ path: "fingerprint", expected: preview.fingerprint }] },
    });
    expect(await send(daemon, "apply", { force: "yes", color: 1 })).toMatchObject({ status: 400 });
    expect(site.floor.told("bay-01")).toEqual(["16 A EV-1"]);

    const accepted = await send(daemon, "apply", { fingerprint: preview.fingerprint, force: true });
    expect(accepted).toMatchObject({
      status: 202,
      json: { fingerprint: preview.fingerprint, from: before.fingerprint },
    });
    const after = await ended(daemon);
    expect(after).toMatchObject({
      state: "same",
      running: { fingerprint: preview.fingerprint, by: "loopback", reason: "second panel", because: "file" },
      last: { kind: "apply", result: "running", failure: null },
    });
    expect(after.last?.tookMs).toBeGreaterThan(0);
    await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1");
    expect(after.kept.map(({ fingerprint }) => fingerprint)).toEqual([
      preview.fingerprint,
      before.fingerprint,
    ]);
    expect(await wordsOf(daemon)).toEqual(
      expect.arrayContaining([
        `loopback applies the configuration file ${preview.fingerprint} in place of ${before.fingerprint}: second panel`,
        expect.stringMatching(
          `^configuration ${preview.fingerprint} runs in place of ${before.fingerprint}, as loopback asked; chargers were without control for \\d+\\.\\d s$`,
        ),
      ]),
    );
    expect(statSync(join(site.state, "configurations.json")).mode & 0o777).toBe(0o600);
    expect(await send(daemon, "apply", {})).toMatchObject({
      status: 409,
      json: { title: "nothing was changed: this configuration runs already" },
    });
  });

  test("what cannot be applied changes nothing, and says why: mistakes with their places, another state folder, a file that is gone", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    site.configure({ site: { id: "depot", timezone: "Mars/Olympus" } });
    expect(await send(daemon, "apply", { force: true })).toMatchObject({
      status: 409,
      json: {
        title: "nothing was changed: the configuration has mistakes",
        errors: [{ path: "site.timezone (line 3)", found: '"Mars/Olympus" (text)' }],
      },
    });
    site.configure({ state: "./elsewhere" });
    expect(await shown(daemon)).toMatchObject({ needsRestart: ["state"] });
    expect(await send(daemon, "apply", { force: true })).toMatchObject({
      status: 409,
      json: { errors: [{ path: "state" }] },
    });
    rmSync(site.config);
    expect(await send(daemon, "apply", {})).toMatchObject({ status: 409 });
    const { running } = await shown(daemon);
    expect(running.sentence).toContain("the file cannot be read, so a restart would fail");
    expect(await send(daemon, "rollback", { fingerprint: running.fingerprint })).toMatchObject({
      status: 409,
    });
    site.configure();
    expect(await send(daemon, "rollback", { fingerprint: "000000000000" })).toMatchObject({
      status: 409,
      json: { errors: [{ expected: `one of ${running.fingerprint}` }] },
    });
    expect(daemon.lines.filter(({ msg }) => msg === "setpointd is up")).toHaveLength(1);
  });

  test("a configuration that cannot start falls back by itself, is a problem while its file is there, and a restart does not try it again", async () => {
    await using site = await aSite();
    await using daemon = await driven(site);
    const before = await shown(daemon);
    const listen = await takenAddress();
    site.configure({ ...upTo(10), operator: { listen } });
    const said = await setpointd(["apply", "--force", "--reason", "a new port", "-c", site.config]);
    expect(said.code).toBe(1);
    expect(said.stderr).toContain(`operator.listen: ${listen} is in use by another program`);
    expect(said.stderr).toContain(`configuration ${before.fingerprint} runs again`);

    const fault = { kind: "configuration", message: expect.stringContaining(`${listen} is in use`) };
    await waitFor(async () => (await problems(daemon)).length > 0);
    expect(await problems(daemon)).toEqual([expect.objectContaining(fault)]);
    expect(await shown(daemon)).toMatchObject({
      state: "differs",
      running: { fingerprint: before.fingerprint, because: "fallback" },
      last: { result: "fellBack" },
    });
    expect(await wordsOf(daemon)).toContainEqual(
      expect.stringMatching(
        `^configuration \\w+ did not start, so ${before.fingerprint} runs again: operator`,
      ),
    );
    // The charger is commanded again, as before.
    await waitFor(() => site.floor.told("bay-01").length > 1);
    expect(new Set(site.floor.told("bay-01"))).toEqual(new Set(["16 A EV-1"]));

    await daemon.end("SIGKILL");
    await using again = await site.run();
    expect(await shown(again)).toMatchObject({
      running: {
        fingerprint: before.fingerprint,
        sentence: expect.stringContaining("a restart keeps"),
      },
    });
    // Another file ends it.
    site.configure(upTo(10));
    expect(await problems(again)).toEqual([]);
    await again.end("SIGTERM");
    await using corrected = await site.run();
    expect(await shown(corrected)).toMatchObject({ state: "same", running: { because: "file" } });
    await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1");
  });

  test("a changed configuration with an address that this machine lacks gives way to the one before", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const before = await shown(daemon);
    const listen = "192.0.2.1:8080";
    const auth = { hmac: { secret: { file: "webhook-secret" } } };
    const operator = { listen, access: "login", trustProxy: ["127.0.0.1"] };
    for (const [key, over] of Object.entries({
      webhook: { webhook: { listen, auth } },
      operator: { operator },
    })) {
      site.configure(over);
      const said = await setpointd(["apply", "--reason", "a new address", "-c", site.config]);
      expect(said.stderr).toContain(`${key}.listen: ${listen} is no address of this machine`);
      expect(said.code).toBe(1);
      expect(await shown(daemon)).toMatchObject({ running: { fingerprint: before.fingerprint } });
    }
  });

  test("a rollback stays in force over kill -9 and restarts, until the file changes or is applied", async () => {
    await using site = await aSite();
    await using first = await site.run();
    const { fingerprint: good } = await shown(first);
    site.configure(upTo(10));
    expect((await send(first, "apply", {})).status).toBe(202);
    const { fingerprint: wrong } = await ended(first);
    await first.deliver(site.partner.put(anEvent("EV-1", { lastsMs: 600_000 })));
    await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1");

    const back = await setpointd(["rollback", good, "--force", "--reason", "too low", "-c", site.config]);
    expect(back).toMatchObject({ code: 0, stderr: "" });
    expect(back.stdout).toMatch(new RegExp(`runs since \\d\\d:\\d\\d:\\d\\d with configuration ${good}`));
    await waitFor(() => site.floor.told("bay-01").at(-1) === "16 A EV-1");
    await first.end("SIGKILL");

    await using second = await site.run();
    expect(second.line("another configuration than the file is in force")).toMatchObject({
      configuration: good,
      file: wrong,
    });
    expect(await shown(second)).toMatchObject({
      state: "differs",
      running: { fingerprint: good, because: "rollback", reason: "too low" },
    });
    const status = await setpointd(["status", "-c", site.config]);
    expect(status.stdout).toMatch(
      new RegExp(
        `configuration ${good} runs since \\S+: \\w+ went back to it; the file differs, and a restart keeps ${good} until the file changes or is applied`,
      ),
    );
    await waitFor(() => site.floor.told("bay-01").length >= 3);
    expect(site.floor.told("bay-01").at(-1)).toBe("16 A EV-1");

    // The text of it, for the file. Then both are the same, and nothing holds any more.
    const listed = await setpointd(["rollback", "-c", site.config]);
    expect(listed.stdout).toContain(`  ${wrong}  `);
    const printed = await setpointd(["rollback", good, "--print", "-c", site.config]);
    expect((await setpointd(["apply", "--force", "--reason", "after all", "-c", site.config])).code).toBe(0);
    await waitFor(() => site.floor.told("bay-01").at(-1) === "10 A EV-1");
    writeFileSync(site.config, printed.stdout);
    await second.end("SIGTERM");
    await using third = await site.run();
    expect(await shown(third)).toMatchObject({
      state: "same",
      running: { fingerprint: good, because: "file" },
    });
  });

  test.each([
    ["once: the changed configuration runs", 1, "running"],
    ["each time: the one before runs again", 9, "fellBack"],
  ] as const)(
    "a bug while the changed configuration starts costs no supervisor: the process replaces itself; %s",
    async (_how, most, result) => {
      await using site = await aSite();
      const plant = join(site.directory, "plant.mjs");
      // Throws where nothing catches it, while a start with the changed configuration is tried.
      writeFileSync(
        plant,
        `import { readFileSync } from "node:fs";
         setInterval(() => {
           let change = null;
           try { ({ change } = JSON.parse(readFileSync(${JSON.stringify(join(site.state, "configurations.json"))}, "utf8"))); } catch {}
           if (change?.tries > 0 && change.tries <= ${most}) throw new Error("planted");
         }, 1).unref();`,
      );
      await using daemon = await site.run({ NODE_OPTIONS: `--import=${plant}` });
      const old = (await shown(daemon)).fingerprint;
      site.configure(upTo(10));
      const fresh = (await shown(daemon)).fingerprint;
      expect((await send(daemon, "apply", {})).status).toBe(202);
      const after = await ended(daemon);
      expect(after).toMatchObject({
        running: { fingerprint: result === "running" ? fresh : old },
        last: { result },
      });
      const replaced = daemon.lines.filter(({ msg }) => msg.startsWith("this process replaces itself"));
      expect(replaced).toHaveLength(result === "running" ? 1 : 2);
      expect(daemon.lines.filter(({ msg }) => msg.includes("a bug ends this process"))).toEqual([]);
      expect(await daemon.end("SIGTERM")).toBe(0);
    },
  );

  test("people stay signed in, and only an integrator may change the configuration", async () => {
    await using site = await aSite({ over: { operator: { listen: "127.0.0.1:0", access: "login" } } });
    await using daemon = await site.start();
    const cookies: string[] = [];
    for (const [name, role] of [
      ["kari", "integrator"],
      ["ola", "operator"],
    ]) {
      const add = ["user", "add", name ?? "", "--role", role ?? "", "-c", site.config];
      expect(await setpointd(add, { input: "a long password\n" })).toMatchObject({ code: 0 });
      const signedIn = await fetch(`${daemon.operatorUrl}/api/v1/session`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name, password: "a long password" }),
      });
      cookies.push(signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? "");
    }
    const [kari = "", ola = ""] = cookies;
    site.configure(upTo(10));
    const apply = (cookie: string) =>
      ask(`${daemon.operatorUrl}/api/v1/configuration/apply`, {
        method: "POST",
        headers: { "content-type": "application/json", cookie },
        body: JSON.stringify({ reason: "second panel" }),
      });
    expect((await apply(ola)).status).toBe(403);
    expect((await apply(kari)).status).toBe(202);
    const result = await waitFor(async () => {
      const url = `${daemon.operatorUrl}/api/v1/configuration`;
      const found = await fetch(url, { headers: { cookie: kari } }).catch(() => null);
      const shownTo = found === null ? null : ((await found.json()) as Configuration);
      return shownTo?.last?.result === "running" ? shownTo : undefined;
    });
    expect(result).toMatchObject({ running: { by: "kari" } });
    expect(daemon.lines.filter(({ msg }) => msg === "setpointd is up")).toHaveLength(2);
  });

  test.each([
    ["is accepted", (daemon: Daemon) => daemon.line("the configuration is changed") ?? true, 0],
    ["stops", (daemon: Daemon) => daemon.line("the configuration is changed"), 0],
    ["starts", (daemon: Daemon) => daemon.lines.filter(({ msg }) => msg === "setpointd is up")[1], 0],
    ["ends twice while it starts", (daemon: Daemon) => daemon.line("the configuration is changed"), 2],
  ] as const)(
    "kill -9 when the change %s leaves a daemon that starts, with one of both",
    async (_when, at, tries) => {
      await using site = await aSite();
      await using daemon = await site.run();
      const old = (await shown(daemon)).fingerprint;
      site.configure(upTo(10));
      const fresh = (await shown(daemon)).fingerprint;
      expect((await send(daemon, "apply", {})).status).toBe(202);
      await waitFor(() => at(daemon) !== undefined, { everyMs: 1 });
      await daemon.end("SIGKILL");
      const path = join(site.state, "configurations.json");
      const kept = JSON.parse(readFileSync(path, "utf8")) as { change: { tries: number } | null };
      // As if the process had ended as often during the start.
      if (tries > 0 && kept.change !== null) kept.change.tries = tries;
      if (tries > 0) writeFileSync(path, JSON.stringify(kept));
      await using again = await site.run();
      const { fingerprint } = (await ended(again)).running;
      expect([old, fresh]).toContain(fingerprint);
      const settled = await shown(again);
      expect(settled.last?.result).toBe(fingerprint === fresh ? "running" : "fellBack");
      await again.end("SIGKILL");
      await using third = await site.run();
      expect((await shown(third)).running.fingerprint).toBe(fingerprint);
    },
  );
});
