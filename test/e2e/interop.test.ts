import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

import { anEvent, aSite, type Site, WEBHOOK_SECRET } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { type Contract, partnerContract } from "../support/partnerContract.ts";
import { type Exchange, RecordingProxy } from "../support/recordingProxy.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** On the energy used, once, after the end. */
const DESCRIPTOR = {
  payloadType: "USAGE",
  readingType: "DIRECT_READ",
  aggregate: false,
  frequency: -1,
  historical: true,
  numIntervals: -1,
  repeat: 1,
  startInterval: -1,
};

/** Of everything that setpointd can say, and of what it cannot. */
const ASKS: readonly Partial<typeof DESCRIPTOR>[] = [
  {},
  { aggregate: true },
  { payloadType: "DEMAND", readingType: "MEAN", numIntervals: 1, frequency: 1, repeat: 2 },
  { payloadType: "DEMAND", readingType: "PEAK" },
  { payloadType: "READING" },
  { payloadType: "SETPOINT", readingType: "FORECAST", historical: false },
  { payloadType: "OPERATING_STATE" },
  { payloadType: "STORAGE_CHARGE_LEVEL" },
  { payloadType: "BASELINE" },
  { payloadType: "DATA_QUALITY" },
  { payloadType: "x-private" },
];

/** bay-01 says something of itself. */
const telling = (site: Site, state: string, powerW: number, energyWh: number): Promise<void> =>
  site.floor.publish(
    "setpointd/depot/chargers/bay-01/telemetry",
    JSON.stringify({
      at: new Date().toISOString(),
      state,
      powerW,
      energyWh,
      currentsA: [16, 16, 16],
      soc: 71,
    }),
  );

/** The daemon reaches the partner only through the proxy. */
function through(site: Site, proxy: RecordingProxy, more: object, sections: object = {}): void {
  const { vtn } = parse(readFileSync(site.config, "utf8")) as { vtn: object };
  const reached = { baseUrl: proxy.url, tokenUrl: `${proxy.url}/connect/token` };
  site.configure({ ...sections, vtn: { ...vtn, ...reached, ...more } });
}

const wrongIn = (contract: Contract, exchanges: readonly Exchange[]): readonly string[] =>
  exchanges.flatMap((exchange) => contract(exchange));

const paths = (exchanges: readonly Exchange[]): readonly string[] =>
  [...new Set(exchanges.map(({ method, path, status }) => `${method} ${path} ${status}`))].toSorted();

/** As it would have passed. */
const report = (body: object): Exchange => ({
  method: "POST",
  path: "/vtn/v1/reports",
  headers: { authorization: "Bearer abc", "content-type": "application/json" },
  body: JSON.stringify(body),
  status: 201,
  answer: JSON.stringify({ id: "R-1" }),
});

describe.skipIf(!mosquittoAvailable)(
  "by the description of the partner's interface, and a validator not ours",
  () => {
    test.each(["energy-coordination", "vtn"])(
      "every request of ours and every answer of the simulated partner is right (%s)",
      async (family) => {
        const contract = await partnerContract();
        await using site = await aSite();
        await using proxy = await RecordingProxy.before(site.partner.baseUrl);
        through(site, proxy, {
          family,
          pollEvery: "1s",
          prices: {
            regions: ["NO1", "XX9"],
            forecastPath: "/smart/v1/prices/forecast/{region}?segmentSize=6",
          },
        });
        site.partner.put(
          anEvent("EV-1", {
            lastsMs: MINUTE,
            randomizeStartMs: 10 * SECOND,
            reportDescriptors: [DESCRIPTOR],
          }),
        );
        site.partner.put(anEvent("EV/2 æ", { lastsMs: MINUTE, kilowatts: 7.4, vehicles: ["veh-2"] }));
        await using daemon = await site.run();
        await waitFor(async () => (await daemon.view<unknown[]>("/api/v1/events")).length === 2);
        // Missing from two lists, it is asked for by id, and is gone; a token that holds no more is fetched anew.
        site.partner.withdraw("EV/2 æ");
        await waitFor(() => daemon.line("was withdrawn (fetch)"), { timeoutMs: 15_000 });
        site.partner.revokeTokens();
        await waitFor(() => proxy.exchanges.some(({ status }) => status === 401), { timeoutMs: 15_000 });
        await waitFor(() => proxy.exchanges.at(-1)?.status === 200);

        expect(wrongIn(contract, proxy.exchanges)).toEqual([]);
        expect(paths(proxy.exchanges)).toEqual(
          [
            `GET /${family}/v1/events 200`,
            `GET /${family}/v1/events 401`,
            `GET /${family}/v1/events/EV%2F2%20%C3%A6 404`,
            "GET /smart/v1/prices/actual/NO1 200",
            "GET /smart/v1/prices/actual/XX9 404",
            "GET /smart/v1/prices/forecast/NO1?segmentSize=6 200",
            "GET /smart/v1/prices/forecast/XX9?segmentSize=6 404",
            "POST /connect/token 200",
          ].toSorted(),
        );
      },
    );

    test.each([
      ["openadr30", "energy-coordination", ["programID", "eventID", "clientName"]],
      ["openadr31", "vtn", ["eventID", "clientName"]],
      ["vehicleChargeAction", "vtn", ["eventId", "name"]],
    ] as const)(
      "every report in the format %s, whatever is asked for, is taken by the partner's description",
      async (format, family, [first, ...more]) => {
        const contract = await partnerContract();
        await using site = await aSite();
        await using proxy = await RecordingProxy.before(site.partner.baseUrl);
        const location = { latitude: 59.91, longitude: 10.75 };
        const report = { format, location, settleDelay: "0s", minInterval: "1s" };
        through(site, proxy, { family }, { report });
        const reportDescriptors = ASKS.map((ask) => ({ ...DESCRIPTOR, ...ask }));
        site.partner.put(anEvent("EV-1", { lastsMs: 2 * SECOND, startIn: SECOND, reportDescriptors }));
        await using daemon = await site.run();
        await telling(site, "charging", 11_040, 1000);
        await waitFor(() => site.partner.reports.accepted.length >= ASKS.length, { timeoutMs: 20_000 });
        const posts = proxy.exchanges.filter(({ path }) => path.endsWith("/reports"));
        expect(wrongIn(contract, proxy.exchanges)).toEqual([]);
        expect(paths(posts)).toEqual([`POST /${family}/v1/reports 201`]);
        for (const { body } of posts) {
          const members: unknown = JSON.parse(body);
          for (const member of [first, ...more]) expect(members).toHaveProperty(member);
          expect(Object.keys(Object(members)).includes("programID")).toBe(first === "programID");
        }
        expect(daemon.line("not as hoped")).toBeUndefined();
      },
    );

    test("the simulated partner delivers, and the webhook answers, as described", async () => {
      const contract = await partnerContract();
      await using site = await aSite();
      await using daemon = await site.run();
      const { origin, pathname } = new URL(daemon.webhookUrl);
      await using proxy = await RecordingProxy.before(origin);
      site.partner.webhookTo({ url: `${proxy.url}${pathname}`, secret: WEBHOOK_SECRET });
      // Else the first list could bring the event before the delivery does.
      await waitFor(() => daemon.line("the partner answers"), { timeoutMs: 15_000 });
      site.partner.put(anEvent("EV-1", { lastsMs: MINUTE, randomizeStartMs: SECOND }));
      for (const operation of ["CREATE", "UPDATE", "DELETE"] as const)
        expect(await site.partner.deliver("EV-1", { operation })).toMatchObject({ status: 202, attempts: 1 });
      expect(proxy.exchanges.map(({ answer }) => JSON.parse(answer))).toEqual([
        { accepted: 1, repeats: 0, rejected: 0 },
        { accepted: 0, repeats: 1, rejected: 0 },
        { accepted: 1, repeats: 0, rejected: 0 },
      ]);
      expect(wrongIn(contract, proxy.exchanges)).toEqual([]);
    });

    test("deviations from the description are found: a guard on the guard", async () => {
      const contract = await partnerContract();
      const headers = { authorization: "Bearer abc", accept: "application/json" };
      const list: Exchange = {
        method: "GET",
        path: "/vtn/v1/events",
        headers,
        body: "",
        status: 200,
        answer: "[]",
      };
      const event = anEvent("EV-1", { lastsMs: MINUTE });
      expect(contract(list)).toEqual([]);
      expect(contract({ ...list, answer: JSON.stringify([{ ...event, id: "EV-1" }]) })).toEqual([
        "listVtn answer: /0 must NOT have additional properties",
      ]);
      const { ID: _, ...nameless } = event;
      for (const wrong of [
        { answer: JSON.stringify([nameless]) },
        { answer: JSON.stringify([{ ...event, priority: "1" }]) },
        {
          answer: JSON.stringify([
            { ...event, intervalPeriod: { ...event.intervalPeriod, duration: "PT1H" } },
          ]),
        },
        { answer: JSON.stringify({ events: [] }) },
        { headers: { accept: "application/json" } },
        { path: "/vtn/v2/events" },
        { path: "/vtn/v1/events?skip=50" },
        { status: 418 },
      ])
        expect(contract({ ...list, ...wrong })).toHaveLength(1);
      const resources = [
        { resourceName: "veh-1", intervals: [{ id: 0, payloads: [{ type: "USAGE", values: [1] }] }] },
      ];
      const members = { programID: "PRG-1", eventID: "EV-1", clientName: "depot", resources };
      expect(contract(report(members))).toEqual([]);
      expect(contract(report({ ...members, eventID: undefined }))).not.toEqual([]);
      expect(
        contract(report({ ...members, resources: [{ resourceName: "veh-1", intervals: [] }] })),
      ).not.toEqual([]);
      expect(contract({ ...report(members), headers: { "content-type": "application/json" } })).toHaveLength(
        1,
      );
    });
  },
);
