import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";

interface Received {
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Reads a stream until all of these were received. */
async function readUntil(
  url: string,
  headers: Readonly<Record<string, string>>,
  isEnough: (all: readonly Received[]) => boolean,
  onOpen: () => Promise<unknown> = async () => undefined,
  onBlock: (all: readonly Received[]) => Promise<unknown> = async () => undefined,
): Promise<readonly Received[]> {
  const stop = new AbortController();
  const response = await fetch(url, { headers, signal: stop.signal });
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const received: Received[] = [];
  let rest = "";
  let isOpen = false;
  for await (const chunk of response.body ?? []) {
    rest += Buffer.from(chunk).toString();
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const [id = "", event = "", data = "{}"] = block.split("\n").map((line) => line.replace(/^\w+: /, ""));
      if (block.startsWith("id: ")) received.push({ id, event, data: JSON.parse(data) as Received["data"] });
    }
    if (!isOpen) await onOpen();
    isOpen = true;
    await onBlock(received);
    if (isEnough(received)) break;
  }
  stop.abort();
  return received;
}

/** Different states of an event, in the order in which they were received. */
const statesOf = (all: readonly Received[], id: string) => [
  ...new Set(
    all.filter(({ event, data }) => event === "event" && data["id"] === id).map(({ data }) => data["state"]),
  ),
];

describe.skipIf(!mosquittoAvailable)("the live stream of a real daemon", () => {
  test("an event arrives again at its start and at its end, also one for vehicles of others only", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const events = [
      anEvent("EV-1", { startIn: 3_000, lastsMs: 3_000, vehicles: ["veh-1"] }),
      anEvent("EV-2", { startIn: 3_000, lastsMs: 3_000, vehicles: ["somebody-else"] }),
    ];
    const received = await readUntil(
      `${daemon.operatorUrl}/api/v1/stream`,
      {},
      (all) => ["EV-1", "EV-2"].every((id) => statesOf(all, id).includes("ended")),
      () => daemon.deliver(events),
    );
    expect(statesOf(received, "EV-1")).toEqual(["planned", "active", "ended"]);
    expect(statesOf(received, "EV-2")).toEqual(["planned", "active", "ended"]);
  });

  test("an event, its chargers, vehicles and rows of the record arrive as their lists show them", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    const url = `${daemon.operatorUrl}/api/v1/stream`;
    const has = (all: readonly Received[], event: string, member: string, value: unknown): boolean =>
      all.some((each) => each.event === event && each.data[member] === value);
    const received = await readUntil(
      url,
      {},
      (all) =>
        has(all, "event", "id", "EV-1") &&
        has(all, "charger", "charger", "bay-01") &&
        has(all, "vehicle", "id", "veh-1") &&
        has(all, "audit", "kind", "decision") &&
        all.some(({ event }) => event === "status"),
      () => daemon.deliver(anEvent("EV-1", { lastsMs: 60_000, amperes: 10, vehicles: ["veh-1"] })),
    );
    expect(received[0]).toMatchObject({ event: "reset", data: { because: "new" } });
    const last = (event: string) => received.findLast((each) => each.event === event)?.data;
    const [listed] = await daemon.view<Received["data"][]>("/api/v1/events");
    expect(last("event")).toEqual(listed);
    expect(Object.keys(last("charger") ?? {})).toEqual(
      Object.keys((await daemon.view<object[]>("/api/v1/chargers"))[0] ?? {}),
    );
    expect(last("vehicle")).toMatchObject({ id: "veh-1", charger: "bay-01", planned: [{ event: "EV-1" }] });
    const row = last("audit");
    const rows = await daemon.view<Received["data"][]>(`/api/v1/audit?after=${Number(row?.["seq"]) - 1}`);
    expect(row).toEqual(rows[0]);
    const cursor = received.at(-1)?.id ?? "";
    const at = new Date().toISOString();
    await site.floor.publish(
      "setpointd/depot/chargers/bay-02/telemetry",
      JSON.stringify({ at, state: "charging", powerW: 7000 }),
    );
    const resumed = await readUntil(url, { "last-event-id": cursor }, (all) =>
      all.some(({ event, data }) => event === "charger" && data["charger"] === "bay-02"),
    );
    expect(resumed.map(({ event }) => event)).not.toContain("reset");
  });

  test("a hold arrives as the list shows it: opened, sent to its charger, and ended", async () => {
    await using site = await aSite();
    await using daemon = await site.run();
    let [id, isEnding] = ["", false];
    const heldAs = (all: readonly Received[], verdict: string): boolean =>
      all.some(
        ({ event, data }) => event === "hold" && JSON.stringify(data).includes(`"verdict":"${verdict}"`),
      );
    const send = async (method: string, path: string, body: unknown) => {
      const response = await fetch(`${daemon.operatorUrl}/api/v1/${path}`, {
        method,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return (await response.json()) as Received["data"];
    };
    const received = await readUntil(
      `${daemon.operatorUrl}/api/v1/stream`,
      {},
      (all) => all.some(({ event, data }) => event === "hold" && data["state"] === "ended"),
      async () => {
        const body = {
          scope: { charger: "bay-01" },
          kind: "level",
          level: { currentA: 8 },
          until: { at: new Date(Date.now() + 3_600_000).toISOString() },
          reason: "tried",
        };
        id = String((await send("POST", "holds", body))["id"]);
      },
      async (all) => {
        const isSent = heldAs(all, "acknowledged") && !isEnding;
        isEnding ||= isSent;
        if (isSent) await send("DELETE", `holds/${id}`, { reason: "done" });
      },
    );
    const holds = received.filter(({ event }) => event === "hold");
    expect(new Set(holds.map(({ data }) => data["id"]))).toEqual(new Set([id]));
    expect(holds[0]?.data).toMatchObject({ state: "open", effect: [{ charger: "bay-01", applies: true }] });
    const [listed] = await daemon.view<Received["data"][]>("/api/v1/holds");
    expect(holds.at(-1)?.data).toEqual(listed);
  });
});
