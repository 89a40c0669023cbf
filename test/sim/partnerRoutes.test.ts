import { request } from "undici";
import { expect, test } from "vitest";
import { instant } from "../../src/domain/units.ts";
import { SimulatedPartner } from "../../src/sim/partner.ts";
import { now } from "./clock.ts";
import { anEvent, CREDENTIALS, START } from "./partnerSetup.ts";

/** Token request of partner-interface 5. */
const FORM = {
  grant_type: "client_credentials",
  scope: "spk.spotprice spk.forecast",
  client_id: CREDENTIALS.clientId,
  client_secret: CREDENTIALS.clientSecret,
};

async function askToken(partner: SimulatedPartner, form: Record<string, string>) {
  const { statusCode, body } = await request(partner.tokenUrl, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(form).toString(),
  });
  return { statusCode, answer: (await body.json()) as Record<string, unknown> };
}

async function get(partner: SimulatedPartner, path: string, token: unknown) {
  const { statusCode, body, headers } = await request(`${partner.baseUrl}${path}`, {
    headers: { authorization: `Bearer ${String(token)}`, accept: "application/json" },
  });
  const text = await body.text();
  return { statusCode, headers, answer: text === "" ? null : (JSON.parse(text) as unknown) };
}

const tokenOf = async (partner: SimulatedPartner) => (await askToken(partner, FORM)).answer["access_token"];

test("correct credentials get a token for an hour", async () => {
  await using partner = await SimulatedPartner.start(START);
  expect(await askToken(partner, FORM)).toEqual({
    statusCode: 200,
    answer: { access_token: expect.any(String), expires_in: 3600 },
  });
  expect(partner.faults.requests.token).toBe(1);
});

test.each([
  ["a wrong secret", { client_secret: "guess" }, "invalid_client"],
  ["another grant", { grant_type: "password" }, "unsupported_grant_type"],
  ["an empty scope", { scope: "" }, "invalid_scope"],
  ["an unknown field", { audience: "x" }, "invalid_request"],
])("%s gets no token", async (_what, change, error) => {
  await using partner = await SimulatedPartner.start(START);
  expect(await askToken(partner, { ...FORM, ...change })).toMatchObject({
    statusCode: 400,
    answer: { error },
  });
});

test("both path families serve the list and single events to a client with a token", async () => {
  await using partner = await SimulatedPartner.start(START);
  const stored = partner.put(anEvent("EV/1 a"));
  const token = await tokenOf(partner);
  for (const family of ["energy-coordination", "vtn"]) {
    expect((await get(partner, `/${family}/v1/events`, token)).answer).toEqual([stored]);
    expect((await get(partner, `/${family}/v1/events/EV%2F1%20a`, token)).answer).toEqual(stored);
    expect((await get(partner, `/${family}/v1/events/EV-2`, token)).statusCode).toBe(404);
    expect((await get(partner, `/${family}/v1/events`, "stolen")).statusCode).toBe(401);
  }
  expect(partner.faults.requests).toMatchObject({ list: 4, event: 4 });
});

test("the list can be sent in the later envelope", async () => {
  await using partner = await SimulatedPartner.start({ ...START, envelope: "events" });
  const { answer } = await get(partner, "/vtn/v1/events", await tokenOf(partner));
  expect(answer).toEqual({ events: [] });
});

test("a token is rejected after its lifetime and after it was revoked", async () => {
  let time = now();
  await using partner = await SimulatedPartner.start({ ...START, now: () => time });
  const token = await tokenOf(partner);
  time = instant(time + 3_599_000);
  expect((await get(partner, "/vtn/v1/events", token)).statusCode).toBe(200);
  time = instant(time + 1000);
  expect((await get(partner, "/vtn/v1/events", token)).statusCode).toBe(401);
  const another = await tokenOf(partner);
  partner.revokeTokens();
  expect((await get(partner, "/vtn/v1/events", another)).statusCode).toBe(401);
});

test("the Date header shows the partner's own clock", async () => {
  await using partner = await SimulatedPartner.start({ ...START, now: () => instant(0) });
  const { headers } = await get(partner, "/vtn/v1/events", "none");
  expect(headers["date"]).toBe("Thu, 01 Jan 1970 00:00:00 GMT");
});

test("spot prices and forecasts are served by region; an unknown region gets 404", async () => {
  await using partner = await SimulatedPartner.start(START);
  const token = await tokenOf(partner);
  const asked = async (path: string) => get(partner, `/smart/v1/prices/${path}`, token);
  expect((await asked("actual/NO1")).answer).toMatchObject({ priceArea: "NO1", prices: expect.any(Object) });
  const { answer } = await asked("forecast/NO1?segmentSize=6");
  expect(answer).toMatchObject({ forecastSegments: { length: 28 } });
  expect((await asked("actual/XX9")).statusCode).toBe(404);
  expect((await asked("forecast/XX9")).statusCode).toBe(404);
});

test("planned failures happen as often as planned, and only on the planned endpoint", async () => {
  await using partner = await SimulatedPartner.start(START);
  const token = await tokenOf(partner);
  partner.faults.failNext(503, 2, "list");
  const statuses = [];
  for (const path of ["/vtn/v1/events/x", "/vtn/v1/events", "/vtn/v1/events", "/vtn/v1/events"])
    statuses.push((await get(partner, path, token)).statusCode);
  expect(statuses).toEqual([404, 503, 503, 200]);
});
