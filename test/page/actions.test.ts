import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { chargerId } from "../../src/domain/units.ts";
import { aPageSite, browserAvailable, chargersAt, openBrowser, running, Watched } from "../support/aPage.ts";
import { anEvent } from "../support/aSite.ts";
import { Mosquitto } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
/** A charger ramps up and down while the machine is busy. */
const SLOWLY = { timeoutMs: MINUTE };
const peak = (vehicles: readonly string[]) =>
  anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles, name: "Evening peak" });

describe.skipIf(!browserAvailable)("actions of the page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  test("an override while the broker is away says that nothing reaches the charger, before and afterwards", async () => {
    const { site, url } = await aPageSite(1);
    await using _site = site;
    await using chargers = chargersAt(site, 1);
    await using daemon = await running(site, chargers);
    await daemon.deliver(peak(["veh-1"]));
    await using watched = await Watched.open(browser, `${url}/vehicles/veh-1`);
    const { page } = watched;
    await page.getByText("followed").first().waitFor();
    await site.broker.kill();
    await page.getByText("not known, broker down").waitFor();
    // Whether the charger still follows is not known either.
    await page.locator(".levels .mute").getByText("not known").waitFor();
    expect(await page.locator(".levels").getByText("followed").count()).toBe(0);
    await page.getByRole("button", { name: "Charge now…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Nothing reaches Bus 1 now. It gets this once its charger is back.").waitFor();
    await dialog.getByLabel("leaves early").check();
    await dialog.getByRole("button", { name: "Override" }).click();
    await dialog.getByText("nothing reaches the charger now: it gets this once it is back").waitFor();
    expect(await watched.violations()).toEqual([]);
    // No reading is not shown as no power.
    await page.goto(url);
    await page.locator(".power-parts").getByText("not known").nth(2).waitFor();
    expect(await page.locator(".power-parts").getByText("0.0 kW").count()).toBe(0);
  });

  test("a departure that another person sets meanwhile is not replaced before it was shown", async () => {
    const { site, url } = await aPageSite(1);
    await using _site = site;
    await using daemon = await site.run();
    await using watched = await Watched.open(browser, `${url}/vehicles/veh-1`);
    const { page } = watched;
    const needs = async () =>
      (await daemon.view<readonly { need: unknown }[]>("/api/v1/departures")).map(({ need }) => need);
    await page.getByRole("button", { name: "Set departure…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("radio", { name: "Charge, %" }).check();
    await dialog.getByRole("spinbutton").fill("80");
    const at = new Date(Date.now() + 5 * 60 * MINUTE).toISOString();
    const other = await fetch(`${url}/api/v1/departures/veh-1`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ at, soc: 95 }),
    });
    expect(other.status).toBe(200);
    await dialog.getByRole("button", { name: "Set departure" }).click();
    await dialog.getByText(/^Since you opened this, its departure became .*, set by loopback\.$/).waitFor();
    await dialog.getByText("Press again to replace that").waitFor();
    expect(await needs()).toEqual([{ soc: 95 }]);
    await dialog.getByRole("button", { name: "Set departure" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect(await needs()).toEqual([{ soc: 80 }]);
    expect(watched.mistakes).toEqual([]);
  });

  test("a departure is moved without a change of what the vehicle needs, and one that does not take place is taken off", async () => {
    const { site, url } = await aPageSite(1, {
      vehicles: [
        {
          id: "veh-1",
          name: "Bus 1",
          charger: "bay-01",
          battery: { capacity: 300 },
          departures: [{ at: "05:40", soc: 80 }],
        },
      ],
    });
    await using _site = site;
    await using chargers = chargersAt(site, 1);
    await using daemon = await running(site, chargers);
    const next = async () => (await daemon.view<readonly Record<string, unknown>[]>("/api/v1/departures"))[0];
    const weekly = await next();
    await using watched = await Watched.open(browser, `${url}/vehicles/veh-1`);
    const { page } = watched;
    const dialog = page.getByRole("dialog", { name: "Departure of Bus 1" });
    const open = () => page.getByRole("button", { name: "Set departure…" }).click();
    await page.getByText("05:40").first().waitFor();
    await open();
    expect(await dialog.getByRole("radio", { name: "Charge, %" }).isChecked()).toBe(true);
    expect(await dialog.getByRole("spinbutton").inputValue()).toBe("80");
    await dialog.getByLabel("Leaves").fill("05:20");
    await dialog.getByText(/^Bus 1 leaves (\w+ )?05:20\. This replaces what was set for it before/).waitFor();
    expect(await watched.violations()).toEqual([]);
    await dialog.getByRole("button", { name: "Set departure" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect(await next()).toMatchObject({ need: { soc: 80 }, source: "api" });
    await open();
    await dialog.getByLabel("As every week").check();
    await dialog
      .getByText("What loopback set for Bus 1 is cleared. Its weekly departures apply again, if it has any.")
      .waitFor();
    await dialog.getByRole("button", { name: "Set departure" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect(await next()).toMatchObject({ at: weekly?.["at"], source: "weekly" });
    // A departure that was set goes in one step as well, and the weekly one of its day does not come back.
    await open();
    expect(await dialog.getByLabel("As every week").count()).toBe(0);
    await dialog.getByLabel("Leaves").fill("05:20");
    await dialog.getByRole("button", { name: "Set departure" }).click();
    await dialog.waitFor({ state: "hidden" });
    await open();
    await dialog.getByLabel("Nothing: it stays").check();
    await dialog.getByText(/^Bus 1 stays on \w+ \d+ \w+\./).waitFor();
    await dialog.getByRole("button", { name: "Set departure" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect(String((await next())?.["at"]) > String(weekly?.["at"])).toBe(true);
    expect(watched.mistakes).toEqual([]);
  });

  test("a departure of next week is set, and stays on its day when only the need changes", async () => {
    const { site, url } = await aPageSite(1);
    await using _site = site;
    await using chargers = chargersAt(site, 1);
    await using daemon = await running(site, chargers);
    await using watched = await Watched.open(browser, `${url}/vehicles/veh-1`);
    const { page } = watched;
    const dialog = page.getByRole("dialog", { name: "Departure of Bus 1" });
    const open = () => page.getByRole("button", { name: "Set departure…" }).click();
    await open();
    await dialog.getByLabel("Leaves").fill("05:40");
    await dialog.getByLabel("Day").selectOption({ index: 9 });
    await dialog.getByText(/^Bus 1 leaves \w+ \d+ \w+ 05:40\./).waitFor();
    const set: string[] = [];
    for (const kilowattHours of ["70", "60"]) {
      await dialog.getByRole("radio", { name: "kWh since" }).check();
      await dialog.getByRole("spinbutton").fill(kilowattHours);
      await dialog.getByRole("button", { name: "Set departure" }).click();
      await dialog.waitFor({ state: "hidden" });
      const [departure] = await daemon.view<readonly { at: string; need: unknown }[]>("/api/v1/departures");
      expect(departure).toMatchObject({ need: { energyWh: Number(kilowattHours) * 1000 }, source: "api" });
      set.push(departure?.at ?? "");
      await open();
      expect(await dialog.getByRole("spinbutton").inputValue()).toBe(kilowattHours);
    }
    expect(Date.parse(set[0] ?? "")).toBeGreaterThan(Date.now() + 8 * 24 * 60 * MINUTE);
    expect(set[1]).toBe(set[0]);
    expect(await watched.violations()).toEqual([]);
    expect(watched.mistakes).toEqual([]);
  });

  test("the proof is saved, a setpoint is sent again, an event is opted out of, and the site observes: each with its reason and its result", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(peak(["veh-1", "veh-2"]));
    await using watched = await Watched.open(browser, `${url}/events/EV-1`);
    const { page } = watched;
    const dialog = page.getByRole("dialog");
    const drawn = (bay: string): number => chargers.model(chargerId(bay)).drawn;
    await page.getByText("2/2", { exact: true }).waitFor();

    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Proof as JSON" }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toBe("proof-EV-1.json");
    const proof = await file.path();
    expect(JSON.parse(readFileSync(proof, "utf8"))).toContainEqual(
      expect.objectContaining({ section: "asked" }),
    );
    expect(await setpointd(["proof", "verify", proof, "-c", site.config])).toMatchObject({ code: 0 });

    await page.goto(`${url}/vehicles/veh-1`);
    await page.getByRole("button", { name: "Send again" }).click();
    await dialog.getByText("bay-01 is sent its present setpoint once more: 10 A.").waitFor();
    expect(await watched.violations()).toEqual([]);
    await dialog.getByLabel("charger does not follow").check();
    await dialog.getByRole("button", { name: "Send again" }).click();
    await dialog.getByText(/\b10 A after \d+ s/).waitFor();
    await page.keyboard.press("Escape");

    await page.goto(`${url}/events/EV-1`);
    await page.getByRole("button", { name: "Opt out" }).click();
    await dialog.getByText("2 chargers charge as without events: Bus 1, Bus 2.").waitFor();
    await dialog.getByText(/^It takes \d+(\.\d)? kWh from Evening peak, by the plan\.$/).waitFor();
    await dialog.getByText("It ends when the present events end, by").waitFor();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("opt-out");
    await dialog.getByLabel("vehicles are needed").check();
    await dialog.getByRole("button", { name: "Opt out" }).click();
    await dialog
      .getByText(/A after \d+ s/)
      .nth(1)
      .waitFor();
    expect([drawn("bay-01"), drawn("bay-02")].every((current) => current > 29)).toBe(true);
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.goto(url);
    await page.getByRole("button", { name: "End override" }).click();
    await dialog.getByRole("button", { name: "End override" }).click();
    await waitFor(() => drawn("bay-01") < 11 && drawn("bay-02") < 11, SLOWLY);

    await page.goto(`${url}/system`);
    await page.getByRole("button", { name: "Observe only" }).click();
    await dialog.getByText("2 limited chargers are released first.").waitFor();
    await dialog.getByLabel("work on the chargers").check();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("observe");
    await dialog.getByRole("button", { name: "Observe only" }).click();
    await dialog.getByText(/^mode observe until/).waitFor();
    await waitFor(() => drawn("bay-01") > 29 && drawn("bay-02") > 29, SLOWLY);
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByText("By loopback: work on the chargers").waitFor();
    await page.locator(".facts").getByText("OBSERVE ONLY").waitFor();
    await page.getByRole("button", { name: "Drive again" }).click();
    await dialog.getByLabel("the work is done").check();
    await dialog.getByRole("button", { name: "Drive" }).click();
    await dialog
      .getByText(/\b10 A after \d+ s/)
      .first()
      .waitFor();
    expect(watched.mistakes).toEqual([]);
  });

  test("an override whose answer was lost is repeated as the same one, and with another reason as a new one that names the first", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(peak(["veh-1", "veh-2"]));
    const reasons = async (): Promise<unknown> =>
      (await daemon.view<readonly { reason: string }[]>("/api/v1/holds")).map(({ reason }) => reason);
    await using watched = await Watched.open(browser, `${url}/vehicles/veh-1`);
    const { page } = watched;
    watched.isAway = true;
    const dialog = page.getByRole("dialog");
    const loseNextAnswer = () =>
      page.route(
        "**/api/v1/holds",
        async (route) => {
          await route.fetch();
          await route.abort();
        },
        { times: 1 },
      );
    await page.getByRole("button", { name: "Charge now" }).click();
    const override = dialog.getByRole("button", { name: "Override", exact: true });
    await dialog.getByLabel("Another reason").fill("first");
    await loseNextAnswer();
    await override.click();
    await dialog.getByText(/^It is not known whether this was done/).waitFor();
    await loseNextAnswer();
    await override.click();
    await waitFor(async () => (await override.isEnabled()) && (await reasons()));
    expect(await reasons()).toEqual(["first"]);
    await dialog.getByLabel("Another reason").fill("second");
    await override.click();
    await dialog.getByText(/^hold .* of loopback on/).waitFor();
    expect(await reasons()).toEqual(["second", "first"]);
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByRole("link", { name: "Now" }).click();
    await page.getByRole("button", { name: /^Charge now.* Bus 2$/ }).click();
    await dialog.waitFor();
    await page.goBack();
    await dialog.waitFor({ state: "hidden" });
    expect(page.url()).toBe(`${url}/vehicles/veh-1`);
    expect(watched.mistakes).toEqual([]);
  });

  test("a charger is restarted from the page: who charges there, a reason, and whether it came back with its level", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(peak(["veh-1"]));
    await using watched = await Watched.open(browser, `${url}/vehicles/veh-1`);
    const { page } = watched;
    const dialog = page.getByRole("dialog");
    await waitFor(() => chargers.model(chargerId("bay-01")).drawn === 10, SLOWLY);

    await page.getByRole("button", { name: "Reboot" }).click();
    await dialog.getByText(/^Bus 1 charges there now with \d\.\d kW: that is interrupted\.$/).waitFor();
    await dialog.getByText("When it is back, it is sent its level again: 10 A.").waitFor();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("reboot");
    expect(await dialog.getByRole("button", { name: "Reboot" }).isDisabled()).toBe(true);
    await dialog.getByLabel("charger hangs").check();
    await dialog.getByRole("button", { name: "Reboot" }).click();
    await dialog.getByText(/^bay-01 is offline/).waitFor();
    await dialog.getByText(/^bay-01 is back \d+ s after the reboot by/).waitFor();
    await dialog.locator("li.good", { hasText: "Level again" }).waitFor();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("reboot-done");
    await waitFor(() => chargers.model(chargerId("bay-01")).drawn === 10, SLOWLY);
    await dialog.getByRole("button", { name: "Close" }).click();

    await page.goto(`${url}/system`);
    const row = page.locator("section", { hasText: "Limit reported" }).getByRole("row", { name: /^bay-01/ });
    await row.getByText("simulated 1.0").waitFor();
    await row.getByText(/bay-01 is back \d+ s after/).waitFor();
    await page.getByText(/^Restarts since \d\d:\d\d/).waitFor();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("system-restarts");
    await page.setViewportSize({ width: 320, height: 800 });
    expect(await watched.overflows()).toBe(false);
    expect(await watched.violations()).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await watched.violations()).toEqual([]);

    // Nobody is there to be told.
    await chargers.at(chargerId("bay-02")).dropOff();
    await page.goto(`${url}/vehicles/veh-2`);
    await page.getByRole("button", { name: "Reboot" }).click();
    await dialog.getByText("It cannot be rebooted now: the charger is offline: a reboot cannot").waitFor();
    await dialog.getByLabel("charger hangs").check();
    expect(await dialog.getByRole("button", { name: "Reboot" }).isDisabled()).toBe(true);
    expect(watched.mistakes).toEqual([]);
  });

  test("a charger is tested from the page: what will be sent to which bay, each step, and the measured result, which then stands in the table", async () => {
    const { site, url } = await aPageSite(2, { control: { verdict: { ramp: "20s" } } });
    await using _site = site;
    // The levels take 11, 4 and 4 s: the test has to run still after the reload.
    await using chargers = chargersAt(site, 2, { ramp: 3 });
    await using daemon = await running(site, chargers);
    await daemon.deliver(peak(["veh-1"]));
    await using watched = await Watched.open(browser, `${url}/system`);
    const { page } = watched;
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Test… bay-01" }).click();
    await dialog.getByText(/^It cannot be tested now: EV-1 holds on bay-01 until/).waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();

    await page.getByRole("button", { name: "Test… bay-02" }).click();
    await dialog.getByText(/^bay-02 \(Bus 2\) gets 32 A, 19 A, 6 A, one after the other/).waitFor();
    await dialog.getByText("At the end it gets back what it has now: none.").waitFor();
    expect(await dialog.getByRole("button", { name: "Start the test" }).isDisabled()).toBe(true);
    expect(await watched.violations()).toEqual([]);
    await watched.picture("trial");
    await dialog.getByLabel("commissioning").check();
    await dialog.getByRole("button", { name: "Start the test" }).click();
    await dialog.getByText("sending 32 A").waitFor();
    await watched.picture("trial-running");
    // It goes on when the dialog is closed, also after a reload, and is shown again from its row.
    await page.keyboard.press("Escape");
    await page.reload();
    await page.getByRole("button", { name: "Show test bay-02" }).click();
    await dialog.getByText("sending 32 A").waitFor();
    await dialog.getByRole("button", { name: "Stop the test" }).waitFor();
    await dialog.getByText("passed").waitFor();
    await dialog.getByText(/^drew 6(\.\d)? A$/).waitFor();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("trial-result");
    await dialog.getByRole("button", { name: "Close" }).click();
    const trials = page.getByRole("region", { name: "Commissioning" }).first();
    await trials.getByText("32 A ✓, 19 A ✓, 6 A ✓").waitFor();
    await waitFor(() => chargers.model(chargerId("bay-02")).drawn > 29, SLOWLY);
    expect(watched.mistakes).toEqual([]);
  });

  test("the brokers are tested from the page: the refused topic with the lines that allow it, and the step passes once they are in the list", async () => {
    const root = "setpointd/depot";
    const list = ["topic readwrite #", "user depot", `topic readwrite ${root}/#`];
    const denied = `topic deny ${root}/chargers/bay-02/set`;
    await using broker = await Mosquitto.start({ acl: [...list, denied] });
    const { site, url } = await aPageSite(2, { mqtt: { url: broker.url, username: "depot" } });
    await using _site = site;
    await using _daemon = await site.run();
    await using watched = await Watched.open(browser, `${url}/system`);
    const { page } = watched;
    const dialog = page.getByRole("dialog");
    const step = page.locator(".trial-steps li", { hasText: "Each broker accepts the login" });
    await step.getByText("not tested").waitFor();
    await step.getByRole("button", { name: "Test… Test the brokers" }).click();
    await dialog.getByText(/No charger gets a setpoint, of any make/).waitFor();
    expect(await dialog.getByRole("button", { name: "Test the brokers" }).isDisabled()).toBe(true);
    expect(await watched.violations()).toEqual([]);
    await dialog.getByLabel("commissioning").check();
    await dialog.getByRole("button", { name: "Test the brokers" }).click();
    await dialog.getByText("publish refused").waitFor();
    await dialog.getByText(`topic write ${root}/chargers/+/set`).waitFor();
    await watched.picture("broker-trial");
    await dialog.getByRole("button", { name: "Close" }).click();
    await step.getByText("failed: mqtt").waitFor();
    await step.getByText(`${root}/chargers/bay-02/set`, { exact: true }).first().waitFor();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await step.getByRole("button", { name: "Copy the lines" }).click();
    await step.getByText("Copied.").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
      `user depot\ntopic write ${root}/chargers/+/set`,
    );
    // The result is on record, and on the sheet that is printed.
    await page.reload();
    await step.getByText("failed: mqtt").waitFor();
    await page.emulateMedia({ media: "print" });
    expect(await step.getByText("publish refused").isVisible()).toBe(true);
    expect(await step.getByRole("button").count()).toBe(0);
    await page.emulateMedia({ media: "screen" });
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width: 320, height: 700 });
      expect(await watched.violations()).toEqual([]);
      expect(await watched.overflows()).toBe(false);
      await step.scrollIntoViewIfNeeded();
      await watched.picture(`broker-step-${colorScheme}`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });

    await broker.changeAcl(list);
    await step.getByRole("button", { name: "Test again…" }).click();
    await dialog.getByLabel("after a change at the broker").check();
    await dialog.getByRole("button", { name: "Test the brokers" }).click();
    await dialog.getByText("0 refused", { exact: false }).waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await step.getByText("passed, 3 topics not known yet").waitFor();
    await step.getByText("No client listens there").waitFor();
    await watched.picture("broker-step");
    expect(watched.mistakes).toEqual([]);
  });

  test("the changed configuration is applied during an event by force, the page comes back by itself, and what ran before is put back", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(peak(["veh-1", "veh-2"]));
    const drawn = (bay: string): number => chargers.model(chargerId(bay)).drawn;
    await waitFor(() => drawn("bay-01") > 9 && drawn("bay-01") < 11, SLOWLY);
    const bays = ["bay-01", "bay-02"].map((id) => ({ id, current: { min: 6, max: 8 } }));
    site.configure({ chargers: bays });
    await using watched = await Watched.open(browser, `${url}/system`);
    const { page } = watched;
    const dialog = page.getByRole("dialog");
    const panel = page.getByRole("region", { name: "Configuration" }).first();
    await panel.getByText("the file differs", { exact: true }).waitFor();
    await panel.getByText("chargers.bay-01.current.max").waitFor();
    expect(await watched.violations()).toEqual([]);
    await page.getByRole("button", { name: "Apply the file…" }).click();
    await dialog
      .getByText(/^The gateway starts again with the file, configuration \w{12}, in place of/)
      .waitFor();
    await dialog
      .getByText("Other values: chargers.bay-01.current.max, chargers.bay-02.current.max.")
      .waitFor();
    await dialog
      .getByText("For a moment no charger is commanded; 2 limited chargers keep their setpoint meanwhile.")
      .waitFor();
    await dialog
      .getByText(/^Now: event EV-1 \(Evening peak\) is in force until ([\d-]{10} )?\d\d:\d\d:\d\d\.$/)
      .waitFor();
    await dialog.getByLabel("planned change").check();
    expect(await dialog.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
    await dialog.getByLabel("All the same, now").check();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("apply");
    watched.isAway = true;
    await dialog.getByRole("button", { name: "Apply" }).click();
    await dialog
      .getByText(
        /^Runs since \d\d:\d\d:\d\d with configuration \w{12}\. No charger was commanded for \d+\.\d s\.$/,
      )
      .waitFor();
    await watched.picture("applied");
    await waitFor(() => drawn("bay-01") < 9 && drawn("bay-02") < 9, SLOWLY);
    await dialog.getByRole("button", { name: "Close" }).click();
    await panel.getByText("as on disk").waitFor();

    await panel.getByRole("button", { name: /^Go back… \w{12}$/ }).click();
    await dialog
      .getByText("It stays in force over restarts, until the file changes or is applied.")
      .waitFor();
    await dialog.getByText(/^For about \d+\.\d s, as measured last, no charger is commanded/).waitFor();
    await dialog.getByLabel("the new one is wrong").check();
    await dialog.getByLabel("All the same, now").check();
    await dialog.getByRole("button", { name: "Go back" }).click();
    await dialog.getByText(/^Runs since/).waitFor();
    await waitFor(() => drawn("bay-01") > 9, SLOWLY);
    await dialog.getByRole("button", { name: "Close" }).click();
    await panel.getByText(/loopback went back to it; the file differs, and a restart keeps/).waitFor();
    // The rest of the page is alive again, too.
    await page.getByText("Connection lost").waitFor({ state: "hidden" });
    await page.locator(".facts").getByText("EVENT", { exact: true }).waitFor();
    await page.setViewportSize({ width: 320, height: 700 });
    expect(await watched.overflows()).toBe(false);
    expect(await watched.violations()).toEqual([]);
    await panel.scrollIntoViewIfNeeded();
    await watched.picture("configuration-320");
    expect(watched.mistakes).toEqual([]);
  });

  test("a vehicle that the charger cannot tell is named on its tile, gets its setpoint there, and is taken back", async () => {
    const { site, url } = await aPageSite(2, {
      vehicles: [
        { id: "veh-1", name: "Bus 1", charger: "bay-01" },
        { id: "veh-9", name: "Bus 9" },
      ],
    });
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(peak(["veh-9"]));
    await using watched = await Watched.open(browser, `${url}/bays`);
    const { page } = watched;
    const dialog = page.getByRole("dialog");
    const drawn = (): number => chargers.model(chargerId("bay-02")).drawn;
    await page.getByText("unknown vehicle").waitFor();
    await page.getByRole("button", { name: "Absent 0" }).waitFor();
    await watched.picture("bind-tile");
    await page.getByRole("button", { name: "Name it… bay-02" }).click();
    const submit = dialog.getByRole("button", { name: "Bind" });
    await dialog.getByLabel("I stand in front of it").check();
    expect(await submit.isDisabled()).toBe(true);
    await dialog.getByLabel("Vehicle").selectOption("Bus 9");
    await dialog.getByText("The setpoints of Bus 9 go to bay-02.").waitFor();
    await dialog.getByText(/^It gets 10 A by EV-1 until/).waitFor();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("bind");
    // A reverse proxy that has lost the gateway answers for it.
    const path = "**/api/v1/chargers/bay-02/vehicle";
    await page.route(path, (route) => route.fulfill({ status: 503, body: "<h1>Service Unavailable</h1>" }));
    await submit.click();
    await dialog.getByText("It is not known whether this was done").waitFor();
    await dialog.getByText("a proxy in front of it answers with HTTP 503").waitFor();
    await page.unroute(path);
    expect(watched.mistakes.splice(0)).toEqual([expect.stringContaining("a status of 503")]);
    await submit.click();
    await dialog.getByText("Bus 9 is assigned to bay-02; bay-02 gets 10 A").waitFor();
    await dialog.getByText(/\b10 A after \d+ s/).waitFor();
    expect(drawn()).toBeLessThan(11);
    await watched.picture("bind-result");
    await dialog.getByRole("button", { name: "Close" }).click();

    await page.goto(`${url}/handover`);
    const named = page.getByRole("region", { name: "Named by a person" });
    await named.getByText(/^Bus 9 at bay-02, named by loopback since/).waitFor();
    await page.goto(`${url}/vehicles/veh-9`);
    await page.getByText(/^Bus 9 at bay-02, named by loopback since .*: I stand in front of it$/).waitFor();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("bound");
    // A bay that has a vehicle may be chosen too: the dialog says who is no longer assigned there then.
    await page.getByRole("button", { name: "Bind to a bay…" }).click();
    await dialog.getByLabel("Bay").selectOption("bay-01 (Bus 1)");
    await dialog.getByText("Bus 1 is no longer assigned there.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Not at bay-02…" }).click();
    await dialog.getByLabel("it is another vehicle").check();
    await dialog.getByRole("button", { name: "Take back" }).click();
    await dialog.getByText("Bus 9 is no longer assigned to bay-02; bay-02 decides by itself").waitFor();
    await waitFor(() => drawn() > 29, SLOWLY);
    expect(watched.mistakes).toEqual([]);
  });
});
