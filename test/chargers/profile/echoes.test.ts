import { expect, test } from "vitest";

import { Echoes } from "../../../src/chargers/profile/reported.ts";
import { boundTo } from "./aTrial.ts";

const mode = (payload: string) => ({ topic: "S/Set/Mode", payload, qos: 1, retain: false }) as const;

test("a payload that the charger shows is not sent again, until another one is sent or the charger was offline", () => {
  const echoes = new Echoes(boundTo("smartevse", { prefix: "S" }));
  expect(echoes.isNeeded(mode("Pause"))).toBe(true);
  echoes.record("S/Mode", "Pause");
  expect(echoes.isNeeded(mode("Pause"))).toBe(false);
  expect(echoes.isNeeded(mode("Normal"))).toBe(true);
  expect(echoes.isNeeded(mode("Pause"))).toBe(true);
  echoes.record("S/Mode", "Pause");
  echoes.forget();
  expect(echoes.isNeeded(mode("Pause"))).toBe(true);
});

test("an echo from before the last command does not count for it", () => {
  const echoes = new Echoes(boundTo("smartevse", { prefix: "S" }));
  expect(echoes.isNeeded(mode("Normal"))).toBe(true);
  echoes.record("S/Mode", "Pause");
  expect(echoes.isNeeded(mode("Pause"))).toBe(true);
  echoes.record("S/Mode", "Normal");
  expect(echoes.isNeeded(mode("Normal"))).toBe(true);
  echoes.record("S/Mode", "Normal");
  expect(echoes.isNeeded(mode("Normal"))).toBe(false);
});

test("payloads of other topics are always sent", () => {
  const echoes = new Echoes(boundTo("smartevse", { prefix: "S" }));
  echoes.record("S/Set/CurrentOverride", "160");
  expect(echoes.isNeeded({ topic: "S/Set/CurrentOverride", payload: "160", qos: 1, retain: false })).toBe(
    true,
  );
});
