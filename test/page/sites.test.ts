import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { aFleet, siteFile } from "../support/aFleet.ts";
import { browserAvailable, chargersAt, openBrowser, Watched } from "../support/aPage.ts";
import { freePort } from "../support/freePort.ts";
import { postgresMissing } from "../support/postgres.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const SITES = Array.from({ length: 120 }, (_, index) => `site-${String(index + 1).padStart(3, "0")}`);
/** Sites that a process leads at most, so that many have no leader. */
const LED = 4;

/** A site with two simulated chargers, `bay-01` and `bay-02`. */
const depot = (site: string): object => ({
  ...siteFile(site),
  chargers: [1, 2].map((each) => ({ id: `bay-0${each}`, current: { min: 6, max: 32 } })),
  vehicles: [1, 2].map((each) => ({ id: `${site}-veh-${each}`, charger: `bay-0${each}` })),
});

/** Settings of a process with a page of its own address. */
const aProcess = async (): Promise<object> => ({
  operator: { listen: `127.0.0.1:${await freePort()}` },
  sitesAtMost: LED,
});

describe.skipIf(!browserAvailable || postgresMissing() !== null)("the page of a fleet in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  test("the list shows which process leads each site and how it is, narrows, has pages, and opens the page of a site", async () => {
    const fleet = await aFleet();
    expect((await fleet.put(...SITES.map(depot))).code).toBe(0);
    await using first = await fleet.start(fleet.configure("one", await aProcess()));
    await waitFor(async () => /^setpointd_sites_led 4$/m.test((await first.get("/metrics")).text));
    await using second = await fleet.start(fleet.configure("two", await aProcess()));
    await waitFor(async () => /^setpointd_sites_led 4$/m.test((await second.get("/metrics")).text));
    await using chargers = chargersAt(fleet.site, 2, { name: "site-001" });
    await chargers.whenOnline();

    await using watched = await Watched.open(browser, first.operatorUrl);
    const { page } = watched;
    const row = (site: string) => page.getByRole("row", { name: new RegExp(`^${site} `) });
    await row("site-001").getByText("2/2 live").waitFor();
    await row("site-001").getByText("no alarm").waitFor();
    await row("site-009").getByText("no leader").waitFor();
    await page.locator(".fact", { hasText: "8/120 sites" }).waitFor();
    // Chargers that never sent anything are no alarm. They are not live either.
    await row("site-002").getByText("0/2 live").waitFor();
    // No row but those of the page: a fleet has 10,000 sites.
    expect(await page.locator(".sites tbody tr").count()).toBe(50);

    await page.getByText("1 to 50").waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("51 to 100").waitFor();
    await row("site-051").waitFor();
    await page.getByRole("button", { name: "Next" }).click();
    await row("site-120").waitFor();
    expect(await page.locator(".sites tbody tr").count()).toBe(20);
    expect(await page.getByRole("button", { name: "Next" }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Previous" }).click();
    await page.getByText("51 to 100").waitFor();
    await page.getByRole("button", { name: /^Without leader/ }).click();
    await row("site-009").waitFor();
    expect(await row("site-001").count()).toBe(0);
    await page.getByRole("button", { name: /^All/ }).click();
    await page.getByPlaceholder("Site or leader").fill("SITE-00");
    await row("site-010").waitFor({ state: "detached" });
    expect(await page.locator(".sites tbody tr").count()).toBe(9);

    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect([colorScheme, await watched.violations()]).toEqual([colorScheme, []]);
      for (const [width, height] of [
        [320, 640],
        [390, 844],
        [820, 1180],
        [1280, 800],
        [2560, 1440],
      ] as const) {
        await page.setViewportSize({ width, height });
        expect([width, await watched.overflows()]).toEqual([width, false]);
        await watched.picture(`sites-${colorScheme}-${width}`);
      }
    }

    // The page of a site that this process leads, and the way back.
    await row("site-001").getByRole("link").click();
    await page.getByRole("link", { name: "Bays" }).click();
    await page.locator(".tile", { hasText: "bay-02" }).waitFor();
    expect(page.url()).toBe(`${first.operatorUrl}/sites/site-001/bays`);
    await page.getByRole("link", { name: "Log" }).click();
    await page.getByText("setpointd started").first().waitFor();
    await page.reload();
    await page.locator(".log-row").first().waitFor();
    await page.getByRole("link", { name: "Sites" }).click();
    // A site of the other process opens there.
    await row("site-005").getByRole("link").click();
    await page.getByRole("link", { name: "Bays" }).click();
    await page.locator(".tile", { hasText: "bay-01" }).waitFor();
    expect(page.url()).toBe(`${second.operatorUrl}/sites/site-005/bays`);
    expect(watched.mistakes).toEqual([]);

    // At a process that does not lead it, the page names the way to the leader.
    await page.goto(`${first.operatorUrl}/sites/site-005/`);
    await page.getByText("this process does not lead the site site-005").waitFor();
    expect(await page.getByText("Connection lost").count()).toBe(0);
    await page.getByRole("link", { name: "Sites" }).click();

    await first.end("SIGKILL");
    await page.getByText("Connection lost").waitFor();
  });

  test("with a login the list asks to sign in, and shows nothing before", async () => {
    const fleet = await aFleet();
    expect((await fleet.put(siteFile("north"))).code).toBe(0);
    const listen = `127.0.0.1:${await freePort()}`;
    const config = fleet.configure("one", { operator: { listen, access: "login" } });
    const added = await setpointd(["user", "add", "kari", "--role", "viewer", "-c", config], {
      input: "a long password\na long password\n",
    });
    expect([added.code, added.stderr]).toEqual([0, ""]);
    await using _daemon = await fleet.start(config);
    await using watched = await Watched.open(browser, `http://${listen}`);
    const { page } = watched;
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.getByText("north").count()).toBe(0);
    await page.getByLabel("Name").fill("kari");
    await page.getByLabel("Password").fill("a long password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("row", { name: /^north / }).waitFor();
    await page.getByText("kari, viewer").waitFor();
    await page.getByRole("link", { name: "north" }).click();
    await page.getByText("kari, viewer").waitFor();
    await page.getByRole("link", { name: "Sites" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.getByText("north").count()).toBe(0);
    expect(watched.mistakes).toEqual([]);
  });
});
