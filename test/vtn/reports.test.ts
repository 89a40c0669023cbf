import { expect, test } from "vitest";
import { instant, millis } from "../../src/core/units.ts";
import { ReportClient } from "../../src/vtn/reports.ts";
import { TokenSource } from "../../src/vtn/token.ts";
import { type AServer, aLog, aServer, drip, json } from "./aServer.ts";

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
    ...clocks,
  });
  const path = "/energy-coordination/v1/reports";
  const client = new ReportClient({ baseUrl: `${server.origin}/api/`, path, tokens, mayAsk, ...clocks });
  return {
    server,
    identity,
    client,
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
    words: '{"id":"R-1"}',
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

test("a partner's words are kept to a line that a terminal can show", async () => {
  const words = `no\u001b[31m such\n\r\nevent\u0000 ${"x".repeat(5000)}`;
  await using partner = await aPartner(json(words, 400));
  const answer = await partner.client.post(BODY);
  if (answer.kind !== "answered") throw new Error(answer.reason);
  expect(answer.words).toMatch(/^no \[31m such event x+…$/);
  expect(answer.words).toHaveLength(1001);
});

test("a Retry-After is told (F33), and a partner that does not answer is a value", async () => {
  await using partner = await aPartner(json({}, 503, { "retry-after": "30" }));
  expect(await partner.client.post(BODY)).toMatchObject({ status: 503, retryAfter: 30_000 });
  partner.server.answer = drip;
  expect(await partner.client.post(BODY)).toEqual({
    kind: "silent",
    reason: "no complete answer within 400 ms",
    retryAfter: null,
  });
});

test("L4: no more than 120 requests in an hour, and none where all the requests of the hour are spent", async () => {
  await using partner = await aPartner(json({}, 500));
  for (let asked = 0; asked < 130; asked += 1) await partner.client.post(BODY);
  expect(partner.server.seen).toHaveLength(120);
  await using spent = await aPartner(json({}), () => false);
  expect(await spent.client.post(BODY)).toMatchObject({ reason: "this hour's requests are spent" });
  expect(spent.server.seen).toEqual([]);
});
