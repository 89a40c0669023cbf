import { expect, test } from "vitest";
import { instant, millis } from "../../src/domain/units.ts";
import { ReportClient } from "../../src/vtn/reports.ts";
import { TokenSource } from "../../src/vtn/token.ts";
import { type AServer, aLog, aServer, drip, json } from "./aServer.ts";
import { aDialect } from "../support/aDialect.ts";

const BODY = '{"eventID":"EV-1","resources":[]}';

/** A partner whose report endpoint answers as told, and a client of ours. */
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
  const nearlySpent: number[] = [];
  const client = new ReportClient({
    baseUrl: `${server.origin}/api/`,
    dialect: aDialect(),
    tokens,
    mayAsk,
    onNearlySpent: ({ made }) => nearlySpent.push(made),
    ...clocks,
  });
  return {
    server,
    identity,
    client,
    nearlySpent,
    time,
    async [Symbol.asyncDispose]() {
      for (const part of [client, tokens, server, identity]) await part[Symbol.asyncDispose]();
    },
  };
}

test("a report goes out as it was composed, with the token of the events, and the receipt comes back", async () => {
  await using partner = await aPartner(json({ id: "R-1" }, 201));
  expect(await partner.client.post(BODY)).toEqual({
    kind: "answered",
    status: 201,
    text: '{"id":"R-1"}',
    retryAfter: null,
  });
  const [seen] = partner.server.seen;
  expect(seen).toMatchObject({ method: "POST", url: "/api/energy-coordination/v1/reports", body: BODY });
  expect(seen?.headers).toMatchObject({
    "content-type": "application/json",
    authorization: "Bearer token-1",
  });
});

test("a refused token is renewed once, and no more (F34)", async () => {
  await using partner = await aPartner(json({}, 401));
  expect(await partner.client.post(BODY)).toMatchObject({ status: 401 });
  expect(partner.server.seen.map(({ headers }) => headers.authorization)).toEqual([
    "Bearer token-1",
    "Bearer token-2",
  ]);
});

test("a partner's answer is cut to a line that a terminal can show", async () => {
  const words = `no\u001b[31m such\n\r\nevent\u0000 ${"x".repeat(5000)}`;
  await using partner = await aPartner(json(words, 400));
  const answer = await partner.client.post(BODY);
  if (answer.kind !== "answered") throw new Error(answer.kind);
  expect(answer.text).toMatch(/^no \[31m such event x+…$/);
  expect(answer.text).toHaveLength(1001);
});

test("a Retry-After is reported (F33), and a partner that does not answer is a value", async () => {
  await using partner = await aPartner(json({}, 503, { "retry-after": "30" }));
  expect(await partner.client.post(BODY)).toMatchObject({ status: 503, retryAfter: 30_000 });
  partner.server.answer = drip;
  expect(await partner.client.post(BODY)).toEqual({
    kind: "silent",
    reason: "no complete answer within 400 ms",
    retryAfter: null,
  });
});

test("L4: no more than 120 requests in an hour, a warning from 96 on, and none where all the requests of the hour are spent", async () => {
  await using partner = await aPartner(json({}, 500));
  for (let asked = 0; asked < 130; asked += 1) await partner.client.post(BODY);
  expect(partner.server.seen).toHaveLength(120);
  expect([partner.nearlySpent, partner.client.nearlySpent]).toEqual([[96], { made: 120, most: 120 }]);
  await using spent = await aPartner(json({}), () => false);
  expect(await spent.client.post(BODY)).toMatchObject({ reason: "this hour's requests are spent" });
  expect(spent.server.seen).toEqual([]);
});

const NAMED = JSON.stringify({
  eventID: "EV 1/ø",
  reportName: "EV 1/ø/0/0",
  clientName: "depot",
  resources: [],
});
const reportNamed = (reportName: string) => ({ ...JSON.parse(NAMED), id: "R-1", reportName });

/** Refuses every report with this status, and lists these. */
const refusing =
  (status: number, listed: AServer["answer"]): AServer["answer"] =>
  (response, seen) =>
    seen.method === "POST" ? json({ title: "no" }, status)(response, seen) : listed(response, seen);

test.each([
  ["has it", json([reportNamed("other"), reportNamed("EV 1/ø/0/0")]), { kind: "checked", isListed: true }],
  ["has others", json({ reports: [reportNamed("other")] }), { kind: "checked", isListed: false }],
  ["has none", json([]), { kind: "checked", isListed: false }],
  ["does not list reports", json({}, 405), { kind: "answered", status: 409 }],
  ["lists nonsense", json("<html>"), { kind: "answered", status: 409 }],
])("after a 409 the partner is asked for the reports on that event: it %s", async (_what, listed, then) => {
  await using partner = await aPartner(refusing(409, listed));
  expect(await partner.client.post(NAMED)).toMatchObject({ status: 409, text: '{"title":"no"}', ...then });
  expect(partner.server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
    "POST /api/energy-coordination/v1/reports",
    "GET /api/energy-coordination/v1/reports?eventID=EV+1%2F%C3%B8",
  ]);
});

test("a 404 of an endpoint that lists reports is about the event, one of an endpoint that is not there is not", async () => {
  await using partner = await aPartner(refusing(404, json([])));
  expect(await partner.client.post(NAMED)).toMatchObject({ kind: "checked", status: 404, isListed: false });
  partner.server.answer = json({}, 404);
  expect(await partner.client.post(NAMED)).toMatchObject({ kind: "answered", status: 404 });
});

test("a list in pages is followed to its end, up to a limit", async () => {
  const page = Array.from({ length: 50 }, (_, index) => reportNamed(`other ${index}`));
  await using partner = await aPartner(
    refusing(409, (response, seen) =>
      json(seen.url.endsWith("skip=100") ? [reportNamed("EV 1/ø/0/0")] : page)(response, seen),
    ),
  );
  expect(await partner.client.post(NAMED)).toMatchObject({ kind: "checked", isListed: true });
  partner.server.answer = refusing(409, json(page));
  expect(await partner.client.post(NAMED)).toMatchObject({ kind: "answered", status: 409 });
  expect(partner.server.seen.length).toBeLessThanOrEqual(4 + 11);
});
