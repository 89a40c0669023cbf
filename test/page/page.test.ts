import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import pino from "pino";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { auditRow, type Json } from "../../src/domain/audit.ts";
import { chargerId, eventId, instant, seconds, vehicleId } from "../../src/domain/units.ts";
import { openState } from "../../src/store/sqlite/open.ts";
import {
  aPageSite,
  browserAvailable,
  chargersAt,
  openBrowser,
  running,
  threadMeter,
  threadTime,
  Watched,
} from "../support/aPage.ts";
import { anEvent } from "../support/aSite.ts";
import { HeldStream } from "../support/heldStream.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
const PATHS = [
  "/",
  "/bays",
  "/vehicles/veh-1",
  "/events/EV-1",
  "/events/EV-2",
  "/timeline",
  "/log",
  "/system",
  "/handover",
];

describe.skipIf(!browserAvailable)("the page in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  test("every screen shows an active event, in both themes and sizes, without a violation of WCAG or of the policy", async () => {
    const departures = [{ at: "05:40", soc: 80 }];
    const vehicles = [1, 2, 3, 4].map((number) => ({
      id: `veh-${number}`,
      name: `Bus ${number}`,
      charger: `bay-0${number}`,
      ...(number === 1 ? { battery: { capacity: 300 }, departures } : {}),
    }));
    const { site, url } = await aPageSite(4, { vehicles });
    await using _site = site;
    await using chargers = chargersAt(site, 4);
    await using daemon = await running(site, chargers);
    await daemon.deliver(
      anEvent("EV-1", {
        lastsMs: 30 * MINUTE,
        amperes: 10,
        vehicles: ["veh-1", "veh-2"],
        name: "Evening peak",
      }),
    );
    await daemon.deliver(
      anEvent("EV-2", {
        startIn: 10 * MINUTE,
        lastsMs: 30 * MINUTE,
        amperes: 8,
        vehicles: ["veh-1", "veh-3"],
        name: "After it",
        priority: 9,
      }),
    );
    // No table is wider than its panel, at the least width of two columns.
    const wide =
      "[...document.querySelectorAll('.panel > table')].filter((table) => table.offsetWidth > table.parentElement.clientWidth).length";
    for (const colorScheme of ["light", "dark"] as const) {
      await using watched = await Watched.open(browser, url, { colorScheme });
      const { page } = watched;
      await page.getByText("Evening peak").first().waitFor();
      await page.getByText("→ 80 %").waitFor();
      for (const path of PATHS) {
        await page.goto(url + path);
        await page.locator("main h1").waitFor();
        await page.locator(".fact").first().waitFor();
        expect([path, colorScheme, await watched.violations()]).toEqual([path, colorScheme, []]);
        await watched.picture(`${path.replaceAll("/", "_")}-${colorScheme}`);
        for (const [width, height] of [
          [320, 640],
          [390, 844],
          [820, 1180],
          [1260, 800],
          [2560, 1440],
        ] as const) {
          await page.setViewportSize({ width, height });
          expect([path, width, await watched.overflows()]).toEqual([path, width, false]);
          expect([path, width, await page.evaluate(wide)]).toEqual([path, width, 0]);
          if (colorScheme === "dark") await watched.picture(`${path.replaceAll("/", "_")}-${width}`);
        }
        await page.setViewportSize({ width: 1280, height: 800 });
      }
      expect(watched.mistakes).toEqual([]);
    }
  });

  test("an event of more rows than are read at once shows the results of its end, beside the starts of its beginning", async () => {
    const { site, url } = await aPageSite(1);
    await using _site = site;
    const start = Date.now() - 60 * MINUTE;
    mkdirSync(site.state, { recursive: true, mode: 0o700 });
    const opened = openState(site.state, {
      now: () => instant(start),
      random: randomBytes,
      keys: { site: null, proof: null },
      log: pino({ level: "silent" }),
    });
    if (!opened.ok) throw new Error(opened.reason);
    const about = { event: eventId("EV-1"), charger: chargerId("bay-01") };
    const row = (number: number, vehicle: string, kind: "decision" | "outcome", facts: Json) =>
      auditRow(kind, instant(start + number), `${vehicle} row ${number}`, {
        ...about,
        vehicle: vehicleId(vehicle),
        facts,
      });
    const winner = { event: "EV-1", offsetMs: 12_000 };
    {
      using store = opened.store;
      store.write([row(0, "veh-1", "decision", { winner })]);
      for (let page = 1; page <= 11; page += 1) {
        store.write(
          Array.from({ length: 1000 }, (_, index) =>
            row(page * 1000 + index, "veh-2", "outcome", { progress: "followed" }),
          ),
        );
        await store.durable();
      }
      store.write([row(12_000, "veh-1", "outcome", { progress: "notFollowed" })]);
      await store.durable();
    }
    await using _daemon = await site.start();
    await using watched = await Watched.open(browser, `${url}/events/EV-1`);
    const { page } = watched;
    await page.getByRole("row", { name: /^Bus 1 12 s .* not followed$/ }).waitFor();
    await page.getByText("from 10000 rows of the record, the first and the last").waitFor();
    expect(watched.mistakes).toEqual([]);
  });

  test("before an event starts, its screen shows what each vehicle will get; once it has started, what each got; once it is over, what it would do now", async () => {
    const { site, url } = await aPageSite(3);
    await using _site = site;
    await using chargers = chargersAt(site, 3);
    await using daemon = await running(site, chargers);
    const vehicles = ["veh-1", "veh-2", "veh-3"];
    const stronger = { lastsMs: 30 * MINUTE, amperes: 8, vehicles: ["veh-2"], priority: 1, name: "Feeder" };
    await daemon.deliver(anEvent("EV-0", stronger));
    await daemon.deliver(
      anEvent("EV-1", { startIn: 15_000, lastsMs: 10 * MINUTE, amperes: 40, vehicles, name: "Peak" }),
    );
    const short = { lastsMs: 5000, amperes: 6, vehicles: ["veh-2", "veh-3"], priority: 3, name: "Short" };
    await daemon.deliver(anEvent("EV-2", short));
    await using watched = await Watched.open(browser, `${url}/events/EV-1`);
    const { page } = watched;
    const preview = page.getByRole("region", { name: "What each vehicle will get" });
    await preview.getByText("2 at another level").waitFor();
    await preview.getByText("1 under another event").waitFor();
    await preview.getByText("32 A").first().waitFor();
    await preview.getByRole("link", { name: "by EV-0" }).waitFor();
    await page.getByRole("columnheader", { name: "Result" }).waitFor();
    await preview.waitFor({ state: "hidden" });
    await page.getByRole("heading", { name: "Vehicles" }).waitFor();

    // An event of the record, as it would act now, among the events that are active.
    await page.goto(`${url}/events/EV-2`);
    await page.getByRole("button", { name: "Dry run…" }).click();
    const dialog = page.getByRole("dialog", { name: "Dry run of Short" });
    await dialog.getByText("1 under another event").waitFor();
    await dialog.getByText("1 as asked").waitFor();
    await dialog.getByRole("row", { name: /^Bus 3 bay-03 .* 6 A/ }).waitFor();
    expect(await watched.violations()).toEqual([]);
    await watched.picture("dry-run");
    await page.keyboard.press("Escape");
    await page.goto(`${url}/system`);
    const step = page
      .getByRole("listitem")
      .filter({ hasText: "An event of the record, as it would act now" });
    await step.getByText("Short").waitFor();
    await step.getByRole("button", { name: "Dry run…" }).click();
    await dialog.getByText("1 as asked").waitFor();
    expect(watched.mistakes).toEqual([]);
  });

  test("the system shows how each charger did over the last day, and which steps of commissioning are done", async () => {
    const { site, url } = await aPageSite(2, { site: { id: "depot", timezone: "Europe/Oslo", fuse: 63 } });
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles: ["veh-1"] }));
    await waitFor(() => chargers.model(chargerId("bay-01")).drawn < 11, { timeoutMs: MINUTE });
    const tried = await setpointd(["commission", "bay-02", "-c", site.config]);
    expect(tried).toMatchObject({ code: 0 });
    await using watched = await Watched.open(browser, `${url}/system`);
    const { page } = watched;
    const day = page.getByRole("region", { name: "Chargers over the last day" }).first();
    await day.getByText("100 % of 1").waitFor();
    const trials = page.getByRole("region", { name: "Commissioning" }).first();
    await trials.getByText("1 of 2 without bay-01").waitFor();
    await trials.getByRole("row", { name: /^bay-02 .*passed/ }).waitFor();
    await trials.getByText("32 A ✓, 19 A ✓, 6 A ✓").waitFor();
    // Two chargers of 32 A stay under a fuse of 63 A on no phase.
    await trials.getByText("44.2 kW of 43.5 kW").waitFor();
    const program = page.getByRole("region", { name: "Program" }).first();
    const configuration = page.getByRole("region", { name: "Configuration" }).first();
    await configuration.getByText("as on disk").waitFor();
    site.configure({ site: { id: "depot", timezone: "Europe/Oslo", fuse: 80 } });
    await page.reload();
    await configuration.getByText("differs from what runs:").waitFor();
    await configuration.getByText("site.fuse").waitFor();
    const saved = page.waitForEvent("download");
    await program.getByRole("button", { name: "Support archive" }).click();
    await program.getByText("The gateway tries itself and collects: up to a minute.").waitFor();
    const archive = await saved;
    expect(archive.suggestedFilename()).toMatch(/^setpointd-bundle-[\dT-]+\.tar\.gz$/);
    expect(
      readFileSync(await archive.path())
        .subarray(0, 2)
        .toString("hex"),
    ).toBe("1f8b");
    await program.getByText(/^Saved as setpointd-bundle-.*\. Secrets are removed/).waitFor();
    expect(await watched.violations()).toEqual([]);
    expect(watched.mistakes).toEqual([]);
  });

  test("an override by keyboard alone shows its consequences, then the measured result; its end gives the event back", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(
      anEvent("EV-1", {
        lastsMs: 30 * MINUTE,
        amperes: 10,
        vehicles: ["veh-1", "veh-2"],
        name: "Evening peak",
      }),
    );
    await using watched = await Watched.open(browser, `${url}/vehicles/veh-1`);
    const { page } = watched;
    await page.getByText("10 A", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Charge now" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Bus 1 gets up to 32 A instead of 10 A.").waitFor();
    await dialog.getByText("Other vehicles keep their setpoints.").waitFor();
    await dialog.getByText("Evening peak is then followed by 1 of 2 vehicles").waitFor();
    // 22 A more on three phases, for half an hour at most.
    await dialog.getByText(/^It takes \d\.\d kWh from Evening peak, by the plan\.$/).waitFor();
    await dialog.getByText(/^It ends when the present events end, at the latest .*\d\d:\d\d\.$/).waitFor();
    expect(await watched.violations()).toEqual([]);
    // No reason, no override.
    expect(await dialog.getByRole("button", { name: "Override" }).isDisabled()).toBe(true);
    await dialog.getByLabel("leaves early").focus();
    await page.keyboard.press("Space");
    await watched.picture("override");
    await dialog.getByRole("button", { name: "Override" }).focus();
    await page.keyboard.press("Enter");
    await dialog.getByText(/\b3\d(\.\d)? A after \d+ s/).waitFor();
    await watched.picture("override-measured");
    expect(chargers.model(chargerId("bay-01")).drawn).toBeGreaterThan(29);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "End override" }).first().click();
    await dialog.getByText("Bus 1 is then under Evening peak: at most 10 A.").waitFor();
    await dialog.getByText(/^In all it takes \d\.\d kWh from Evening peak, by the plan\.$/).waitFor();
    await watched.picture("override-end");
    await dialog.getByRole("button", { name: "End override" }).click();
    await page.getByRole("button", { name: "Charge now" }).waitFor();
    await waitFor(() => chargers.model(chargerId("bay-01")).drawn < 11, { timeoutMs: MINUTE });
    expect(watched.mistakes).toEqual([]);
  });

  test("an alarm opens, is acknowledged with a note, and clears, without a reload", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using _daemon = await running(site, chargers);
    await using watched = await Watched.open(browser, url);
    const { page } = watched;
    await page.getByText("Nothing needs a person.").waitFor();
    await site.broker.kill();
    await page.locator(".trouble-row.bad").first().waitFor();
    await page.getByRole("button", { name: "Acknowledge" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("acknowledged by loopback").first().waitFor();
    await page.locator(".facts").getByText("down").waitFor();
    await watched.picture("alarm");
    await site.broker.start();
    await page.getByText("Nothing needs a person.").waitFor({ timeout: 120_000 });
    expect(watched.mistakes).toEqual([]);
  });

  test("a killed daemon is noticed within 5 s, and after its return the page catches up without a reload", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    const first = await running(site, chargers);
    await using watched = await Watched.open(browser, `${url}/bays`);
    const { page } = watched;
    await page.locator(".tile.good").nth(1).waitFor();
    await page.evaluate("window.isSamePage = true");
    watched.isAway = true;
    // A stopped process keeps its connections open: no error reaches the browser. 5 s is the promise, 4 s the worst case.
    first.signal("SIGSTOP");
    await page.getByText("Connection lost").waitFor({ timeout: 5000 });
    await watched.picture("lost");
    first.signal("SIGCONT");
    await page.getByText("Connection lost").waitFor({ state: "hidden" });
    await first.end("SIGKILL");
    await page.getByText("Connection lost").waitFor({ timeout: 5000 });
    await using second = await site.run();
    await page.getByText("Connection lost").waitFor({ state: "hidden" });
    watched.isAway = false;
    await second.deliver(
      anEvent("EV-2", { lastsMs: 30 * MINUTE, amperes: 8, vehicles: ["veh-2"], name: "After" }),
    );
    await page.getByText("8 A", { exact: false }).first().waitFor();
    expect(await page.evaluate("window.isSamePage")).toBe(true);
    expect(watched.mistakes).toEqual([]);
  });

  test("a page whose computer slept, and one behind a proxy that holds the stream back, show the present state by themselves", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await using proxy = await HeldStream.before(url);
    await using slept = await Watched.open(browser, `${proxy.url}/bays`);
    await slept.page.locator(".tile.good").nth(1).waitFor();
    proxy.hold();
    await daemon.deliver(
      anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 8, vehicles: ["veh-1"], name: "While it slept" }),
    );
    // It is shown until the new stream is open, which may be for a moment.
    await slept.page.evaluate(
      `new Promise((shown) => {
        const isShown = () => document.body.innerText.includes("Connection lost 60 min ago");
        new MutationObserver(() => isShown() && shown()).observe(document.body, { subtree: true, childList: true, characterData: true });
        const awake = Date.now;
        Date.now = () => awake() + 3_600_000;
      })`,
    );
    await slept.page.getByText("Connection lost").waitFor({ state: "hidden" });
    await slept.page.getByText("8 A", { exact: false }).first().waitFor();
    proxy.holdsNew = true;
    await using held = await Watched.open(browser, proxy.url);
    await held.page.getByText("While it slept").waitFor({ timeout: 20_000 });
    expect([...slept.mistakes, ...held.mistakes]).toEqual([]);
  });

  test("without a session the page asks to sign in, a viewer sees actions that it may not take, and signing out ends the data", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    const { host } = new URL(url);
    site.configure({ operator: { listen: host, access: "login" } });
    const added = await setpointd(["user", "add", "kari", "--role", "viewer", "-c", site.config], {
      input: "a long password\na long password\n",
    });
    expect(added).toMatchObject({ code: 0 });
    await using chargers = chargersAt(site, 2);
    await using daemon = await site.start();
    await chargers.whenOnline();
    await daemon.deliver(
      anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles: ["veh-1"], name: "Peak" }),
    );
    await using watched = await Watched.open(browser, `${url}/bays`);
    const { page } = watched;
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.locator(".clock").count()).toBe(0);
    expect(await watched.violations()).toEqual([]);
    await watched.picture("login");
    await page.getByLabel("Name").fill("kari");
    await page.getByLabel("Password").fill("wrong password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("the name or the password is wrong").waitFor();
    await page.getByLabel("Password").fill("a long password");
    await page.getByRole("button", { name: "Sign in" }).click();
    // The screen that was asked for.
    await page.getByRole("heading", { name: "Bays" }).waitFor();
    await page.getByText("kari, viewer").waitFor();
    await page.goto(`${url}/vehicles/veh-1`);
    const act = page.getByRole("button", { name: "Charge now" });
    await act.waitFor();
    expect(await act.getAttribute("aria-disabled")).toBe("true");
    expect(await act.getAttribute("title")).toBe("Only an operator may do this.");
    await act.click({ force: true });
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.getByRole("status").getByText("Only an operator may do this.").waitFor();
    expect(await watched.violations()).toEqual([]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(watched.mistakes).toEqual([]);
  });

  test("the bays keep the order of the yard, a filter moves nothing, and planned work has its band on the timeline", async () => {
    const board = [["bay-03", "bay-01"], ["bay-02"]];
    const from = new Date(Date.now() + 60 * MINUTE).toISOString().slice(0, 16);
    const until = new Date(Date.now() + 180 * MINUTE).toISOString().slice(0, 16);
    const work = { name: "New transformer", from: `${from}Z`, until: `${until}Z`, bays: ["bay-01"] };
    const { site, url } = await aPageSite(4, {
      site: { id: "depot", timezone: "Europe/Oslo", board, maintenance: [work] },
    });
    await using _site = site;
    await using chargers = chargersAt(site, 4);
    await using daemon = await running(site, chargers);
    await using watched = await Watched.open(browser, `${url}/bays`);
    const { page } = watched;
    await page.locator(".tile").nth(3).waitFor();
    const order = () => page.locator(".tile-bay").allTextContents();
    const yard = ["bay-03", "bay-01", "bay-02", "bay-04"];
    expect(await order()).toEqual(yard);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles: ["veh-2"] }));
    await page.getByRole("button", { name: /In an event/ }).click();
    await page.getByText("1 of 4 shown").waitFor();
    expect(await order()).toEqual(yard);
    await page.getByRole("button", { name: /^Faults/ }).click();
    await page.getByText("0 of 4 shown").waitFor();
    for (const unreadable of ["{", "{{", "{{{"])
      await site.floor.publish("setpointd/depot/chargers/bay-04/telemetry", unreadable);
    await page.getByText("1 of 4 shown").waitFor();
    expect(await page.locator(".tile:not(.is-dimmed) .tile-bay").allTextContents()).toEqual(["bay-04"]);
    // A search finds a bay or its vehicle, and leaves the others out.
    await page.getByRole("button", { name: /^All/ }).click();
    await page.getByLabel("Bay or vehicle").fill("bus 2 ");
    await page.getByText("1 of 4 shown").waitFor();
    expect(await order()).toEqual(["bay-02"]);
    await page.getByLabel("Bay or vehicle").fill("BAY-0");
    await page.getByText("4 of 4 shown").waitFor();
    expect(await order()).toEqual(yard);
    await page.getByLabel("Bay or vehicle").fill("");
    await page.getByRole("button", { name: /^Faults/ }).click();
    await page.emulateMedia({ forcedColors: "active" });
    const alike: unknown = await page.evaluate(
      `[".chip[aria-pressed=true]", ".tabs a[aria-current]"].map((marked) => {
        const background = (element) => getComputedStyle(element).backgroundColor;
        const own = background(document.querySelector(marked));
        return [...document.querySelectorAll(".chip, .tabs a")].filter((each) => background(each) === own).length;
      })`,
    );
    // The open screen and the chosen filter.
    expect(alike).toEqual([2, 2]);
    await page.emulateMedia({ forcedColors: "none" });
    expect(await page.locator(".clock small").textContent()).toContain("Europe/Oslo");
    await page.goto(`${url}/timeline`);
    const band = page.getByRole("region", { name: "Maintenance" });
    await band.getByText(/^New transformer \(bay-01\), (\w{3} )?\d\d:\d\d to/).waitFor();
    expect(await band.locator("i:not(.now-mark)").count()).toBe(1);
    expect(await page.getByRole("row", { name: /^New transformer .* Maintenance: bay-01$/ }).count()).toBe(1);
    expect(await watched.violations()).toEqual([]);
    await watched.picture("maintenance");
    expect(watched.mistakes).toEqual([]);
  });

  test("a name of any length hides nothing beside it, on any screen, and HTML in it is text", async () => {
    const name = `${"Linjebuss".repeat(14)} <img src=x onerror=alert(1)>`;
    const { site, url } = await aPageSite(2, {
      vehicles: [1, 2].map((number) => ({ id: `veh-${number}`, name, charger: `bay-0${number}` })),
    });
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(
      anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles: ["veh-1", "veh-2"], name }),
    );
    await using watched = await Watched.open(browser, url);
    const { page } = watched;
    for (const [width, height] of [
      [1280, 800],
      [390, 844],
    ] as const) {
      await page.setViewportSize({ width, height });
      for (const path of PATHS.filter((each) => each !== "/events/EV-2")) {
        await page.goto(`${url}${path}`);
        await page.locator("main h1").waitFor();
        await page.getByText("<img src=x", { exact: false }).first().waitFor({ state: "attached" });
        expect([path, width, await watched.overflows()]).toEqual([path, width, false]);
      }
      await page.goto(`${url}/vehicles/veh-1`);
      const claims = await page.locator(".claims").boundingBox();
      const action = await page.getByRole("button", { name: "Charge now" }).boundingBox();
      expect(action?.y).toBeLessThan(claims?.y ?? 0);
      await page.goto(url);
      await page.getByRole("button", { name: "Charge now" }).first().click();
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.goto(`${url}/bays`);
      await page.locator(".tile-limiter").first().waitFor();
      const tile = await page.locator(".tile").first().boundingBox();
      const limiter = await page.locator(".tile-limiter").first().boundingBox();
      expect(limiter?.x).toBeLessThan((tile?.x ?? 0) + (tile?.width ?? 0));
    }
    expect(watched.mistakes).toEqual([]);
  });

  test("text of twice the size, as set in the browser, is used and cut nowhere, on a phone and on a tablet", async () => {
    const { site, url } = await aPageSite(3);
    await using _site = site;
    await using chargers = chargersAt(site, 3);
    await using daemon = await running(site, chargers);
    const vehicles = ["veh-1", "veh-2"];
    await daemon.deliver(anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles, name: "Peak" }));
    await using large = await openBrowser(32);
    for (const [width, height] of [
      [360, 740],
      [768, 1024],
    ] as const) {
      await using watched = await Watched.open(large, url, { viewport: { width, height } });
      const { page } = watched;
      const cut = (): Promise<unknown> =>
        page.evaluate(`(() => {
          const shown = document.querySelector("dialog[open]") ?? document.body;
          const { left, right } = shown.getBoundingClientRect();
          return [...shown.querySelectorAll("button, label, input, select, h1, h2, p, dd, td")]
            .filter((each) => !each.closest(".tabs, .scroll"))
            .filter((each) => each.getBoundingClientRect().width > 1)
            .filter((each) => each.getBoundingClientRect().right > right + 1 || each.getBoundingClientRect().left < left - 1)
            .map((each) => each.outerHTML.slice(0, 80));
        })()`);
      await page.locator("main h1").waitFor();
      expect(await page.evaluate("getComputedStyle(document.body).fontSize")).toBe("32px");
      for (const path of PATHS.filter((each) => each !== "/events/EV-2")) {
        await page.goto(url + path);
        await page.locator("main h1").waitFor();
        await page.locator(".fact").first().waitFor();
        expect([path, width, await watched.overflows(), await cut()]).toEqual([path, width, false, []]);
      }
      await page.goto(url);
      const strip = await page.locator(".strip").boundingBox();
      expect(strip?.height).toBeLessThan((height * 2) / 3);
      await page.goto(`${url}/log`);
      await page.locator(".log-line").nth(2).waitFor();
      const lines =
        "[...document.querySelectorAll('.log-line')].filter((line) => line.scrollHeight > line.clientHeight + 1).length";
      expect(await page.evaluate(lines)).toBe(0);
      await page.goto(`${url}/vehicles/veh-1`);
      for (const name of ["Charge now…", "Set departure…", "Bind to a bay…"]) {
        await page.getByRole("button", { name }).click();
        await page.getByRole("dialog").waitFor();
        expect([name, width, await cut()]).toEqual([name, width, []]);
        // Most of the window of the dialog is left for what will happen.
        const hidden = await page.evaluate(`(() => {
          const dialog = document.querySelector("dialog[open]").getBoundingClientRect();
          const buttons = document.querySelector("dialog[open] .buttons").getBoundingClientRect();
          return Math.max(0, dialog.bottom - Math.max(dialog.top, buttons.top)) / dialog.height;
        })()`);
        expect(Number(hidden)).toBeLessThan(1 / 3);
        await page.keyboard.press("Escape");
      }
      expect(watched.mistakes).toEqual([]);
    }
  });

  test("of hundreds of departures the most urgent are listed, and the number of the others leads to the bays", async () => {
    const vehicles = Array.from({ length: 70 }, (_, index) => ({
      id: `veh-${index}`,
      departures: [{ at: "05:40", energy: 10 }],
    }));
    const { site, url } = await aPageSite(2, { vehicles });
    await using _site = site;
    await using daemon = await site.run();
    expect(daemon.pid).toBeGreaterThan(0);
    await using watched = await Watched.open(browser, url);
    const { page } = watched;
    const rows = page.locator(".leaving tbody tr:not(.why)");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(60);
    await page.getByRole("link", { name: "10 more have more slack. The bays show all." }).click();
    await page.getByRole("heading", { name: "Bays" }).waitFor();
  });

  test("events and departures close together have marks that a finger can meet one by one, on a phone and on a wide screen", async () => {
    const times = ["05:00", "05:10", "05:20", "06:05", "07:40", "09:50"];
    const { site, url } = await aPageSite(6, {
      vehicles: times.map((at, index) => ({
        id: `veh-${index + 1}`,
        name: `Bus ${index + 1}`,
        charger: `bay-0${index + 1}`,
        departures: [{ at, energy: 10 }],
      })),
    });
    await using _site = site;
    await using daemon = await site.run();
    for (const [index, startIn] of [10, 17, 24, 40, 120].entries())
      await daemon.deliver(
        anEvent(`EV-${index}`, {
          startIn: startIn * MINUTE,
          lastsMs: 5 * MINUTE,
          amperes: 10,
          vehicles: [`veh-${index + 1}`],
          name: `Short ${index}`,
        }),
      );
    await using watched = await Watched.open(browser, `${url}/timeline`);
    const { page } = watched;
    await page.locator(".bar-event").nth(4).waitFor();
    for (const width of [360, 1440, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      for (const hours of ["24 h", "72 h"]) {
        await page.getByRole("button", { name: hours }).click();
        await page.getByRole("img", { name: /^[2-6] vehicles leave from .*05:00 to / }).waitFor();
        expect([width, hours, await watched.violations()]).toEqual([width, hours, []]);
        await watched.picture(`timeline-close-${width}-${hours.replace(" ", "")}`);
      }
    }
    expect(watched.mistakes).toEqual([]);
  });

  test("each screen has its own title, a wrong address and an unknown id lead back, and a bay without a message is not called empty", async () => {
    const { site, url } = await aPageSite(3, {
      vehicles: [{ id: "veh-1", name: "Bus 1", charger: "bay-01" }],
    });
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, name: "Evening peak" }));
    await using watched = await Watched.open(browser, `${url}/bays`);
    const { page } = watched;
    await page.locator(".tile", { hasText: "bay-02" }).getByText("unknown vehicle").waitFor();
    await page.locator(".tile", { hasText: "bay-03" }).getByText("not known", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Absent 0" }).waitFor();
    for (const [path, title] of [
      ["/", "Now · depot"],
      ["/bays", "Bays · depot"],
      ["/vehicles/veh-1", "Bus 1 · depot"],
      ["/vehicles/veh-9", "veh-9 · depot"],
      ["/events/EV-1", "Evening peak · depot"],
      ["/handover", "Handover · depot"],
    ] as const) {
      await page.goto(url + path);
      await page.locator("main h1").waitFor();
      expect([path, await page.title()]).toEqual([path, title]);
    }
    expect(watched.mistakes).toEqual([]);
    for (const path of ["/elsewhere", "/vehicles/veh-9", "/events/EV-9"]) {
      await page.goto(url + path);
      await page.locator("main h1", { hasText: /^(There is no such screen|No \w+ has the id)/ }).waitFor();
      expect([path, await watched.violations()]).toEqual([path, []]);
      await page.getByRole("link", { name: "Continue to the site" }).click();
      await page.getByRole("heading", { name: "Leaving next" }).waitFor();
      expect(await page.title()).toBe("Now · depot");
    }
  });

  test("the banner shows what the partner changed last, without a reload", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    const vehicles = ["veh-1", "veh-2"];
    const asked = { lastsMs: 30 * MINUTE, amperes: 10, vehicles, name: "Peak" };
    const first = anEvent("EV-1", asked);
    await daemon.deliver(first);
    await using watched = await Watched.open(browser, url);
    const { page } = watched;
    await page.getByText(/^unchanged since /).waitFor();
    await daemon.deliver(anEvent("EV-1", { ...asked, amperes: 8 }));
    await page.getByText(/^changed .*asks 10 A → 8 A/).waitFor();
    expect(watched.mistakes).toEqual([]);
  });

  test("a yard of 200 chargers that report every 5 s follows an event, and costs the browser little", async () => {
    const { site, url } = await aPageSite(200);
    await using _site = site;
    await using chargers = chargersAt(site, 200, { telemetryEvery: seconds(5) });
    await using daemon = await running(site, chargers);
    await using watched = await Watched.open(browser, `${url}/bays`);
    const { page } = watched;
    await page.locator(".tile.good").nth(199).waitFor();
    const client = await threadMeter(page);
    const before = await threadTime(client);
    const vehicles = Array.from({ length: 200 }, (_, index) => `veh-${index + 1}`);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles }));
    await page
      .locator(".tile", { hasText: /set 10 A.*10 A/ })
      .nth(199)
      .waitFor();
    // CPU time, also of the readings meanwhile: `npm run page:measure` has the figures and their goals.
    expect((await threadTime(client)) - before).toBeLessThan(3);
    expect(watched.mistakes).toEqual([]);
  });

  test("the handover shows the shift as its route answers it, and prints black on white without the controls", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(
      anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles: ["veh-1", "veh-2"], name: "Peak" }),
    );
    await using watched = await Watched.open(browser, `${url}/handover`, { colorScheme: "dark" });
    const { page } = watched;
    await page.locator("main h1").waitFor();
    await page.getByText(/mode drive; 1 event, 1 active/).waitFor();
    await page.getByText(/10 A\. \d of 2 vehicles followed/).waitFor();
    await page.getByText('event EV-1 "Peak" ends').waitFor();
    await page.locator(".fact").first().waitFor();
    await page.getByRole("combobox", { name: "Colours" }).selectOption("dark");
    await page.emulateMedia({ media: "print" });
    expect(await page.locator(".tabs").isVisible()).toBe(false);
    expect(await page.evaluate("getComputedStyle(document.body).color")).toBe("rgb(20, 32, 43)");
    expect((await page.pdf({ format: "A4" })).length).toBeGreaterThan(5000);
    for (const path of ["/", "/bays", "/events/EV-1", "/log", "/system"]) {
      await page.goto(`${url}${path}`);
      await page.locator("main h1, main h2").first().waitFor();
      await page.getByText("EV-1").or(page.locator(".tile, .log-row, .pairs")).first().waitFor();
      const controls = page.locator("button:visible:not(.log-line), .button:visible, select:visible");
      expect([path, await controls.count()]).toEqual([path, 0]);
    }
    expect(watched.mistakes).toEqual([]);
  });

  test("on a phone with a keyboard, no control that gets the focus is behind the tabs at the bottom", async () => {
    const { site, url } = await aPageSite(6);
    await using _site = site;
    await using chargers = chargersAt(site, 6);
    await using daemon = await running(site, chargers);
    const vehicles = [1, 2, 3, 4, 5, 6].map((number) => `veh-${number}`);
    await daemon.deliver(anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles, name: "Peak" }));
    await using watched = await Watched.open(browser, url, { viewport: { width: 390, height: 700 } });
    const { page } = watched;
    for (const path of ["/bays", "/log", "/system"]) {
      await page.goto(`${url}${path}`);
      await page.locator(".tile a, .log-row, td.act button").nth(3).waitFor();
      const covered = new Set<string>();
      for (let press = 0; press < 40; press += 1) {
        await page.keyboard.press("Tab");
        const found: unknown = await page.evaluate(`(() => {
          const focused = document.activeElement;
          const { x, y, width, height } = focused.getBoundingClientRect();
          const top = document.elementFromPoint(x + width / 2, y + height / 2);
          return top?.closest(".tabs") && !focused.closest(".tabs") ? focused.outerHTML.slice(0, 80) : "";
        })()`);
        if (found !== "") covered.add(String(found));
      }
      expect([path, [...covered]]).toEqual([path, []]);
    }
  });

  test("the log verifies the record, narrows to a charger, opens a row, and saves what it shows", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    await using chargers = chargersAt(site, 2);
    await using daemon = await running(site, chargers);
    await daemon.deliver(
      anEvent("EV-1", { lastsMs: 30 * MINUTE, amperes: 10, vehicles: ["veh-1", "veh-2"], name: "Peak" }),
    );
    await using watched = await Watched.open(browser, `${url}/log`);
    const { page } = watched;
    await page
      .getByText(/^bay-02 \(Bus 2\) to 10 A/)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Check the record" }).click();
    await page.getByText(/Whole: \d+ rows verified at/).waitFor();
    await page.getByLabel("Charger").fill("bay-01");
    await page.getByLabel("Charger").press("Enter");
    await page
      .getByText(/^bay-02 /)
      .first()
      .waitFor({ state: "detached" });
    const line = page.getByRole("button", { name: /bay-01 \(Bus 1\) to 10 A/ }).first();
    await line.click();
    await page.locator("pre").getByText('"winner"').waitFor();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as CSV" }).click();
    const [head, ...rows] = readFileSync(await (await saved).path(), "utf8")
      .trim()
      .split("\n");
    expect(head).toBe("seq,at,kind,charger,vehicle,event,command,words,hash");
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.every((row) => row.includes(",bay-01,"))).toBe(true);
    expect(watched.mistakes).toEqual([]);
  });
});
