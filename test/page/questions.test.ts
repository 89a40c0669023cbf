import type { ChildProcess } from "node:child_process";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { browserAvailable, openBrowser } from "../support/aPage.ts";
import { launch } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const PHONE = { width: 412, height: 915 };

/** Questions of the night shift at 05:30, with the time that an answer may take, s. */
const LIMITS = {
  "which vehicles will not make it, and by how much": 3,
  "is it the event, a fault, or nobody plugged in": 5,
  "when does the event end, and is it still what was asked": 3,
  "is the system alive": 3,
  "what may I do, what does it cost, what happens to the others": 10,
  "did my override take effect, as measured": 60,
  "what do I write in the handover": 10,
} as const;
type Question = keyof typeof LIMITS;

/** Resolves once each of these is inside the window, without scrolling. */
async function inSight(...all: readonly Locator[]): Promise<void> {
  for (const each of all.map((found) => found.first()))
    await waitFor(async () => {
      await each.waitFor();
      const box = await each.boundingBox();
      return box !== null && box.y >= 0 && box.y + box.height <= PHONE.height;
    });
}

describe.skipIf(!browserAvailable)("the demo on a phone", () => {
  let browser: Browser;
  let demo: ChildProcess;
  let url: string;
  beforeAll(async () => {
    browser = await openBrowser();
    demo = launch([]);
    let output = "";
    demo.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
    url = await waitFor(() => /Open (http:\S+)/.exec(output)?.[1], { timeoutMs: 60_000 });
    // The story of the demo begins: an event holds, and a vehicle will leave short because of it.
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByText("5 of 6 follow").waitFor({ timeout: 120_000 });
    // Vehicles that still ramp up look short for another reason.
    await page
      .getByText(/event EV-\d+ allows 11 kW until/)
      .first()
      .waitFor({ timeout: 120_000 });
    await page.close();
  });
  afterAll(async () => {
    await browser.close();
    const ended = new Promise((resolve) => demo.once("close", resolve));
    demo.kill("SIGINT");
    await ended;
  });

  test("the seven questions of the night shift are answered in the time that a person has", async () => {
    const page = await browser.newPage({ viewport: PHONE });
    const took: Partial<Record<Question, number>> = {};
    let began = 0;
    const answered = (question: Question): void => {
      took[question] = (performance.now() - began) / 1000;
    };
    /** The least of three loads: other tests use the same processor. */
    const atFirstSight = async (question: Question, ...answer: readonly Locator[]): Promise<void> => {
      const times: number[] = [];
      for (let load = 0; load < 3; load += 1) {
        began = performance.now();
        await page.goto(url);
        await inSight(...answer);
        times.push((performance.now() - began) / 1000);
      }
      took[question] = Math.min(...times);
    };

    await atFirstSight(
      "which vehicles will not make it, and by how much",
      page.getByText(/\d+ will not make it/),
      page.getByText(/SHORT \d+ min/),
    );
    await atFirstSight(
      "is it the event, a fault, or nobody plugged in",
      page.getByText("grid event"),
      page.getByText(/event EV-\d+ allows 11 kW until/),
    );
    await atFirstSight(
      "when does the event end, and is it still what was asked",
      page.getByText(/^\d+ min left/),
      page.getByText(/unchanged since \d\d:\d\d/),
    );
    await atFirstSight(
      "is the system alive",
      page.getByText(/webhook .* ago/),
      page.getByText("12/12 live"),
      page.getByText(/±\d+ ms/),
    );

    began = performance.now();
    await page.getByRole("button", { name: "Charge now" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/^Bus \d+ gets up to 32 A instead of 16 A\.$/).waitFor();
    await dialog.getByText("Other vehicles keep their setpoints.").waitFor();
    await dialog.getByText(/^It takes \d+(\.\d)? kWh from Morning peak, by the plan\.$/).waitFor();
    answered("what may I do, what does it cost, what happens to the others");

    await dialog.getByLabel("leaves early").check();
    began = performance.now();
    await dialog.getByRole("button", { name: "Override" }).click();
    await dialog.getByText(/\d+(\.\d)? A after \d+ s/).waitFor();
    answered("did my override take effect, as measured");
    await dialog.getByRole("button", { name: "Close" }).click();

    began = performance.now();
    await page.getByRole("link", { name: "Handover" }).click();
    await page.getByText("leaves early").waitFor();
    answered("what do I write in the handover");

    for (const [question, limit] of Object.entries(LIMITS)) {
      const seconds = took[question as Question] ?? Infinity;
      process.stdout.write(`${seconds.toFixed(1)} s of ${limit} s: ${question}\n`);
      expect([question, seconds < limit]).toEqual([question, true]);
    }
  });
});
