import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { ProfileDriver } from "../../src/chargers/profileDriver.ts";
import type { Command, OwnValues } from "../../src/domain/command.ts";
import type { Desired } from "../../src/domain/setpoint.ts";
import type { ChargerMessage } from "../../src/domain/telemetry.ts";
import { amperes, chargerId, instant, seconds } from "../../src/domain/units.ts";
import { boundTo } from "./profile/aTrial.ts";

const POINT = "evcc/loadpoints/1";
const BAY = chargerId("bay-01");
const A = (value: number): Desired => ({ kind: "current", amperes: amperes(value) });
const PAUSE: Desired = { kind: "pause" };
const RELEASE: Desired = { kind: "release" };

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 22) }));
afterEach(() => void vi.useRealTimers());

/** Parts of the last command that a restart reads. */
interface Stored {
  readonly before: Desired;
  readonly own: OwnValues | undefined;
}

/** A loadpoint of evcc with what it retains, and the line that drives it. */
function aLoadpoint(retained: Readonly<Record<string, string>> = {}, stored?: Stored) {
  const published: string[] = [];
  const messages: ChargerMessage[] = [];
  let seq = 0;
  let before: Desired | null = stored?.before ?? null;
  let own = stored?.own;
  const line = new ProfileDriver(BAY, boundTo("evcc", { id: 1 }), {
    now: () => instant(Date.now()),
    publish: async (topic, payload) => {
      published.push(`${topic.slice(POINT.length + 1).replace("/set", "")} ${payload}`);
      return { ok: true };
    },
    emit: (message) => messages.push(message),
  });
  const hears = (name: string, payload: string | number, isRetained = false): void =>
    line.handleMessage(
      name.startsWith("evcc/") ? name : `${POINT}/${name}`,
      Buffer.from(String(payload)),
      isRetained,
    );
  line.brokerUp();
  for (const [name, payload] of Object.entries(retained)) hears(name, payload, true);
  const send = async (desired: Desired): Promise<readonly string[]> => {
    const from = published.length;
    const command: Command = {
      charger: BAY,
      epoch: 1,
      seq,
      desired,
      until: null,
      vehicle: null,
      event: null,
      cause: "event",
      decidedAt: instant(Date.now()),
    };
    const sent = await line.send({ ...command, ...(own === undefined ? {} : { own }) }, seconds(180), before);
    expect(sent).toMatchObject({ ok: true });
    own = sent.ok ? sent.own : own;
    return published.slice(from);
  };
  return {
    hears,
    messages,
    stored: (): OwnValues | undefined => own,
    /** A new command, and what is published for it. */
    async told(desired: Desired): Promise<readonly string[]> {
      seq += 1;
      const sent = await send(desired);
      before = desired;
      return sent;
    },
    /** The same command once more, as control sends it after the driver asks for it. */
    again: (desired: Desired): Promise<readonly string[]> => send(desired),
    reconnects: (): void => {
      line.brokerDown();
      line.brokerUp();
    },
    kinds: (kind: ChargerMessage["kind"]) => messages.filter((message) => message.kind === kind),
    acks: () =>
      messages.flatMap((message) =>
        message.kind === "ack"
          ? [`${message.accepted} ${message.reason}`]
          : message.kind === "unconfirmed"
            ? [`false ${message.reason}`]
            : [],
      ),
    drawn: () =>
      messages.findLast((message) => message.kind === "telemetry")?.lastKnown?.currentsA?.[0] ?? null,
  };
}

const OWNED = { mode: "minpv", maxCurrent: "16", phasesConfigured: "0" };

describe("the settings of the owner of a loadpoint", () => {
  test("are restored after the event: mode, current and automatic phases", async () => {
    const point = aLoadpoint(OWNED);
    expect(await point.told(A(8))).toEqual(["maxCurrent 8", "phasesConfigured 0", "mode now"]);
    point.hears("mode", "now");
    point.hears("maxCurrent", 8);
    expect(await point.told(RELEASE)).toEqual(["mode minpv", "maxCurrent 16", "phasesConfigured 0"]);
    point.hears("maxCurrent", 16);
    expect(point.acks()).toEqual(["true null"]);
    point.hears("mode", "minpv");
    expect(point.acks()).toEqual(["true null", "true null"]);
  });

  test("are read anew at each event, but not before a release has arrived", async () => {
    const point = aLoadpoint(OWNED);
    await point.told(A(8));
    point.hears("mode", "now");
    point.hears("maxCurrent", 8);
    await point.told(RELEASE);
    await point.told(A(10));
    expect(await point.told(RELEASE)).toContain("mode minpv");
    point.hears("mode", "minpv");
    point.hears("maxCurrent", 16);
    point.hears("mode", "pv");
    point.hears("maxCurrent", 20);
    await point.told(A(10));
    point.hears("mode", "now");
    expect(await point.told(RELEASE)).toEqual(["mode pv", "maxCurrent 20", "phasesConfigured 0"]);
  });

  test("are given back after a restart during an event", async () => {
    const point = aLoadpoint({ ...OWNED, mode: "off" });
    await point.told(A(8));
    const current = { ...OWNED, mode: "now", maxCurrent: "8" };
    const restarted = aLoadpoint(current, { before: A(8), own: point.stored() });
    expect(await restarted.told(RELEASE)).toEqual(
      expect.arrayContaining(["mode off", "maxCurrent 16", "phasesConfigured 0"]),
    );
    const refreshed = aLoadpoint(current, { before: A(8), own: point.stored() });
    await refreshed.told(A(8));
    expect(refreshed.stored()).toEqual(point.stored());
    expect(await refreshed.told(RELEASE)).toContain("mode off");
  });

  test("are not known after a restart during an event of an older version: releaseMode and the largest current are set", async () => {
    const point = aLoadpoint();
    expect(await point.told(A(8))).toEqual(["maxCurrent 8", "mode now"]);
    expect(await point.told(RELEASE)).toEqual(["mode pv", "maxCurrent 32"]);
  });

  test("include off: the loadpoint is not started, and goes off again after a pause", async () => {
    const point = aLoadpoint({ ...OWNED, mode: "off" });
    expect(await point.told(A(8))).toEqual(["maxCurrent 8", "phasesConfigured 0"]);
    await point.told(PAUSE);
    expect(await point.told(A(10))).toEqual(["maxCurrent 10", "phasesConfigured 0"]);
    expect(await point.told(RELEASE)).toContain("mode off");
  });

  test("include off during the event", async () => {
    const point = aLoadpoint(OWNED);
    await point.told(A(8));
    point.hears("mode", "now");
    point.hears("maxCurrent", 8);
    point.hears("mode", "off");
    expect(await point.told(A(10))).not.toContain("mode now");
    expect(await point.told(RELEASE)).toContain("mode off");
  });
});

test("phases that are switched with a level are not undone by an earlier report of evcc", async () => {
  const point = aLoadpoint(OWNED);
  const onOne: Desired = {
    kind: "current",
    amperes: amperes(8),
    phases: { count: 1, since: instant(0), chargingSince: null },
  };
  const sent = await point.told(onOne);
  expect(sent.filter((line) => line.startsWith("phasesConfigured"))).toEqual(["phasesConfigured 1"]);
  point.hears("phasesConfigured", 1);
  point.hears("mode", "now");
  point.hears("maxCurrent", 8);
  expect((await point.told(RELEASE)).at(-1)).toBe("phasesConfigured 0");
});

test("a release that evcc refuses is not accepted, and the reason names the mode", async () => {
  const point = aLoadpoint(OWNED);
  await point.told(A(8));
  point.hears("mode", "now");
  await point.told(RELEASE);
  vi.advanceTimersByTime(10_000);
  expect(point.acks().at(-1)).toBe("false not confirmed within 10 s, it repeats now instead of minpv");
});

test("evcc is back at its first update after online, not at online itself", () => {
  const point = aLoadpoint({ "evcc/status": "online" });
  point.hears("evcc/status", "offline");
  const said = () => point.kinds("online").map((message) => message.kind === "online" && message.online);
  expect(said()).toEqual([true, false]);
  point.hears("evcc/status", "online");
  point.hears("evcc/updated", 1_795_262_400, true);
  expect(said()).toEqual([true, false]);
  point.hears("evcc/updated", 1_795_262_401);
  expect(said()).toEqual([true, false, true]);
});

/** The first command goes out between the retained online and the first ready message. */
const commandedEarly = async () => {
  const point = aLoadpoint({ ...OWNED, "evcc/status": "online" });
  const first = await point.told(A(8));
  return { point, first };
};

describe("a command that was sent while evcc starts, after its retained online", () => {
  test("is requested again, whole, at the first live update, and only there", async () => {
    const { point, first } = await commandedEarly();
    point.hears("evcc/updated", 1_795_262_400, true);
    point.hears("mode", "minpv");
    expect(point.kinds("forgot")).toHaveLength(0);
    point.hears("evcc/updated", 1_795_262_401);
    expect(point.kinds("forgot")).toHaveLength(1);
    expect(await point.again(A(8))).toEqual(first);
    point.hears("evcc/updated", 1_795_262_411);
    expect(point.kinds("forgot")).toHaveLength(1);
    await point.told(A(10));
    point.hears("evcc/updated", 1_795_262_421);
    expect(point.kinds("forgot")).toHaveLength(1);
  });

  test("is not requested again if evcc has shown it, or without a command", async () => {
    const { point } = await commandedEarly();
    point.hears("mode", "now");
    point.hears("maxCurrent", 8);
    expect(point.acks()).toEqual(["true null"]);
    point.hears("evcc/updated", 1_795_262_401);
    expect(point.kinds("forgot")).toHaveLength(0);
    const idle = aLoadpoint({ ...OWNED, "evcc/status": "online" });
    idle.hears("evcc/updated", 1_795_262_401);
    expect(idle.kinds("forgot")).toHaveLength(0);
  });

  test("is sent again once, by its return, if evcc comes back live", async () => {
    const { point } = await commandedEarly();
    point.hears("evcc/status", "offline");
    point.hears("evcc/status", "online");
    point.hears("evcc/updated", 1_795_262_401);
    expect(point.kinds("forgot")).toHaveLength(0);
    expect(point.kinds("online").at(-1)).toMatchObject({ online: true, snapshot: false });
  });

  test("is requested again after each return of the broker", async () => {
    const { point } = await commandedEarly();
    point.hears("evcc/updated", 1_795_262_401);
    point.reconnects();
    point.hears("evcc/updated", 1_795_262_411);
    expect(point.kinds("forgot")).toHaveLength(2);
  });

  test("is requested again after a broker's return, although evcc showed it before", async () => {
    const { point } = await commandedEarly();
    point.hears("mode", "now");
    point.hears("maxCurrent", 8);
    point.hears("evcc/updated", 1_795_262_401);
    point.reconnects();
    point.hears("evcc/updated", 1_795_262_411);
    expect(point.kinds("forgot")).toHaveLength(1);
  });
});

test("a mode or a current that is overwritten is sent again at once, and at most once a minute", async () => {
  const point = aLoadpoint(OWNED);
  await point.told(PAUSE);
  point.hears("mode", "minpv");
  expect(point.kinds("forgot")).toHaveLength(0);
  point.hears("mode", "off");
  point.hears("mode", "now");
  expect(point.kinds("forgot")).toHaveLength(1);
  point.hears("mode", "off");
  point.hears("mode", "now");
  expect(point.kinds("forgot")).toHaveLength(1);
  vi.advanceTimersByTime(60_000);
  point.hears("mode", "off");
  point.hears("mode", "now");
  expect(point.kinds("forgot")).toHaveLength(2);
  await point.told(A(8));
  vi.advanceTimersByTime(60_000);
  point.hears("maxCurrent", "8.0");
  point.hears("maxCurrent", 6);
  expect(point.kinds("forgot")).toHaveLength(2);
  point.hears("maxCurrent", 16);
  expect(point.kinds("forgot")).toHaveLength(3);
  await point.told(RELEASE);
  point.hears("mode", "minpv");
  vi.advanceTimersByTime(60_000);
  point.hears("mode", "now");
  expect(point.kinds("forgot")).toHaveLength(3);
});

test("a current that is overwritten after the clock was set back is sent again", async () => {
  const point = aLoadpoint(OWNED);
  await point.told(A(8));
  const overwrite = (): void => {
    point.hears("maxCurrent", 8);
    point.hears("maxCurrent", 16);
  };
  overwrite();
  vi.setSystemTime(Date.UTC(2026, 10, 21));
  overwrite();
  expect(point.kinds("forgot")).toHaveLength(2);
});

test("a burst of values is judged when it is over: new power never beside old currents", async () => {
  const point = aLoadpoint(OWNED);
  for (const phase of [1, 2, 3]) point.hears(`chargeCurrents/l${phase}`, 32);
  point.hears("chargePower", 22_080);
  vi.advanceTimersByTime(2000);
  expect(point.drawn()).toBe(32);
  await point.told(A(8));
  point.hears("chargePower", 5520);
  point.hears("maxCurrent", 8);
  point.hears("chargeCurrents/l1", 8);
  expect(point.drawn()).toBeNull();
  vi.advanceTimersByTime(2000);
  expect(point.drawn()).toBe(8);
});
