// Makes the pictures of the README from the page of the demo: npm run pictures
import { join } from "node:path";

import { openBrowser } from "../support/aPage.ts";
import { launch } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const FOLDER = new URL("../../docs/pictures/", import.meta.url).pathname;

const demo = launch([]);
try {
  let output = "";
  demo.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const url = await waitFor(() => /Open (http:\S+)/.exec(output)?.[1]);
  await using stack = new AsyncDisposableStack();
  const browser = await openBrowser();
  stack.defer(() => browser.close());
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme });
    await page.goto(url);
    await page.locator(".banner.is-active").waitFor({ timeout: 60_000 });
    await page.locator(".rows tbody tr").nth(3).waitFor({ timeout: 60_000 });
    // A vehicle that still ramps up is short because of itself.
    await page.locator(".why", { hasText: "event EV-" }).waitFor({ timeout: 60_000 });
    // The alarm is open, and no short event of the script stands beside the one of the story.
    await page.getByRole("button", { name: "Acknowledge" }).waitFor({ timeout: 180_000 });
    await page.getByText("No event is planned.").waitFor({ timeout: 180_000 });
    await page.screenshot({ path: join(FOLDER, `now-${colorScheme}.png`) });
  }
} finally {
  demo.kill("SIGINT");
}
