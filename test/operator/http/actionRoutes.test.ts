import { afterEach, beforeEach, expect, test } from "vitest";

import { OperatorListener } from "../../../src/operator/http/server.ts";
import { someListener, someViews } from "../../support/aListener.ts";
import { someAnswers } from "../../support/someAnswers.ts";

let listener: OperatorListener;
beforeEach(async () => {
  listener = await OperatorListener.start(someListener(), Promise.resolve(someViews));
});
afterEach(() => listener[Symbol.asyncDispose]());

const api = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${listener.port}/api/v1/${path}`, init);

const send = (body: object): Promise<Response> =>
  api("chargers/bay-01/resend", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("the proof of an event is a file of its name, as JSON or CSV", async () => {
  const asJson = await api("events/EV%207731%2Fa/proof");
  expect([
    asJson.status,
    asJson.headers.get("content-type"),
    asJson.headers.get("content-disposition"),
  ]).toEqual([200, "application/json; charset=utf-8", 'attachment; filename="proof-EV_7731_a.json"']);
  expect(await asJson.json()).toEqual([someAnswers.proofFact]);
  const asCsv = await api("events/EV-1/proof?format=csv");
  expect([asCsv.headers.get("content-type"), await asCsv.text()]).toEqual([
    "text/csv; charset=utf-8",
    "section,what\n",
  ]);
});

test("without a proof the reason is answered as a problem", async () => {
  const refused = await api("events/EV-9/proof");
  expect([refused.status, refused.headers.get("content-disposition")]).toEqual([404, null]);
  expect(await refused.json()).toMatchObject({ detail: "nothing is known of an event EV-9" });
  expect((await api("events/EV-1/proof?format=xml")).status).toBe(400);
});

test("a charger is sent its setpoint again for a reason, by name", async () => {
  expect(await (await send({ reason: "it does not follow" })).json()).toMatchObject({
    charger: "bay-01",
    sentence: "sent again by loopback",
  });
  expect((await send({})).status).toBe(400);
});
