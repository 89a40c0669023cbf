import { expect, test } from "vitest";

import { answerHoldMessage } from "../../src/operator/holdRequest.ts";
import { aDepot } from "../support/aDepot.ts";

const request = {
  scope: { charger: "bay-01" },
  kind: "level",
  level: { currentA: 8 },
  until: { at: "2026-11-21T02:00:00Z" },
  reason: "leaves early",
};

const KNOWN = "one of scope, kind, level, until, reason";

const answered = async (payload: string, retained = false) => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const result = await answerHoldMessage(
    { open: (body) => depot.hold(body), endOver: (scope, body) => depot.endHoldOver(scope, body) },
    { payload: Buffer.from(payload), retained },
  );
  return { answer: JSON.parse(result), depot };
};

test("a hold from MQTT is opened, and the answer names it and the charger's level", async () => {
  const { answer, depot } = await answered(JSON.stringify(request));
  expect(answer).toMatchObject({ state: "open", effect: [{ charger: "bay-01", level: { currentA: 8 } }] });
  expect(depot.holds()).toMatchObject({ value: [{ id: answer.id }] });
});

test("a number that is too large for JavaScript is shown as it was read", async () => {
  const { answer } = await answered(JSON.stringify(request).replace('"currentA":8', '"currentA":1e400'));
  expect(answer).toMatchObject({ errors: [{ path: "level", found: { currentA: "Infinity" } }] });
});

test.each([
  ["a retained message", JSON.stringify(request), true, "a message that is not retained"],
  ["no JSON", "{pause", false, "a JSON object"],
  ["a list", "[]", false, "a JSON object"],
  ["16 KiB and more", " ".repeat(16_385), false, "at most 16384 bytes"],
  [
    "a member that every object of JavaScript has",
    JSON.stringify({ ...request, constructor: 1 }),
    false,
    KNOWN,
  ],
  ["a member named __proto__", JSON.stringify(request).replace("{", '{"__proto__":1,'), false, KNOWN],
  ["no reason", JSON.stringify({ ...request, reason: "" }), false, "why, in 1 to 200 characters"],
])("%s is answered with the problem, and nothing is opened", async (_, payload, retained, expected) => {
  const { answer, depot } = await answered(payload, retained);
  const path = answer.errors[0].path === "" ? "body" : answer.errors[0].path;
  expect(answer).toMatchObject({ status: 400, errors: [{ expected }] });
  expect(answer.detail).toContain(`${path}: ${expected}`);
  expect(depot.holds()).toEqual({ ok: true, value: [] });
});

test("the hold over a charger is ended without its id, the one of the vehicle there included, and no hold of the site", async () => {
  const depot = await aDepot().withVehicle("v1", "bay-01").running();
  const send = async (body: unknown) =>
    JSON.parse(
      await answerHoldMessage(
        {
          open: (opened) => depot.hold(opened),
          endOver: (scope, reason) => depot.endHoldOver(scope, reason),
        },
        { payload: Buffer.from(JSON.stringify(body)), retained: false },
      ),
    );
  const until = request.until;
  await send({ scope: { site: true }, kind: "exempt", until, reason: "works" });
  const charger = await send(request);
  const vehicle = await send({ ...request, scope: { vehicle: "v1" } });
  const end = { end: true, scope: { charger: "bay-01" }, reason: "Home Assistant" };
  expect(await send(end)).toMatchObject({
    id: vehicle.id,
    state: "ended",
    ended: { by: "mqtt", why: "Home Assistant" },
  });
  expect(await send(end)).toMatchObject({ id: charger.id, state: "ended" });
  expect(await send(end)).toMatchObject({ status: 404, title: "no hold is open on bay-01" });
  const other = await send({ ...request, scope: { vehicle: "v1" } });
  expect(await send({ ...end, scope: { vehicle: "v1" } })).toMatchObject({ id: other.id, state: "ended" });
  expect(await send({ ...end, scope: { vehicle: "v1" } })).toMatchObject({ status: 404 });
  expect(await send({ ...end, scope: { charger: "bay-09" } })).toMatchObject({ status: 400 });
  expect(await send({ ...end, reason: "" })).toMatchObject({ status: 400, errors: [{ path: "" }] });
});
