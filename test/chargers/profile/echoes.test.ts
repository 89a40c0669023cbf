import { expect, test } from "vitest";

import { Echoes } from "../../../src/chargers/profile/echoes.ts";
import { boundTo } from "./aTrial.ts";

const mode = (payload: string) => ({ topic: "S/Set/Mode", payload, qos: 1, retain: false }) as const;

test("what a charger shows is no news to it, until it is told something else or has gone away", () => {
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

test("what left the charger before it took the last mode does not pass for that mode", () => {
  const echoes = new Echoes(boundTo("smartevse", { prefix: "S" }));
  expect(echoes.isNeeded(mode("Normal"))).toBe(true);
  echoes.record("S/Mode", "Pause");
  expect(echoes.isNeeded(mode("Pause"))).toBe(true);
  echoes.record("S/Mode", "Normal");
  expect(echoes.isNeeded(mode("Normal"))).toBe(true);
  echoes.record("S/Mode", "Normal");
  expect(echoes.isNeeded(mode("Normal"))).toBe(false);
});

test("other topics are always news", () => {
  const echoes = new Echoes(boundTo("smartevse", { prefix: "S" }));
  echoes.record("S/Set/CurrentOverride", "160");
  expect(echoes.isNeeded({ topic: "S/Set/CurrentOverride", payload: "160", qos: 1, retain: false })).toBe(
    true,
  );
});
