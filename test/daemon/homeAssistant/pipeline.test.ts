import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NEVER } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";

import { homeAssistant } from "../../../src/daemon/homeAssistant/pipeline.ts";
import type { Sent } from "../../../src/domain/command.ts";
import { instant } from "../../../src/domain/units.ts";
import { aPicture } from "../../support/aPicture.ts";
import { configured } from "../../support/aConfiguration.ts";

test("a broker that takes the descriptions slowly gets the state of the site as it is then", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const folder = mkdtempSync(join(tmpdir(), "home-assistant-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const slow = Promise.withResolvers<Sent>();
  const published: (readonly [topic: string, payload: string])[] = [];
  let open = 0;
  const described = homeAssistant(NEVER, NEVER, {
    config: { ...configured({ homeAssistant: { discovery: true } }), state: folder },
    state: aPicture(),
    now: () => instant(0),
    alarms: () => [{ labels: { kind: "broker" }, value: open }],
    publish: async (topic, payload) => {
      published.push([topic, payload]);
      return published.length === 1 ? slow.promise : { ok: true };
    },
    warn: () => {},
  }).subscribe();
  onTestFinished(() => described.unsubscribe());
  open = 3;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(published).toHaveLength(1);
  slow.resolve({ ok: true });
  await vi.advanceTimersByTimeAsync(0);
  const states = published.filter(([topic]) => topic.endsWith("/gateway/state"));
  expect(states.map(([, payload]) => JSON.parse(payload))).toMatchObject([{ alarmsOpen: 3 }]);
});

test("while the list of its topics cannot be stored, Home Assistant gets no descriptions, and the start goes on", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const folder = mkdtempSync(join(tmpdir(), "home-assistant-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const state = join(folder, "state");
  const published: string[] = [];
  const warned: string[] = [];
  const described = homeAssistant(NEVER, NEVER, {
    config: { ...configured({ homeAssistant: { discovery: true } }), state },
    state: aPicture(),
    now: () => instant(0),
    alarms: () => [],
    publish: async (topic) => {
      published.push(topic);
      return { ok: true };
    },
    warn: (_reason, message) => warned.push(message),
  }).subscribe();
  onTestFinished(() => described.unsubscribe());
  await vi.advanceTimersByTimeAsync(5_000);
  expect(published).toEqual([]);
  expect(warned).toEqual(["the descriptions for Home Assistant wait: their list cannot be stored"]);
  mkdirSync(state);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(published).toContain("setpointd/depot/gateway/state");
});

test.each([
  [true, "the broker refuses a topic for Home Assistant: setpointd acl prints the rights that it needs"],
  [
    false,
    "the broker refuses to remove a description for Home Assistant: allow homeassistant/device/+/config and setpointd/depot/gateway/state until it is removed, or remove it there",
  ],
])(
  "a broker that refuses the topics of a removed charger is named once, with the rights (discovery %s)",
  async (discovery, message) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const folder = mkdtempSync(join(tmpdir(), "home-assistant-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const removed = "homeassistant/device/setpointd_depot_bay-09/config";
    writeFileSync(join(folder, "homeassistant.json"), JSON.stringify({ topics: [removed] }), { mode: 0o600 });
    const warned: string[] = [];
    const described = homeAssistant(NEVER, NEVER, {
      config: { ...configured({ homeAssistant: { discovery } }), state: folder },
      state: aPicture(),
      now: () => instant(0),
      alarms: () => [],
      publish: async (topic) =>
        topic === removed ? { ok: false, retry: false, reason: "Not authorized" } : { ok: true },
      warn: (_reason, text) => warned.push(text),
    }).subscribe();
    onTestFinished(() => described.unsubscribe());
    await vi.advanceTimersByTimeAsync(5_000);
    expect(warned).toEqual([message]);
  },
);
