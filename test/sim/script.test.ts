import { expect, test } from "vitest";
import { loadScript, readScript, type Script } from "../../src/sim/script.ts";

/** Mistakes in a script. Empty: none. */
const mistakes = (text: string): string => {
  const read = readScript(text);
  return read.ok ? "" : read.reason;
};

const PUT = "{ at: 1s, do: put, via: poll, event: { key: a, amperes: 16, duration: 4s } }";

test("durations are read as milliseconds, and defaults are filled in", () => {
  const read = readScript(`steps: [ ${PUT} ]`);
  expect(read).toMatchObject({
    ok: true,
    script: { idPrefix: "EV-", firstId: 1001, steps: [{ at: 1000, event: { duration: 4000 } }] },
  });
});

test.each([
  ["steps: [", "Flow sequence"],
  ["steps: []", "steps: "],
  [`steps: [ { at: soon, do: put, via: poll, event: {} } ]`, "steps.0.at: a duration such as"],
  [`steps: [ { at: 1s, do: dance } ]`, "steps.0.do: "],
  [
    `steps: [ ${PUT}, { at: 2s, do: deliver, event: { key: b } } ]`,
    "steps.1.event.key: no earlier step puts b",
  ],
  [`steps: [ ${PUT}, ${PUT} ]`, "steps.1.event.key: a was put before; use change"],
  [
    `steps: [ ${PUT}, { at: 0s, do: deliver, event: { key: a } } ]`,
    "steps.1.at: steps are written in the order",
  ],
  [`repeatEvery: 1s\nsteps: [ ${PUT} ]`, "repeatEvery: shorter than"],
  [
    `steps: [ { at: 1s, do: put, via: poll, event: { key: a, duration: 4s } } ]`,
    "steps.0.event: an event asks for either amperes or kilowatts",
  ],
])("a mistake is reported with its path: %s", (text, mistake) => {
  expect(mistakes(text)).toContain(mistake);
});

test("a missing file is reported and does not throw", async () => {
  expect(await loadScript("no-such-script.yaml")).toMatchObject({ ok: false });
});

const SHIPPED = new URL("../../config/demo-script.yaml", import.meta.url).pathname;

async function shipped(): Promise<Script> {
  const read = await loadScript(SHIPPED);
  if (!read.ok) throw new Error(read.reason);
  return read.script;
}

test("the first event of the demo starts, ends and is released within ten seconds", async () => {
  const { steps } = await shipped();
  const ends = steps.map((step) =>
    step.do === "put"
      ? step.at + (step.event.startIn ?? 0) + (step.event.randomizeStart ?? 0) + step.event.duration
      : Infinity,
  );
  expect(ends[0]).toBeLessThan(9500);
  expect(steps[0]).toMatchObject({ do: "put", via: "webhook" });
});

test("the demo has every kind of step and both kinds of level", async () => {
  const { steps } = await shipped();
  expect(new Set(steps.map((step) => step.do))).toEqual(new Set(["put", "deliver", "change", "withdraw"]));
  expect(JSON.stringify(steps)).toContain("kilowatts");
});

test("events of the demo end before the round that forgets them", async () => {
  const { steps, repeatEvery } = await shipped();
  for (const step of steps) {
    if (step.do !== "put") continue;
    const end = step.at + (step.event.startIn ?? 0) + (step.event.randomizeStart ?? 0) + step.event.duration;
    expect(end).toBeLessThan(2 * (repeatEvery ?? 0));
  }
});
