import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { DriverPorts } from "../../src/chargers/driver.ts";
import type { Params } from "../../src/chargers/profile/instance.ts";
import { ProfileDriver } from "../../src/chargers/profileDriver.ts";
import { type Command, commandId, type Sent } from "../../src/domain/command.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { ChargerMessage, Telemetry } from "../../src/domain/telemetry.ts";
import { amperes, chargerId, instant, minutes, seconds, watts } from "../../src/domain/units.ts";
import { boundTo } from "./profile/aTrial.ts";

const A = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });
const PAUSE: Desired = { kind: "pause" };
const RELEASE: Desired = { kind: "release" };
const BAY = chargerId("bay-01");

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 21) }));
afterEach(() => void vi.useRealTimers());

const now = () => instant(Date.now());

/** As go-e lists what it measures. */
const nrg = (drawn: number) => [230, 230, 230, 0, drawn, drawn, drawn, 0, 0, 0, 0, drawn * 690, 0, 0, 0, 0];

function aLine(profile: string, params: Params, publish?: DriverPorts["publish"]) {
  const published: string[] = [];
  const messages: ChargerMessage[] = [];
  let seq = 0;
  const line = new ProfileDriver(BAY, boundTo(profile, params), {
    now,
    publish:
      publish ??
      (async (topic, payload, { retain }) => {
        published.push(`${topic.split("/").slice(-2).join("/")} ${payload}${retain ? " retained" : ""}`);
        return { ok: true };
      }),
    emit: (message) => messages.push(message),
  });
  const command = (desired: Desired): Command => ({
    charger: BAY,
    epoch: 1,
    seq,
    desired,
    until: null,
    vehicle: null,
    event: null,
    cause: "event",
    decidedAt: now(),
  });
  return {
    line,
    published,
    messages,
    /** A new command; answers what was published for it. */
    async told(desired: Desired, before: Desired | null = null): Promise<readonly string[]> {
      seq += 1;
      return this.again(desired, before);
    },
    async again(
      desired: Desired,
      before: Desired | null = null,
      isDoubted = false,
    ): Promise<readonly string[]> {
      const from = published.length;
      expect(await line.send(command(desired), seconds(180), before, isDoubted)).toMatchObject({ ok: true });
      return published.slice(from);
    },
    hears(topic: string, payload: unknown, retained = false): void {
      const text = typeof payload === "string" ? payload : JSON.stringify(payload);
      line.handleMessage(topic, Buffer.from(text), retained);
    },
    acks: () =>
      messages.flatMap((message) =>
        message.kind === "ack"
          ? [`${message.accepted} ${message.reason}`]
          : message.kind === "unconfirmed"
            ? [`${message.hasReported ? "false" : "unheard"} ${message.reason}`]
            : [],
      ),
    lastKnown: (): Telemetry | undefined =>
      messages.findLast((message) => message.kind === "telemetry")?.lastKnown,
  };
}

const goE = () => aLine("go-e-v2", { serial: "000001" });
const smartevse = () => aLine("smartevse", { prefix: "S" });
const victron = () => aLine("victron-evcs", { portalId: "gx" });

test("control is taken before the first command, and again when the charger or the broker is back", async () => {
  const station = victron();
  const set = '40/SetCurrent {"value":16}';
  expect(await station.told(A(16))).toEqual(['40/Mode {"value":0}', set]);
  expect(await station.again(A(16))).toEqual([set]);
  station.line.brokerUp();
  expect(await station.again(A(16))).toEqual(['40/Mode {"value":0}', set]);
  station.hears("N/gx/heartbeat", { value: 1 });
  vi.advanceTimersByTime(15_000);
  station.hears("N/gx/heartbeat", { value: 1 });
  expect(await station.again(A(16))).toEqual(['40/Mode {"value":0}', set]);
});

test("control that was taken before the first message after an outage of the broker is taken again", async () => {
  const station = victron();
  const [mode, set] = ['40/Mode {"value":0}', '40/SetCurrent {"value":16}'];
  station.line.brokerUp();
  expect(await station.told(A(16))).toEqual([mode, set]);
  station.hears("N/gx/heartbeat", { value: 1 }, true);
  expect(await station.again(A(16))).toEqual([set]);
  station.hears("N/gx/heartbeat", { value: 2 });
  expect(await station.again(A(16))).toEqual([mode, set]);
  expect(await station.again(A(16))).toEqual([set]);
});

test("after a release control is taken anew", async () => {
  const station = victron();
  await station.told(A(16));
  expect(await station.told(RELEASE)).toEqual(['40/Mode {"value":1}', '40/SetCurrent {"value":32}']);
  expect(await station.told(A(10))).toEqual(['40/Mode {"value":0}', '40/SetCurrent {"value":10}']);
});

test("an event starts no go-e that its owner switched off, and a release leaves each as its owner had it", async () => {
  const charger = goE();
  const shows = (frc: number) => charger.hears("go-eCharger/000001/frc", frc);
  shows(1);
  expect(await charger.told(PAUSE)).toEqual(["frc/set 1"]);
  expect(await charger.told(A(10), PAUSE)).toEqual(["amp/set 10"]);
  expect(await charger.told(RELEASE, A(10))).toEqual(["frc/set 1", "amp/set 32"]);
  charger.hears("go-eCharger/000001/amp", 32);
  // Its owner forces it on, and later leaves it to its own logic.
  const forced = goE();
  forced.hears("go-eCharger/000001/frc", 2);
  await forced.told(A(10));
  expect(await forced.told(RELEASE, A(10))).toEqual(["frc/set 2", "amp/set 32"]);
  forced.hears("go-eCharger/000001/amp", 32);
  forced.hears("go-eCharger/000001/frc", 0);
  expect(await forced.told(PAUSE, RELEASE)).toEqual(["frc/set 1"]);
  forced.hears("go-eCharger/000001/frc", 1);
  expect(await forced.told(A(10), PAUSE)).toEqual(["amp/set 10", "frc/set 2"]);
  expect(await forced.told(RELEASE, A(10))).toEqual(["frc/set 0", "amp/set 32"]);
});

test("an event does not unlock a SmartEVSE, and limits one that is unlocked in it; Solar is restored", async () => {
  const charger = smartevse();
  charger.hears("S/Mode", "Off");
  expect(await charger.told(PAUSE)).toEqual([]);
  expect(await charger.told(A(10), PAUSE)).toEqual(["Set/CurrentOverride 100"]);
  charger.hears("S/Mode", "Solar");
  expect(await charger.again(A(10), PAUSE, true)).toEqual(["Set/Mode Normal", "Set/CurrentOverride 100"]);
  charger.hears("S/Mode", "Off");
  expect(await charger.told(RELEASE, A(10))).toEqual(["Set/CurrentOverride 0"]);
  const solar = smartevse();
  solar.hears("S/Mode", "Solar");
  expect(await solar.told(A(10))).toEqual(["Set/Mode Normal", "Set/CurrentOverride 100"]);
  solar.hears("S/Mode", "Normal");
  expect(await solar.told(RELEASE, A(10))).toEqual(["Set/CurrentOverride 0", "Set/Mode Solar"]);
  expect(await smartevse().told(RELEASE, A(10))).toEqual(["Set/CurrentOverride 0"]);
});

test("an event starts no charge point of openWB that its owner stopped, and a timetable is one again", async () => {
  const point = aLine("openwb-simpleapi", { id: 2 });
  const shows = (selected: string, current: number) =>
    point.hears("openWB/chargepoint/2/set/charge_template", {
      chargemode: { selected, instant_charging: { current } },
    });
  shows("stop", 16);
  expect(await point.told(A(10))).toEqual(["2/chargecurrent 10"]);
  shows("stop", 10);
  expect(await point.told(RELEASE, A(10))).toEqual(["2/chargecurrent 16", "2/chargemode stop"]);
  shows("stop", 16);
  shows("scheduled_charging", 16);
  expect(await point.told(A(10), RELEASE)).toEqual(["2/chargecurrent 10", "2/chargemode instant"]);
  shows("instant_charging", 10);
  // Its owner stops it during the event.
  shows("stop", 10);
  expect(await point.again(A(10), RELEASE, true)).toEqual(["2/chargecurrent 10"]);
  expect(await point.told(RELEASE, A(10))).toEqual(["2/chargecurrent 16", "2/chargemode stop"]);
});

test("the next vehicle at a charge point of openWB gets the level again, as its template is loaded anew", async () => {
  const point = aLine("openwb-simpleapi", { id: 2 });
  await point.told(A(10));
  point.hears("openWB/simpleAPI/chargepoint/2/plug_state", "False");
  expect(point.messages.map(({ kind }) => kind)).not.toContain("forgot");
  point.hears("openWB/simpleAPI/chargepoint/2/plug_state", "True");
  expect(point.messages.at(-1)).toEqual({ kind: "forgot", charger: BAY });
  expect(await point.again(A(10))).toEqual(["2/chargecurrent 10", "2/chargemode instant"]);
});

test("a charge point of openWB that charged at once does so again after an event, with its own current", async () => {
  const point = aLine("openwb-simpleapi", { id: 2 });
  const shows = (selected: string, current: number) =>
    point.hears("openWB/chargepoint/2/set/charge_template", {
      chargemode: { selected, instant_charging: { current } },
    });
  shows("instant_charging", 16);
  expect(await point.told(A(10))).toEqual(["2/chargecurrent 10", "2/chargemode instant"]);
  shows("instant_charging", 10);
  expect(await point.told(RELEASE, A(10))).toEqual(["2/chargecurrent 16", "2/chargemode instant"]);
  shows("instant_charging", 16);
  expect(point.acks()).toEqual(["true null", "true null"]);
  expect(await aLine("openwb-simpleapi", { id: 2 }).told(RELEASE, PAUSE)).toContain("2/chargemode pv");
});

test("a station in manual mode is manual again after an event, with its own current", async () => {
  const station = victron();
  const shows = (path: string, value: number) => station.hears(`N/gx/evcharger/40/${path}`, { value });
  shows("Mode", 0);
  shows("SetCurrent", 16);
  expect(await station.told(A(10))).toEqual(['40/Mode {"value":0}', '40/SetCurrent {"value":10}']);
  shows("SetCurrent", 10);
  expect(await station.told(RELEASE, A(10))).toEqual(['40/SetCurrent {"value":16}', '40/Mode {"value":0}']);
  shows("SetCurrent", 16);
  // Its owner changes it. After the next event it is as after that.
  shows("Mode", 2);
  await station.told(A(10), RELEASE);
  shows("Mode", 0);
  expect(await station.told(RELEASE, A(10))).toContain('40/Mode {"value":2}');
});

test("a release to the mode of the event is shown by the own current, so one that was lost is sent again", async () => {
  const station = victron();
  const shows = (path: string, value: number) => station.hears(`N/gx/evcharger/40/${path}`, { value });
  shows("Mode", 0);
  shows("SetCurrent", 16);
  await station.told(A(10));
  shows("SetCurrent", 10);
  await station.told(RELEASE, A(10));
  shows("Mode", 0);
  expect(station.acks()).toEqual(["true null"]);
  shows("SetCurrent", 16);
  expect(station.acks()).toEqual(["true null", "true null"]);
});

test("a pause ends as the profile describes, also a pause from before a restart", async () => {
  const charger = goE();
  expect(await charger.told(PAUSE)).toEqual(["frc/set 1"]);
  expect(await charger.told(A(16))).toEqual(["amp/set 16", "frc/set 2"]);
  charger.hears("go-eCharger/000001/frc", 2);
  expect(await charger.told(A(10))).toEqual(["amp/set 10"]);
  expect(await goE().told(A(16), PAUSE)).toEqual(["amp/set 16", "frc/set 2"]);
  expect(await goE().told(A(16), A(10))).toEqual(["amp/set 16"]);
});

test("a resume is repeated with each level until the charger shows that it may charge", async () => {
  const station = victron();
  await station.told(PAUSE);
  const both = ['40/SetCurrent {"value":16}', '40/StartStop {"value":1}'];
  expect(await station.told(A(16), PAUSE)).toEqual(both);
  expect(await station.again(A(16), PAUSE)).toEqual(both);
  station.hears("N/gx/evcharger/40/Status", { value: 2 });
  expect(await station.again(A(16), PAUSE)).toEqual(both.slice(0, 1));
});

test("a resume is sent with a new level and with the release too, while the charger does not show it", async () => {
  const station = victron();
  await station.told(PAUSE);
  await station.told(A(16), PAUSE);
  const resume = '40/StartStop {"value":1}';
  station.hears("N/gx/evcharger/40/Status", { value: 6 });
  expect(await station.told(A(10), A(16))).toEqual(['40/SetCurrent {"value":10}', resume]);
  expect(await station.told(RELEASE, A(10))).toContain(resume);
  station.hears("N/gx/evcharger/40/Status", { value: 2 }, true);
  expect(await station.again(RELEASE, A(10))).toContain(resume);
  station.hears("N/gx/evcharger/40/Status", { value: 2 });
  expect(await station.again(RELEASE, A(10))).not.toContain(resume);
});

test("a charger that shows a pause after a restart gets a resume with its next level", async () => {
  const station = victron();
  station.hears("N/gx/evcharger/40/Status", { value: 6 });
  expect(await station.told(A(10), A(16))).toContain('40/StartStop {"value":1}');
});

const onOne = (desired: Desired & { readonly kind: "current" | "pause" }): Desired => ({
  ...desired,
  phases: { count: 1, since: now(), chargingSince: null },
});
const TEN = { kind: "current", amperes: amperes(10) } as const;

test("phases that the charger shows are sent once, and again after a return, unless it reports that it kept them", async () => {
  const charger = goE();
  expect(await charger.told(onOne({ kind: "pause" }), PAUSE)).toEqual(["frc/set 1", "psm/set 1"]);
  charger.hears("go-eCharger/000001/psm", 1);
  expect(await charger.told(onOne(TEN))).toEqual(["amp/set 10", "frc/set 2"]);
  charger.hears("go-eCharger/000001/psm", 0);
  charger.hears("go-eCharger/000001/rbt", 1);
  vi.advanceTimersByTime(10_000);
  charger.hears("go-eCharger/000001/rbt", 1);
  expect(await charger.again(onOne(TEN))).toEqual(["frc/set 1", "psm/set 1", "amp/set 10", "frc/set 2"]);
  expect(await charger.told(RELEASE)).toEqual(["frc/set 1", "psm/set 2", "frc/set 0", "amp/set 32"]);

  const box = aLine("warp", { prefix: "w" });
  await box.told(onOne({ kind: "pause" }), PAUSE);
  box.hears("w/power_manager/low_level_state", { is_3phase: false }, true);
  box.hears("w/evse/low_level_state", {});
  vi.advanceTimersByTime(30_000);
  box.hears("w/power_manager/low_level_state", { is_3phase: false });
  box.hears("w/evse/low_level_state", {});
  expect(await box.told(onOne(TEN))).not.toContainEqual(expect.stringContaining("phases_wanted"));
});

test("a switch of phases that the charger does not show is sent once more, and again where the level is not followed", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/psm", 2);
  await charger.told(onOne({ kind: "pause" }), PAUSE);
  expect(await charger.told(onOne(TEN))).toEqual(["psm/set 1", "amp/set 10", "frc/set 2"]);
  charger.hears("go-eCharger/000001/frc", 2);
  expect(await charger.again(onOne(TEN))).toEqual(["amp/set 10"]);
  // It was measured not to follow: the switch is in doubt again. While it charges, it is paused for that.
  const again = ["frc/set 1", "psm/set 1", "amp/set 10", "frc/set 2"];
  expect(await charger.again(onOne(TEN), null, true)).toEqual(again);
});

test("a release that was lost restores all phases when it is sent again", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/psm", 1);
  await charger.told(onOne(TEN), PAUSE);
  expect(await charger.told(RELEASE, onOne(TEN))).toContain("psm/set 2");
  expect(await charger.again(RELEASE, onOne(TEN))).toContain("psm/set 2");
  charger.hears("go-eCharger/000001/psm", 2);
  expect(await charger.again(RELEASE, onOne(TEN))).not.toContain("psm/set 2");
});

test("a limit that a restart ended is no sign that a release restored the phases", async () => {
  const charger = smartevse();
  await charger.told(RELEASE, onOne(TEN));
  charger.hears("S/ChargeCurrentOverride", 0);
  charger.hears("S/NrOfPhases", 1);
  expect(charger.acks()).toEqual([]);
  charger.hears("S/NrOfPhases", 3);
  expect(charger.acks()).toEqual(["true null"]);
});

test("a make that does not show its phases gets a switch twice, and again after a long silence", async () => {
  const box = aLine("openwb-1.9", { id: 1 });
  const isSwitched = async () => (await box.again(onOne(TEN))).some((one) => one.includes("U1p3p 1"));
  box.hears("openWB/lp/1/W", 0);
  expect((await box.told(onOne({ kind: "pause" }), PAUSE)).join()).toContain("U1p3p 1");
  expect((await box.told(onOne(TEN))).join()).toContain("U1p3p 1");
  expect(await isSwitched()).toBe(false);
  vi.advanceTimersByTime(121_000);
  box.hears("openWB/lp/1/W", 0);
  expect(await isSwitched()).toBe(true);
});

test("a release that is refreshed for days pauses no vehicle when the broker was away", async () => {
  const box = aLine("openwb-1.9", { id: 1 });
  box.hears("openWB/lp/1/W", 0);
  await box.told(onOne(TEN), PAUSE);
  const switched = ["isss/Current 0", "isss/U1p3p 3", "isss/Current 32"];
  expect(await box.told(RELEASE, onOne(TEN))).toEqual(expect.arrayContaining(switched));
  expect(await box.again(RELEASE, onOne(TEN))).toEqual(expect.arrayContaining(switched));
  box.hears("openWB/lp/1/W", 11_040);
  box.line.brokerUp();
  expect(await box.again(RELEASE, onOne(TEN))).toEqual(["isss/Current 32"]);
  box.hears("openWB/lp/1/W", 11_040);
  expect(await box.again(RELEASE, onOne(TEN))).toEqual(["isss/Current 32"]);
});

test("a level that a charger kept through a pause is no sign that the pause has ended", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/car", 3);
  charger.hears("go-eCharger/000001/amp", 32);
  charger.hears("go-eCharger/000001/frc", 1);
  await charger.told(A(32), PAUSE);
  charger.hears("go-eCharger/000001/amp", 32);
  expect(charger.acks()).toEqual([]);
  vi.advanceTimersByTime(5_000);
  expect(charger.messages.at(-1)).toEqual({ kind: "forgot", charger: BAY });
  charger.hears("go-eCharger/000001/frc", 2);
  expect(charger.acks()).toEqual(["true null"]);
});

test("the second level after a pause is no sign of its end either, where the first one was lost", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/car", 3);
  await charger.told(A(32));
  charger.hears("go-eCharger/000001/amp", 32);
  await charger.told(PAUSE, A(32));
  charger.hears("go-eCharger/000001/frc", 1);
  await charger.told(A(16), PAUSE);
  await charger.told(A(32), A(16));
  charger.messages.length = 0;
  charger.hears("go-eCharger/000001/amp", 32);
  expect(charger.acks()).toEqual([]);
  vi.advanceTimersByTime(5_000);
  expect(charger.messages.at(-1)).toEqual({ kind: "forgot", charger: BAY });
  expect(await charger.again(A(32), A(16))).toEqual(["amp/set 32", "frc/set 2"]);
  charger.hears("go-eCharger/000001/frc", 2);
  expect(charger.acks()).toEqual(["true null"]);
});

test("a level for an empty bay is sent again when a vehicle comes and the charger is still paused", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/car", 1);
  charger.hears("go-eCharger/000001/amp", 32);
  charger.hears("go-eCharger/000001/frc", 1);
  await charger.told(A(32), PAUSE);
  vi.advanceTimersByTime(60_000);
  // Some makes report a pause as long as nobody is there: that is no refusal.
  expect(charger.messages.filter(({ kind }) => kind !== "telemetry")).toEqual([]);
  charger.hears("go-eCharger/000001/car", 3);
  expect(charger.messages.at(-1)).toEqual({ kind: "forgot", charger: BAY });
});

test("phases that were switched before a restart are not sent again, and are restored by the release", async () => {
  expect(await goE().told(onOne(TEN), onOne({ kind: "pause" }))).toEqual(["amp/set 10", "frc/set 2"]);
  expect(await goE().told(RELEASE, onOne(TEN))).toContain("psm/set 2");
  const away = goE();
  away.hears("go-eCharger/000001/rbt", 1);
  vi.advanceTimersByTime(10_000);
  expect(await away.told(RELEASE, onOne(TEN))).toContain("psm/set 2");
});

test("a pause without an acknowledgement counts, because it may have arrived", async () => {
  const answers: Sent[] = [{ ok: false, retry: true, reason: "no PUBACK" }];
  const published: string[] = [];
  const { line } = aLine("go-e-v2", { serial: "000001" }, async (topic, payload) => {
    published.push(`${topic} ${payload}`);
    return answers.pop() ?? { ok: true };
  });
  const command = {
    charger: BAY,
    epoch: 1,
    until: null,
    vehicle: null,
    event: null,
    cause: "event",
  } as const;
  const at = { decidedAt: instant(0) };
  expect(await line.send({ ...command, ...at, seq: 1, desired: PAUSE }, minutes(3), null)).toMatchObject({
    ok: false,
  });
  await line.send({ ...command, ...at, seq: 2, desired: A(16) }, minutes(3), PAUSE);
  expect(published.at(-1)).toBe("go-eCharger/000001/frc/set 2");
});

test("a command that fails in the middle has failed, and its rest is not sent", async () => {
  const published: string[] = [];
  const { line } = aLine("smartevse", { prefix: "S" }, async (topic) => {
    published.push(topic);
    return { ok: false, retry: true, reason: "no PUBACK" };
  });
  const command: Command = {
    charger: BAY,
    epoch: 1,
    seq: 1,
    desired: A(10),
    until: null,
    vehicle: null,
    event: null,
    cause: "event",
    decidedAt: instant(0),
  };
  expect(await line.send(command, minutes(3), null)).toEqual({ ok: false, retry: true, reason: "no PUBACK" });
  expect(published).toEqual(["S/Set/Mode"]);
});

test("a command past its end is not sent, and an impossible one fails with its reason", async () => {
  const { line } = goE();
  const past: Command = {
    charger: BAY,
    epoch: 1,
    seq: 1,
    desired: A(10),
    until: instant(Date.now()),
    vehicle: null,
    event: null,
    cause: "event",
    decidedAt: instant(0),
  };
  expect(await line.send(past, minutes(3), null)).toMatchObject({ ok: false, reason: "its time has passed" });
  const reader = aLine("twcmanager", { prefix: "t", twc: "1" });
  const pause = { ...past, until: null, desired: PAUSE };
  expect(await reader.line.send(pause, minutes(3), null)).toMatchObject({ ok: false, retry: false });
});

test("a pause is sent once where acquiring control starts charging, and the resume acquires control", async () => {
  const evcc = aLine("evcc", { id: 1 });
  const [off, on, limit] = ["mode/set off", "mode/set now", "maxCurrent/set 10"];
  expect(await evcc.told(PAUSE)).toEqual([off]);
  expect(await evcc.told(PAUSE, PAUSE)).toEqual([]);
  expect(await evcc.told(A(10), PAUSE)).toEqual([limit, on]);
  evcc.hears("evcc/loadpoints/1/enabled", true);
  expect(await evcc.told(A(10), A(10))).toEqual([limit]);
  evcc.line.brokerUp();
  expect(await evcc.again(A(10), A(10))).toEqual([limit, on]);
});

test("a charger that wears by each write gets no repeated level for another event, but gets it after a return", async () => {
  const charger = goE();
  await charger.told(A(16));
  expect(await charger.told(A(16))).toEqual([]);
  expect(await charger.again(A(16))).toEqual(["amp/set 16"]);
  charger.line.brokerUp();
  expect(await charger.told(A(16))).toEqual(["amp/set 16"]);
});

test("a charger that repeats a command has accepted it", async () => {
  const charger = goE();
  await charger.told(A(13.7));
  charger.hears("go-eCharger/000001/amp", 16);
  expect(charger.acks()).toEqual([]);
  charger.hears("go-eCharger/000001/amp", 13);
  charger.hears("go-eCharger/000001/amp", 13);
  expect(charger.acks()).toEqual(["true null"]);
  expect(charger.messages).toContainEqual({
    kind: "ack",
    charger: BAY,
    id: commandId({ epoch: 1, seq: 1 }),
    accepted: true,
    value: 13.7,
    reason: null,
  });
  await charger.told(PAUSE);
  charger.hears("go-eCharger/000001/frc", 1);
  await charger.told(RELEASE);
  charger.hears("go-eCharger/000001/frc", 0);
  charger.hears("go-eCharger/000001/alw", true);
  charger.hears("go-eCharger/000001/amp", 32);
  expect(charger.acks()).toEqual(["true null", "true null", "true null"]);
});

test("a charger that does not repeat a command in time has not accepted it: reported once, and it still may later", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/amp", 32);
  await charger.told(A(10));
  vi.advanceTimersByTime(5_000);
  await charger.again(A(10));
  vi.advanceTimersByTime(60_000);
  expect(charger.acks()).toEqual(["false not confirmed within 5 s, it repeats 32 A"]);
  charger.hears("go-eCharger/000001/amp", 10);
  expect(charger.acks().at(-1)).toBe("true null");
});

test("a charger cannot confirm while its broker is down", async () => {
  const charger = goE();
  await charger.told(A(10));
  charger.line.brokerDown();
  vi.advanceTimersByTime(60_000);
  expect(charger.acks()).toEqual([]);
});

test("a refusal has the charger's reason; an acceptance counts without confirmedBy only; a retained answer is old", async () => {
  const charger = goE();
  await charger.told(A(10));
  charger.hears("go-eCharger/000001/amp/result", "success");
  charger.hears("go-eCharger/000001/amp/result", "read only", true);
  charger.hears("go-eCharger/000001/amp/result", "value not allowed");
  expect(charger.acks()).toEqual(["false value not allowed"]);
  const bridge = aLine("ocpp2mqtt", { base: "o" });
  bridge.hears("o/cmd_result/status", "Accepted");
  await bridge.told(A(10));
  bridge.hears("o/cmd_result/status", "Accepted");
  expect(bridge.acks()).toEqual(["true null"]);
});

test("a command that a charger leaves unanswered counts as refused, and one that it refused does not count twice", async () => {
  const bridge = aLine("ocpp2mqtt", { base: "o" });
  bridge.hears("o/state/status", "Charging");
  await bridge.told(A(10));
  bridge.hears("o/cmd_result/status", "Accepted");
  vi.advanceTimersByTime(60_000);
  expect(bridge.acks()).toEqual(["true null"]);
  await bridge.told(A(16), A(10));
  bridge.hears("o/cmd_result/status", "Accepted", true);
  vi.advanceTimersByTime(20_000);
  expect(bridge.acks().slice(1)).toEqual(["false no answer within 20 s"]);
  await bridge.told(A(12), A(16));
  bridge.hears("o/cmd_result/status", "Rejected");
  vi.advanceTimersByTime(60_000);
  expect(bridge.acks().slice(2)).toEqual(["false Rejected"]);
});

test("a release of a charger without a charging profile is no refusal", async () => {
  const bridge = aLine("ocpp2mqtt", { base: "o" });
  bridge.hears("o/state/status", "Charging");
  await bridge.told(RELEASE);
  bridge.hears("o/cmd_result/status", "Unknown");
  expect(bridge.acks()).toEqual(["true null"]);
});

test("a command that repeats the one before it is not published, and awaits no answer", async () => {
  const bridge = aLine("ocpp2mqtt", { base: "o" });
  bridge.hears("o/state/status", "Charging");
  expect(await bridge.told(A(10))).toHaveLength(1);
  bridge.hears("o/cmd_result/status", "Accepted");
  expect(await bridge.told(A(10), A(10))).toEqual([]);
  vi.advanceTimersByTime(60_000);
  expect(bridge.acks()).toEqual(["true null"]);
});

test("a repetition of a command whose answer is still to come is published, and judged by its own answer", async () => {
  const bridge = aLine("ocpp2mqtt", { base: "o" });
  bridge.hears("o/state/status", "Charging");
  await bridge.told(A(10));
  vi.advanceTimersByTime(10_000);
  expect(await bridge.told(A(10), A(10))).toHaveLength(1);
  vi.advanceTimersByTime(20_000);
  expect(bridge.acks()).toEqual(["false no answer within 20 s"]);
});

test("an increase that never arrives at the simpleAPI of openWB is not accepted", async () => {
  const box = aLine("openwb-simpleapi", { id: 1 });
  const shows = (selected: string, current: number): void =>
    box.hears("openWB/chargepoint/1/set/charge_template", {
      chargemode: { selected, instant_charging: { current } },
    });
  await box.told(A(8));
  shows("instant_charging", 8);
  await box.told(A(16), A(8));
  vi.advanceTimersByTime(20_000);
  expect(box.acks()).toEqual(["true null", "false not confirmed within 20 s, it repeats 8 A"]);
  shows("instant_charging", 16);
  await box.told(PAUSE, A(16));
  shows("stop", 16);
  await box.told(RELEASE, PAUSE);
  shows("pv_charging", 32);
  expect(box.acks().slice(2)).toEqual(["true null", "true null", "true null"]);
});

test("a telemetry message holds single values, and lastKnown holds all", () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/car", 2);
  charger.hears("go-eCharger/000001/acu", 16);
  const at = instant(Date.now());
  expect(charger.messages).toEqual([
    {
      kind: "telemetry",
      charger: BAY,
      telemetry: { at, state: "charging" },
      lastKnown: { at, state: "charging" },
    },
    {
      kind: "telemetry",
      charger: BAY,
      telemetry: { at, limitA: 16 },
      lastKnown: { at, state: "charging", limitA: 16 },
    },
  ]);
});

test("measurements from before a command do not count for it", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/nrg", nrg(20));
  expect(charger.lastKnown()?.powerW).toBe(13_800);
  await charger.told(A(10));
  charger.hears("go-eCharger/000001/acu", 10);
  expect(charger.lastKnown()).not.toHaveProperty("powerW");
  charger.hears("go-eCharger/000001/nrg", nrg(10));
  expect(charger.lastKnown()).toMatchObject({ powerW: 6900, limitA: 10 });
});

test("a repeated limit counts as its limit while a level is active, not after", async () => {
  const station = victron();
  const repeats = (value: number) => station.hears("N/gx/evcharger/40/SetCurrent", { value });
  repeats(32);
  expect(station.lastKnown()).not.toHaveProperty("limitA");
  await station.told(A(10));
  repeats(32);
  expect(station.lastKnown()?.limitA).toBe(32);
  await station.told(RELEASE);
  repeats(10);
  expect(station.lastKnown()).not.toHaveProperty("limitA");
});

test("a release is not accepted while the charger still shows the pause", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/amp", 32, true);
  charger.hears("go-eCharger/000001/frc", 1, true);
  await charger.told(RELEASE, PAUSE);
  expect(charger.acks()).toEqual([]);
  charger.hears("go-eCharger/000001/frc", 0);
  charger.hears("go-eCharger/000001/alw", true);
  expect(charger.acks()).toEqual(["true null"]);
});

test("after a release, the own limit of a charger shows only that it is free", async () => {
  const charger = smartevse();
  await charger.told(A(10));
  await charger.told(RELEASE, A(10));
  charger.hears("S/ChargeCurrent", "80");
  expect(charger.lastKnown()).not.toHaveProperty("limitA");
  charger.hears("S/ChargeCurrent", "160");
  expect(charger.lastKnown()?.limitA).toBe(16);
  const box = aLine("openwb-secondary", { parentIp: "192.0.2.1" });
  await box.told(RELEASE, A(10));
  box.hears("openWB/internal_chargepoint/0/get/evse_current", 10);
  expect(box.lastKnown()?.limitA).toBe(10);
  const raised = goE();
  await raised.told(RELEASE, { kind: "power", watts: watts(18_600) });
  // What it allows has others in it too, and is nothing where nobody is.
  raised.hears("go-eCharger/000001/acu", 0);
  expect(raised.lastKnown()).not.toHaveProperty("limitA");
  raised.hears("go-eCharger/000001/amp", 32);
  expect(raised.lastKnown()?.limitA).toBe(32);
});

test("a paused charger without a vehicle accepts a release, and gets no resume", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/car", 1);
  charger.hears("go-eCharger/000001/alw", false);
  expect((await charger.told(A(10))).join()).not.toContain("frc/set 2");
  await charger.told(RELEASE, A(10));
  charger.hears("go-eCharger/000001/amp", 32);
  expect(charger.acks().at(-1)).toBe("true null");
});

test("the limit that an empty charger kept through a pause is no sign that it was released from it", async () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/car", 1);
  charger.hears("go-eCharger/000001/frc", 1);
  await charger.told(RELEASE, PAUSE);
  charger.hears("go-eCharger/000001/amp", 32);
  expect(charger.acks()).toEqual([]);
  expect(charger.lastKnown()).not.toHaveProperty("limitA");
  // What frc 0 comes to is seen when a vehicle is there.
  charger.hears("go-eCharger/000001/frc", 0);
  charger.hears("go-eCharger/000001/car", 3);
  charger.hears("go-eCharger/000001/alw", true);
  expect(charger.acks()).toEqual(["true null"]);
  expect(charger.lastKnown()?.limitA).toBe(32);
});

const status = (value: number) => ({ value });
const session = (state: string) => ({ state });

test.each<[string, Params, string, readonly unknown[], string]>([
  [
    "everest-api-legacy",
    { evse: "e" },
    "everest_api/e/var/session_info",
    ["ChargingPausedEV", "Finished"].map(session),
    "finished",
  ],
  [
    "everest-api-legacy",
    { evse: "e" },
    "everest_api/e/var/session_info",
    ["ChargingPausedEV", "Unplugged", "Preparing"].map(session),
    "connected",
  ],
  [
    "everest-api-legacy",
    { evse: "e" },
    "everest_api/e/var/session_info",
    ["Unplugged", "ChargingPausedEVSE"].map(session),
    "paused",
  ],
  ["ocpp2mqtt", { base: "o" }, "o/state/status", ["Available", "SuspendedEVSE"], "paused"],
  [
    "pulsatrix",
    { clientId: "c" },
    "pulsatrix/secc/c/tx/status",
    ["SUSPENDED_EV", "STOPPED"].map(session),
    "finished",
  ],
  ["victron-evcs", { portalId: "gx" }, "N/gx/evcharger/40/Status", [0, 6].map(status), "paused"],
  ["victron-evcs", { portalId: "gx" }, "N/gx/evcharger/40/Status", [6, 3].map(status), "finished"],
  ["smartevse", { prefix: "S" }, "S/State", ["Charging Stopped", "Connected to EV"], "connected"],
  ["openevse-override", { base: "o" }, "o/state", ["255", "2"], "connected"],
  ["openevse-override", { base: "o" }, "o/state", ["1", "255"], "paused"],
])(
  "%s %j on %s: after %j what the states before implied is over, and it is %s",
  async (profile, params, topic, said, state) => {
    const charger = aLine(profile, params);
    for (const payload of said) charger.hears(topic, payload);
    expect(charger.lastKnown()?.state).toBe(state);
    expect(telling(charger)?.state).toBe(state);
    await charger.told(PAUSE);
    charger.hears(topic, said.at(-1));
    const confirms = boundTo(profile, params).profile.confirmedBy !== undefined;
    expect(charger.acks()).toEqual(state === "paused" && confirms ? ["true null"] : []);
  },
);

test("retained messages give the state, but no measurement", () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/eto", 123_456, true);
  charger.hears("go-eCharger/000001/car", 3, true);
  charger.hears("go-eCharger/000001/rbt", 1, true);
  expect(charger.messages).toMatchObject([{ kind: "telemetry", telemetry: { state: "connected" } }]);
});

test("a charger that forgets its limit at plug-in gets it again when a vehicle comes", () => {
  const charger = aLine("openevse-override", { base: "o" });
  charger.hears("o/vehicle", "0", true);
  charger.hears("o/vehicle", "1", true);
  charger.hears("o/vehicle", "0");
  charger.hears("o/vehicle", "1");
  charger.hears("o/vehicle", "1");
  const forgotten = () => charger.messages.filter(({ kind }) => kind === "forgot");
  expect(forgotten()).toHaveLength(1);
  // Disabled hides whether a vehicle is there.
  for (const state of ["1", "255", "2"]) charger.hears("o/state", state);
  expect(forgotten()).toHaveLength(2);
});

test.each([
  ["go-eCharger/000001/nrg", "not json"],
  ["go-eCharger/000001/amp", '"many"'],
  ["go-eCharger/000001/amp", "{}"],
  ["go-eCharger/000001/eto", '{"a":1}'],
  ["go-eCharger/000001/amp", Buffer.from([0xff, 0xfe, 0x00])],
  ["go-eCharger/000001/nrg", Buffer.alloc(65 * 1024, "1")],
])("F95: %s with a malformed payload is malformed, without other effect", (topic, payload) => {
  const charger = goE();
  charger.line.handleMessage(topic, Buffer.from(payload), false);
  expect(charger.messages.map(({ kind }) => kind)).toEqual(["malformed"]);
});

test("a value that is unknown, absent or deleted is not malformed", () => {
  const charger = goE();
  for (const payload of ["null", '"NaN"', "", "[]"]) charger.hears("go-eCharger/000001/acu", payload);
  charger.hears("go-eCharger/000001/car", 99);
  charger.hears("go-eCharger/000001/frc", 7);
  charger.hears("go-eCharger/000001/amp/result", "no");
  expect(charger.messages.filter(({ kind }) => kind === "malformed")).toEqual([]);
});

test("power is sent in watts to chargers that accept them", async () => {
  const evse = aLine("everest-api-legacy", { evse: "e" });
  expect(await evse.told({ kind: "power", watts: watts(-5000) })).toEqual(["cmd/set_limit_watts -5000"]);
  evse.hears("everest_api/e/var/limits", { max_current: 0 });
  expect(evse.acks()).toEqual([]);
});

const telling = ({ messages }: ReturnType<typeof aLine>) =>
  messages.flatMap((message) => (message.kind === "telemetry" ? [message.telemetry] : [])).at(-1);

test("retained measurements count once, with the first live message, but not for a verdict", () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/nrg", nrg(16), true);
  charger.hears("go-eCharger/000001/eto", 1234, true);
  expect(charger.messages).toEqual([]);
  charger.hears("go-eCharger/000001/rbt", 1);
  expect(telling(charger)).toMatchObject({ powerW: 11_040, currentsA: [16, 16, 16] });
  expect(telling(charger)).not.toHaveProperty("energyWh");
  expect(charger.lastKnown()).not.toHaveProperty("powerW");
  const heard = charger.messages.length;
  charger.hears("go-eCharger/000001/rbt", 2);
  expect(charger.messages).toHaveLength(heard);
});

test("live values have priority over retained ones, and so do those of newer firmware", () => {
  const charger = goE();
  charger.hears("go-eCharger/000001/nrg", nrg(16), true);
  charger.hears("go-eCharger/000001/nrg", nrg(6));
  expect(telling(charger)).toMatchObject({ powerW: 4140 });
  const box = aLine("warp", { prefix: "w" });
  box.hears("w/meter/values", { power: 22_000 }, true);
  box.hears("w/meters/0/value_ids", [74], true);
  box.hears("w/meters/0/values", [3000], true);
  box.hears("w/evse/low_level_state", {});
  expect(telling(box)).toMatchObject({ powerW: 3000 });
});

test("retained measurements do not count after a birth message", () => {
  const charger = smartevse();
  charger.hears("S/EVChargePower", "11040", true);
  charger.hears("S/connected", "offline", true);
  charger.hears("S/connected", "online");
  charger.hears("S/State", "Charging");
  expect(telling(charger)).not.toHaveProperty("powerW");
  charger.line.brokerDown();
  charger.hears("S/EVChargePower", "11040", true);
  charger.hears("S/State", "Charging");
  expect(telling(charger)).toMatchObject({ powerW: 11_040 });
});

const RELEASED: Desired = { kind: "release" };

test.each([
  ["go-e-v2", { serial: "000001" }, "go-eCharger/000001/amp", "16", A(16)],
  ["go-e-v2", { serial: "000001" }, "go-eCharger/000001/amp", "32", RELEASED],
  ["warp", { prefix: "w" }, "w/evse/external_current", '{"current":13500}', A(13.5)],
  ["warp", { prefix: "w" }, "w/evse/external_current", "0", PAUSE],
  ["warp", { prefix: "w" }, "w/evse/state", '{"allowed_charging_current":6000}', null],
  ["smartevse", { prefix: "S" }, "S/ChargeCurrentOverride", "137", A(13.7)],
  ["smartevse", { prefix: "S" }, "S/ChargeCurrentOverride", "0", RELEASED],
  ["smartevse", { prefix: "S" }, "S/ChargeCurrentOverride", "", null],
  ["smartevse", { prefix: "S" }, "S/ChargeCurrentOverride", "20", null],
  ["openwb-secondary", { parentIp: "::1" }, "openWB/internal_chargepoint/0/get/evse_current", "13", A(13)],
  ["openwb-secondary", { parentIp: "::1" }, "openWB/internal_chargepoint/0/get/evse_current", "0", null],
  ["openwb-secondary", { parentIp: "::1" }, "openWB/internal_chargepoint/0/get/evse_current", "null", null],
  ["evcc", { id: 1 }, "evcc/loadpoints/1/maxCurrent", "16", null],
] as const)(
  "%s with %j that reports %s %s shows the level that commissioning has to restore",
  (profile, params, topic, said, shown) => {
    const charger = aLine(profile, params);
    expect(charger.line.shows()).toBeNull();
    charger.hears(topic, said, true);
    expect(charger.line.shows()).toEqual(shown);
  },
);

const words = (base: string, messages: readonly (readonly [string, string])[]) =>
  messages.map(([leaf, payload]) => [`${base}/${leaf}`, payload] as const);

test.each([
  [
    "openwb-simpleapi",
    { id: 4 },
    "bus 2",
    words("openWB/simpleAPI/chargepoint/4", [
      ["plug_state", "True"],
      ["rfid", "04AA"],
      ["vehicle_name", "Bus 1"],
      ["rfid", "null"],
      ["plug_state", "False"],
      ["vehicle_name", "Bus 2"],
      ["plug_state", "True"],
      ["vehicle_name", "Bus 2"],
    ]),
  ],
  [
    "evcc",
    { id: 1 },
    "ev2",
    words("evcc/loadpoints/1", [
      ["connected", "true"],
      ["vehicleIdentity", "04AABBCC"],
      ["vehicleName", "ev1"],
      ["vehicleIdentity", ""],
      ["connected", "false"],
      ["vehicleName", "ev2"],
      ["connected", "true"],
      ["vehicleName", "ev2"],
    ]),
  ],
  [
    "go-e-v2",
    { serial: "000001" },
    "anna",
    words("go-eCharger/000001", [
      ["cards", '[{"name":"Anna"},{"name":"Bob"}]'],
      ["car", "3"],
      ["tsi", '"04aabb"'],
      ["trx", "2"],
      ["trx", "null"],
      ["car", "1"],
      ["car", "3"],
      ["trx", "1"],
    ]),
  ],
])("%s with %j identifies the present vehicle (%s), not the one before", (profile, params, who, messages) => {
  const charger = aLine(profile, params);
  for (const [topic, payload] of messages) charger.hears(topic, payload);
  expect(telling(charger)?.identity).toEqual({ kind: "name", value: who });
  expect(charger.lastKnown()?.identity).toEqual({ kind: "name", value: who });
});

test("control is taken again from another controller: when a level is not followed, or not confirmed", async () => {
  const station = victron();
  const [mode, set] = ['40/Mode {"value":0}', '40/SetCurrent {"value":16}'];
  await station.told(A(16));
  expect(await station.again(A(16))).toEqual([set]);
  expect(await station.again(A(16), null, true)).toEqual([mode, set]);
  vi.advanceTimersByTime(10_000);
  // Nothing was ever heard of it: nobody knows whether it refuses.
  expect(station.acks()).toEqual(["unheard not confirmed within 10 s, it repeats no limit"]);
  expect(await station.again(A(16))).toEqual([mode, set]);
  expect(await station.again(A(16))).toEqual([set]);
});

test("a lower limit than commanded is not a refusal; a limit that stays above is", async () => {
  const granted = aLine("everest-api-legacy", { evse: "e" });
  const limits = "everest_api/e/var/limits";
  await granted.told(A(16));
  granted.hears(limits, { max_current: 10 });
  vi.advanceTimersByTime(10_000);
  expect(granted.acks()).toEqual([]);
  await granted.told(A(8), A(16));
  vi.advanceTimersByTime(10_000);
  expect(granted.acks()).toEqual(["false not confirmed within 10 s, it repeats 10 A"]);
});

test("the allowed limit confirms only if the charger never repeats its command", async () => {
  const loadpoint = "evcc/loadpoints/1";
  const offering = aLine("evcc", { id: 1 });
  await offering.told(A(16));
  offering.hears(`${loadpoint}/offeredCurrent`, 16);
  expect(offering.acks()).toEqual(["true null"]);
  const repeating = aLine("evcc", { id: 1 });
  repeating.hears(`${loadpoint}/maxCurrent`, 32);
  await repeating.told(A(16));
  repeating.hears(`${loadpoint}/offeredCurrent`, 16);
  vi.advanceTimersByTime(10_000);
  expect(repeating.acks()).toEqual(["false not confirmed within 10 s, it repeats 32 A"]);
});

test.each([
  ["openevse-override", "override"],
  ["openevse-claim", "claim"],
])(
  "%s confirms by its retained limit, and by its pilot if that was never reported",
  async (profile, door) => {
    const restarted = aLine(profile, { base: "o" });
    restarted.hears(`o/${door}`, { state: "active", charge_current: 16 }, true);
    await restarted.told(A(16), A(16));
    expect(restarted.acks()).toEqual(["true null"]);
    restarted.hears(`o/${door}`, { state: "null" });
    await restarted.told(RELEASE, A(16));
    expect(restarted.acks()).toEqual(["true null", "true null"]);
    const older = aLine(profile, { base: "o" });
    await older.told(A(16));
    older.hears("o/pilot", "16");
    expect(older.acks()).toEqual(["true null"]);
  },
);

test("a vehicle that paused by itself was not paused by a command, and needs no resume", async () => {
  const session = "everest_api/e/var/session_info";
  const paused = aLine("everest-api-legacy", { evse: "e" });
  paused.hears(session, { state: "ChargingPausedEV" });
  await paused.told(PAUSE);
  expect(paused.acks()).toEqual([]);
  paused.hears(session, { state: "ChargingPausedEVSE" });
  expect(paused.acks()).toEqual(["true null"]);
  const restarted = aLine("everest-api-legacy", { evse: "e" });
  restarted.hears(session, { state: "ChargingPausedEV" });
  expect(await restarted.told(A(16))).toEqual(["cmd/set_limit_amps 16"]);
});

test("a mode that a charger shows live is not sent again, but is after an outage", async () => {
  const charger = smartevse();
  charger.hears("S/Mode", "Normal", true);
  expect(await charger.told(PAUSE)).toEqual(["Set/Mode Pause"]);
  expect(await charger.again(PAUSE)).toEqual(["Set/Mode Pause"]);
  charger.hears("S/Mode", "Pause");
  expect(await charger.again(PAUSE)).toEqual([]);
  expect(charger.acks()).toEqual(["true null"]);
  const on = ["Set/Mode Normal", "Set/CurrentOverride 160"];
  expect(await charger.told(A(16), PAUSE)).toEqual(on);
  charger.hears("S/Mode", "Normal");
  expect(await charger.again(A(16), null, true)).toEqual(on.slice(1));
  charger.line.brokerUp();
  expect(await charger.again(A(16))).toEqual(on);
  charger.hears("S/Mode", "Normal");
  charger.hears("S/connected", "offline");
  charger.hears("S/connected", "online");
  expect(await charger.again(A(16))).toEqual(on);
});

test("a charger that counts its starts and starts again gets its level again at once", async () => {
  const charger = aLine("go-e-v2", { serial: "000001" });
  const root = "go-eCharger/000001";
  charger.hears(`${root}/rbc`, 41, true);
  charger.hears(`${root}/fwv`, '"60.0"', true);
  await charger.told(A(16));
  charger.hears(`${root}/rbc`, 41);
  expect(charger.messages.filter(({ kind }) => kind === "forgot")).toEqual([]);
  charger.hears(`${root}/rbc`, 42);
  expect(charger.messages.filter(({ kind }) => kind === "forgot")).toHaveLength(1);
  const reported = charger.messages.flatMap((message) =>
    message.kind === "telemetry" ? [message.telemetry] : [],
  );
  expect(reported).toContainEqual({ at: now(), firmware: "60.0" });
  expect(reported.at(-1)).toEqual({ at: now(), started: { kind: "count", count: 42 } });
});
