import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { OperatorListener } from "../../src/operator/http/server.ts";
import { readPage } from "../../src/operator/http/page.ts";
import { shipped } from "../../src/platform/packageRoot.ts";
import { someAccounts, someListener, someViews, T0 } from "../support/aListener.ts";
import { aPageSite, browserAvailable, chargersAt, openBrowser, Watched } from "../support/aPage.ts";
import { anEvent } from "../support/aSite.ts";
import { setpointd } from "../support/setpointd.ts";

const PASSWORD = "a long password";

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Name").fill("kari");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
}

describe.skipIf(!browserAvailable)("the session of the page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  test("a session that ends under an open dialog asks to sign in over the same screen, which then has the rights that now hold", async () => {
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
    const address = (): string => page.url().slice(url.length);
    await signIn(page);
    await page.getByText("kari, operator").waitFor();
    expect(address()).toBe(path);

    await page.goto(`${url}/vehicles/veh-1`);
    await page.evaluate("window.isSamePage = true");
    await page.getByRole("button", { name: "Charge now" }).click();
    await page.getByRole("dialog").waitFor();
    expect(await setpointd(["user", "remove", "kari", "-c", site.config])).toMatchObject({ code: 0 });
    await page.getByRole("heading", { name: "Your session has ended" }).waitFor();
    expect(await watched.violations()).toEqual([]);
    await page.keyboard.press("Escape");
    expect(await page.getByText("Connection lost").count()).toBe(0);

    expect(await add("viewer")).toMatchObject({ code: 0 });
    await signIn(page);
    await page.getByText("kari, viewer").waitFor();
    expect(address()).toBe("/vehicles/veh-1");
    expect(await page.getByRole("dialog").count()).toBe(0);
    const act = page.getByRole("button", { name: "Charge now" });
    await act.waitFor();
    expect(await act.getAttribute("aria-disabled")).toBe("true");
    expect(await page.evaluate("window.isSamePage")).toBe(true);
    expect(watched.mistakes).toEqual([]);
  });

  test("a session that ends by time keeps what was typed, and the action goes on after the sign-in", async () => {
    const { accounts } = someAccounts();
    await accounts.addUser("kari", "operator", PASSWORD, T0);
    let later = 0;
    const reasons: string[] = [];
    const listener = await OperatorListener.start(
      someListener({
        access: { kind: "login", accounts, isSecure: false },
        monotonic: () => performance.now() + later,
        page: readPage(shipped("dist/page")),
      }),
      Promise.resolve({
        ...someViews,
        holds: {
          ...someViews.holds,
          end: (id, body, by) => {
            reasons.push(`${by}: ${(body as { readonly reason: string }).reason}`);
            return someViews.holds.end(id, body, by);
          },
        },
      }),
    );
    await using _listener = listener;
    await using watched = await Watched.open(browser, `http://127.0.0.1:${listener.port}/vehicles/veh-214`);
    const { page } = watched;
    await signIn(page);
    await page.getByRole("button", { name: "End override" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Another reason").fill("back from line 7");
    later = 7 * 24 * 3_600_000;
    await dialog.getByRole("button", { name: "End override" }).click();
    await page.getByRole("heading", { name: "Your session has ended" }).waitFor();
    await watched.picture("session-ended");
    expect(reasons).toEqual([]);
    await signIn(page);
    await page.getByRole("heading", { name: "Your session has ended" }).waitFor({ state: "hidden" });
    expect(await dialog.getByLabel("Another reason").inputValue()).toBe("back from line 7");
    await dialog.getByRole("button", { name: "End override" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect(reasons).toEqual(["kari: back from line 7"]);
    expect(watched.mistakes).toEqual([]);
  });
});
