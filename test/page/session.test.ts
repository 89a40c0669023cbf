import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { aPageSite, browserAvailable, chargersAt, openBrowser, Watched } from "../support/aPage.ts";
import { anEvent } from "../support/aSite.ts";
import { setpointd } from "../support/setpointd.ts";

const PASSWORD = "a long password";

describe.skipIf(!browserAvailable)("the session of the page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  test("a session that ends under an open dialog leads to the sign-in and back to the same screen, with the rights that now hold", async () => {
    const { site, url } = await aPageSite(2);
    await using _site = site;
    site.configure({ operator: { listen: new URL(url).host, access: "login" } });
    const add = (role: string) =>
      setpointd(["user", "add", "kari", "--role", role, "-c", site.config], {
        input: `${PASSWORD}\n${PASSWORD}\n`,
      });
    expect(await add("operator")).toMatchObject({ code: 0 });
    await using chargers = chargersAt(site, 2);
    await using daemon = await site.start();
    await chargers.whenOnline();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 1_800_000, amperes: 10, vehicles: ["veh-1"] }));
    const path = "/log?event=EV-1";
    await using watched = await Watched.open(browser, url + path);
    const { page } = watched;
    const signIn = async (): Promise<void> => {
      await page.getByLabel("Name").fill("kari");
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    const address = (): string => page.url().slice(url.length);
    await signIn();
    await page.getByText("kari, operator").waitFor();
    expect(address()).toBe(path);

    await page.goto(`${url}/vehicles/veh-1`);
    await page.evaluate("window.isSamePage = true");
    await page.getByRole("button", { name: "Charge now" }).click();
    await page.getByRole("dialog").waitFor();
    expect(await setpointd(["user", "remove", "kari", "-c", site.config])).toMatchObject({ code: 0 });
    await page.getByRole("heading", { name: "Sign in" }).waitFor({ timeout: 30_000 });
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(await page.getByText("Connection lost").count()).toBe(0);

    expect(await add("viewer")).toMatchObject({ code: 0 });
    await signIn();
    await page.getByText("kari, viewer").waitFor();
    expect(address()).toBe("/vehicles/veh-1");
    const act = page.getByRole("button", { name: "Charge now" });
    await act.waitFor();
    expect(await act.getAttribute("aria-disabled")).toBe("true");
    expect(await page.evaluate("window.isSamePage")).toBe(true);
    expect(watched.mistakes).toEqual([]);
  });
});
