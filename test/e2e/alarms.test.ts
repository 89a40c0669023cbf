import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";

import { aSite, anEvent, type Site, WEBHOOK_SECRET } from "../support/aSite.ts";
import { Gate } from "../support/aGate.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import type { Daemon } from "../support/aDaemon.ts";
import { waitFor } from "../support/waitFor.ts";
import { aServer, json } from "../vtn/aServer.ts";

interface Shown {
  readonly key: string;
  readonly state: string;
  readonly since: string;
  readonly lastSeen: string;
  readonly severity: string;
  readonly clearedAt: string | null;
  readonly acknowledged: { readonly by: string; readonly note: string } | null;
}

/** Body of a notice. */
interface Sent {
  readonly alarms: readonly (Shown & { readonly change: string })[];
}

const LONG = { timeoutMs: 30_000 };

const list = (daemon: Daemon): Promise<readonly Shown[]> => daemon.view<Shown[]>("/api/v1/alarms");
const find = async (daemon: Daemon, key: string): Promise<Shown | undefined> =>
  (await list(daemon)).find((alarm) => alarm.key === key);
const verb = (site: Site, ...args: readonly string[]) => setpointd(["alarms", "-c", site.config, ...args]);

/** An event whose start cannot be read. */
const unreadable = (id: string) => ({
  ...anEvent(id, { lastsMs: 60_000 }),
  intervalPeriod: { start: "soon", duration: "PT1H" },
});

describe.skipIf(!mosquittoAvailable)("alarms of a running site", () => {
  test("a broker outage is one alarm to its end, over kill -9, with who acknowledged it; a webhook receives it once it answers", async () => {
    await using site = await aSite();
    await using gate = await Gate.before(site.broker.port);
    await using hook = await aServer(json({}, 503));
    site.configure({
      mqtt: { url: `mqtt://127.0.0.1:${gate.port}` },
      alarms: { notify: [{ webhook: { url: hook.origin, secret: { file: "webhook-secret" } } }] },
    });
    await gate.open();
    let began: string;
    {
      await using daemon = await site.run();
      expect(await find(daemon, "broker")).toBeUndefined();
      await gate.shut();
      await waitFor(async () => (await find(daemon, "broker")) !== undefined, LONG);
      const opened = await find(daemon, "broker");
      expect(opened).toMatchObject({ state: "open", severity: "critical", clearedAt: null });
      began = opened?.since ?? "";
      const shown = await verb(site);
      expect(shown.stdout).toMatch(
        /^critical broker \(open, since \d\d:\d\d:\d\d\): .*\n  do: check that the broker runs/m,
      );
      expect((await daemon.get("/metrics")).text).toContain(
        'setpointd_alarms_open{kind="broker",severity="critical"} 1',
      );
      const shift = (await setpointd(["handover", "-c", site.config])).stdout;
      expect(shift).toMatch(/^ {2}critical broker \(open, .*\n {4}do: check that the broker runs/m);
      expect(shift).toMatch(/^unreachable:\n {2}since .*\n {4}do: check that the broker runs/m);
      expect(shift).toMatch(/^mode changes: none$/m);
      expect(shift).not.toContain("mode: mode");
      const note = "an electrician is on the way";
      const done = await verb(site, "acknowledge", "broker", "--json", "--note", note);
      expect(done).toMatchObject({ code: 0, stderr: "" });
      expect(JSON.parse(done.stdout)).toMatchObject({ key: "broker", acknowledged: { note } });
      expect(await verb(site, "acknowledge", "broker")).toMatchObject({ code: 1, stdout: "" });
      const rows = await daemon.view<{ words: string }[]>("/api/v1/audit?newest=true&limit=50");
      expect(rows.some(({ words }) => words.includes("acknowledged the alarm broker"))).toBe(true);
      await waitFor(() => hook.seen.length > 0, LONG);
      expect(await daemon.view("/api/v1/status")).toMatchObject({
        problems: expect.arrayContaining([
          expect.objectContaining({ kind: "notify", message: expect.stringContaining("HTTP 503") }),
        ]),
      });
      const { host } = new URL(hook.origin);
      expect((await daemon.get("/metrics")).text).toContain(
        `setpointd_notifications_waiting{receiver="webhook ${host}"} 1`,
      );
      await daemon.end("SIGKILL");
    }
    hook.answer = json({});
    const refused = hook.seen.length;
    const notified = () => hook.seen.slice(refused).flatMap(({ body }) => (JSON.parse(body) as Sent).alarms);
    const restarted = new Date().toISOString();
    await using daemon = await site.start();
    const acknowledged = { note: "an electrician is on the way" };
    expect(await find(daemon, "broker")).toMatchObject({ state: "acknowledged", since: began, acknowledged });
    await waitFor(async () => ((await find(daemon, "broker"))?.lastSeen ?? "") > restarted, LONG);
    await waitFor(() => notified().length > 0, LONG);
    await gate.open();
    await waitFor(async () => (await find(daemon, "broker"))?.state === "cleared", LONG);
    await waitFor(() => notified().length > 1, LONG);
    expect(notified()).toMatchObject([
      { change: "acknowledged", key: "broker", since: began, acknowledged },
      { change: "cleared", key: "broker", since: began },
    ]);
    for (const { headers, body } of hook.seen)
      expect(headers["x-payload-signature"]).toBe(
        createHmac("sha256", WEBHOOK_SECRET).update(body).digest("base64"),
      );
    expect(await find(daemon, "broker")).toMatchObject({ since: began, acknowledged });
    expect((await verb(site)).stdout).not.toContain("critical broker");
    expect((await verb(site, "--all")).stdout).toContain("critical broker (cleared, since");
  });

  test("the alarm of a charger goes on through an outage of its broker, and counts once", async () => {
    await using site = await aSite();
    await using gate = await Gate.before(site.broker.port);
    site.configure({ mqtt: { url: `mqtt://127.0.0.1:${gate.port}` } });
    await gate.open();
    await using daemon = await site.run();
    await site.floor.publish("setpointd/depot/chargers/bay-02/online", "false", true);
    const offline = () => find(daemon, "offline:bay-02");
    await waitFor(async () => (await offline())?.state === "open", LONG);
    await gate.shut();
    await waitFor(async () => (await find(daemon, "broker"))?.state === "open", LONG);
    expect(await offline()).toMatchObject({ state: "open", goneSince: null });
    const before = (await offline())?.lastSeen ?? "";
    await gate.open();
    await waitFor(async () => (await find(daemon, "broker"))?.state === "cleared", LONG);
    await waitFor(async () => ((await offline())?.lastSeen ?? "") > before, LONG);
    expect(await offline()).toMatchObject({ state: "open", count: 1 });
  });

  test("an alarm is retained on its topic while it lasts; rejected input is an alarm until it is accepted", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const online = (text: string) => site.floor.publish("setpointd/depot/chargers/bay-02/online", text);
    const stop = new AbortController();
    const stream = await fetch(`${daemon.operatorUrl}/api/v1/stream`, { signal: stop.signal });
    const topic = () => site.floor.on("/alarms/offline:bay-02").map(({ text }) => text);
    await online("false");
    await waitFor(() => topic().length === 1, LONG);
    const [published = ""] = topic();
    const { lastSeen, ...shown } = (await find(daemon, "offline:bay-02")) ?? {};
    expect(JSON.parse(published)).toMatchObject({
      ...shown,
      state: "open",
      message: "bay-02 is offline: no setpoint reaches it until it is back",
    });
    expect(Date.parse(lastSeen ?? "")).toBeGreaterThanOrEqual(Date.parse(JSON.parse(published).lastSeen));
    let received = "";
    for await (const chunk of stream.body ?? []) {
      received += Buffer.from(chunk).toString();
      if (/event: alarm\ndata: {"key":"offline:bay-02",.*\n\n/.test(received)) break;
    }
    stop.abort();
    await online("true");
    await waitFor(() => topic().length === 2, LONG);
    expect(topic()[1]).toBe("");
    for (let n = 0; n < 3; n += 1)
      await site.floor.publish("setpointd/depot/chargers/bay-03/telemetry", "not JSON");
    await daemon.deliver(unreadable("EV-BAD"));
    await waitFor(async () => (await find(daemon, "rejected:EV-BAD"))?.state === "open", LONG);
    expect(await find(daemon, "rejected:EV-BAD")).toMatchObject({
      message: expect.stringMatching(/^event EV-BAD in a webhook was set aside: /),
    });
    await waitFor(async () => (await find(daemon, "discarded:bay-03"))?.state === "open", LONG);
    await daemon.deliver(anEvent("EV-BAD", { lastsMs: 60_000 }));
    await waitFor(async () => (await find(daemon, "rejected:EV-BAD"))?.state === "cleared", LONG);
  });

  test("rejected input is still an alarm after kill -9, until it is accepted", async () => {
    await using site = await aSite();
    await using killed = await site.run();
    await killed.deliver(unreadable("EV-OLD"));
    await waitFor(async () => (await find(killed, "rejected:EV-OLD"))?.state === "open", LONG);
    await killed.end("SIGKILL");
    await using daemon = await site.run();
    await daemon.deliver(unreadable("EV-NEW"));
    await waitFor(async () => (await find(daemon, "rejected:EV-NEW"))?.state === "open", LONG);
    expect(await find(daemon, "rejected:EV-OLD")).toMatchObject({ state: "open", count: 1 });
    await daemon.deliver(anEvent("EV-OLD", { lastsMs: 60_000 }));
    await waitFor(async () => (await find(daemon, "rejected:EV-OLD"))?.state === "cleared", LONG);
  });
});
