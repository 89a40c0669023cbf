import { expect, test } from "vitest";
import { instant, millis } from "../../src/domain/units.ts";
import { PriceClient } from "../../src/vtn/prices.ts";
import { TokenSource } from "../../src/vtn/token.ts";
import { type AServer, aLog, aServer, drip, json } from "./aServer.ts";
import { aDialect } from "../support/aDialect.ts";

const NO1 = { region: "NO1", kind: "actual" } as const;
const NO2 = { region: "NO2", kind: "actual" } as const;
const PRICES = { priceArea: "NO1", prices: { "2026-11-21T12:00:00Z": 0.4 } };

/** A partner whose price endpoints answer as told, and a client of ours. */
async function aPartner(answer: AServer["answer"], mayAsk: () => boolean = () => true) {
  let issued = 0;
  const server = await aServer(answer);
  const identity = await aServer((response, seen) => {
    issued += 1;
    json({ access_token: `token-${issued}` })(response, seen);
  });
  const time = { now: Date.UTC(2026, 10, 21, 12) };
  const clocks = { now: () => instant(time.now), monotonic: () => time.now, deadline: millis(400) };
  const tokens = new TokenSource({
    tokenUrl: `${identity.origin}/connect/token`,
    clientId: "depot",
    clientSecret: () => "hush",
    scope: null,
    log: aLog().log,
    random: () => 1,
    ...clocks,
  });
  const forecastPath = "/smart/v1/prices/forecast/{region}?segmentSize=6";
  const dialect = aDialect({ vtn: { prices: { forecastPath } } });
  const client = new PriceClient({ baseUrl: `${server.origin}/api/`, dialect, tokens, mayAsk, ...clocks });
  return {
    server,
    identity,
    tokens,
    client,
    time,
    async [Symbol.asyncDispose]() {
      for (const part of [client, tokens, server, identity]) await part[Symbol.asyncDispose]();
    },
  };
}

test("prices are requested as partner-interface 4.2 describes, with the token of the events", async () => {
  await using partner = await aPartner(json(PRICES));
  expect(await partner.client.ask(NO1)).toMatchObject({
    kind: "read",
    series: {
      ...NO1,
      fetchedAt: partner.time.now,
      prices: [{ value: 0.4 }],
      doubts: [],
      raw: JSON.stringify(PRICES),
    },
  });
  await partner.client.ask({ region: "NO1", kind: "forecast" });
  expect(partner.server.seen.map(({ url }) => url)).toEqual([
    "/api/smart/v1/prices/actual/NO1",
    "/api/smart/v1/prices/forecast/NO1?segmentSize=6",
  ]);
  expect(partner.server.seen[0]?.headers).toMatchObject({
    accept: "application/json",
    authorization: "Bearer token-1",
  });
  expect(partner.identity.seen).toHaveLength(1);
});

test("a region that the partner does not have costs the others nothing, and is not asked for again soon", async () => {
  await using partner = await aPartner((response, seen) =>
    seen.url.endsWith("NO2") ? json({}, 404)(response, seen) : json(PRICES)(response, seen),
  );
  const [first, second] = await Promise.all([partner.client.ask(NO2), partner.client.ask(NO1)]);
  expect(first).toEqual({
    kind: "failed",
    reason: "the partner answered 404",
    retry: false,
    retryAfter: null,
  });
  expect(second.kind).toBe("read");
});

test("rights that we do not have are no matter of trying again", async () => {
  await using partner = await aPartner(json({}, 403));
  expect(await partner.client.ask(NO1)).toMatchObject({
    kind: "failed",
    reason: "the partner does not let us read prices",
    retry: false,
  });
});

test("prices that refuse every token do not shut the events out (F34)", async () => {
  await using partner = await aPartner(json({}, 401));
  const answers = await Promise.all([NO1, NO2, NO1].map((query) => partner.client.ask(query)));
  for (const answer of answers) expect(answer).toMatchObject({ kind: "failed", retry: true });
  expect(partner.server.seen).toHaveLength(2);
  expect(await partner.tokens.get()).toEqual({ kind: "token", token: "token-2" });
});

test("nothing is asked inside the window of a Retry-After, for any region (F33)", async () => {
  await using partner = await aPartner(json({}, 429, { "retry-after": "30" }));
  const refused = { kind: "failed", reason: "the partner answered 429", retry: true };
  expect(await partner.client.ask(NO1)).toEqual({ ...refused, retryAfter: 30_000 });
  partner.time.now += 29_000;
  expect(await partner.client.ask(NO2)).toEqual({ ...refused, retryAfter: 1000 });
  expect(partner.server.seen).toHaveLength(1);
  partner.time.now += 1000;
  await partner.client.ask(NO2);
  expect(partner.server.seen).toHaveLength(2);
});

test("L4: no more than 60 price requests in an hour, and none where all the requests of the hour are spent", async () => {
  await using partner = await aPartner(json(PRICES));
  for (let asked = 0; asked < 70; asked += 1) await partner.client.ask(NO1);
  expect(partner.server.seen).toHaveLength(60);
  expect(await partner.client.ask(NO1)).toMatchObject({ kind: "failed", retry: true });
  await using spent = await aPartner(json(PRICES), () => false);
  expect(await spent.client.ask(NO1)).toMatchObject({ reason: "this hour's requests are spent" });
  expect(spent.server.seen).toEqual([]);
});

test.each<readonly [string, AServer["answer"], string]>([
  ["an HTML page", json("<html></html>", 200, { "content-type": "text/html" }), "failed"],
  ["an HTML page that calls itself JSON", json("<html></html>"), "unreadable"],
  ["an unknown shape", json({ status: "ok" }), "unreadable"],
  ["truncated JSON", json('{"prices":{"2026'), "unreadable"],
  ["a redirect", json(PRICES, 302, { location: "/elsewhere" }), "failed"],
  ["a 500", json({}, 500), "failed"],
  ["a body that drips", drip, "failed"],
  ["2 MiB", json(`[${" ".repeat(2 * 1024 * 1024)}]`), "failed"],
])("F31 F37 F42: %s is a value, and the next answer is read", async (_what, answer, kind) => {
  await using partner = await aPartner(answer);
  expect((await partner.client.ask(NO1)).kind).toBe(kind);
  partner.server.answer = json(PRICES);
  expect((await partner.client.ask(NO1)).kind).toBe("read");
});

test("a series without a path is not asked for", async () => {
  await using partner = await aPartner(json(PRICES));
  const { tokens, time } = partner;
  const clocks = { now: () => instant(time.now), monotonic: () => time.now };
  await using client = new PriceClient({
    baseUrl: partner.server.origin,
    dialect: aDialect(),
    tokens,
    mayAsk: () => true,
    ...clocks,
  });
  expect(await client.ask({ region: "NO1", kind: "forecast" })).toMatchObject({
    kind: "failed",
    retry: false,
  });
  expect(partner.server.seen).toEqual([]);
});
