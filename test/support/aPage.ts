import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import pino from "pino";
import {
  type Browser,
  type BrowserContextOptions,
  type CDPSession,
  chromium,
  type Page,
} from "playwright-core";

import { amperes, chargerId, instant, type Millis, seconds } from "../../src/domain/units.ts";
import { SimulatedChargers } from "../../src/sim/chargers.ts";
import type { Daemon } from "./aDaemon.ts";
import { freePort } from "./freePort.ts";
import { aSite, type Sections, type Site } from "./aSite.ts";
import { mosquittoAvailable } from "./mosquitto.ts";

const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const executablePath = BROWSERS.find((path) => existsSync(path));

/** False: use `describe.skipIf(!browserAvailable)`. Where CI is set, a test that needs it fails instead. */
export const browserAvailable =
  (executablePath !== undefined && mosquittoAvailable) || Boolean(process.env["CI"]);

const ROOT = new URL("../..", import.meta.url).pathname;
/** Ms that a step may take, unless a test promises less. */
const PATIENCE = 60_000;
/** Pictures of the last run, for people. */
const PICTURES = join(ROOT, "coverage/page");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** `textPx`: text size that a person has set in the browser, in px. */
export const openBrowser = (textPx = 16): Promise<Browser> => {
  if (executablePath === undefined)
    throw new Error("chromium is not installed (apt-get install chromium): page tests cannot run");
  const text = `--blink-settings=defaultFontSize=${textPx}`;
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", text] });
};

/** Simulated chargers of a site. Each has the vehicle of its number. `ramp`: their change of current, A/s. */
export function chargersAt(
  { broker }: Site,
  count: number,
  {
    telemetryEvery = seconds(2),
    name = "depot",
    ramp = 20,
  }: {
    readonly telemetryEvery?: Millis;
    readonly name?: string;
    readonly ramp?: number;
  } = {},
): SimulatedChargers {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  return SimulatedChargers.start({
    url: broker.url,
    prefix: "setpointd",
    site: name,
    telemetryEvery,
    chargers: ids.map((number) => ({
      traits: {
        id: chargerId(bay(number)),
        phases: 3,
        voltage: 230,
        minCurrent: amperes(6),
        maxCurrent: amperes(32),
        ownDefault: amperes(32),
        ramp,
      },
      vehicle: { id: null, identity: null, maxCurrent: amperes(32), capacityWh: 300_000, soc: 50 },
      faults: {},
    })),
    now: () => instant(Date.now()),
    log: pino({ level: "silent" }),
  });
}

const bay = (number: number): string => `bay-${String(number).padStart(2, "0")}`;

/** A site whose page has a fixed address, so that it survives a restart of the daemon. */
export async function aPageSite(count: number, over: Sections = {}): Promise<{ site: Site; url: string }> {
  const port = await freePort();
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const site = await aSite({
    over: {
      operator: { listen: `127.0.0.1:${port}` },
      control: { verdict: { ramp: "1s" } },
      chargers: ids.map((number) => ({ id: bay(number), current: { min: 6, max: 32 } })),
      vehicles: ids.map((number) => ({ id: `veh-${number}`, name: `Bus ${number}`, charger: bay(number) })),
      ...over,
    },
  });
  return { site, url: `http://127.0.0.1:${port}` };
}

/** An open page that collects what must not happen. */
export class Watched implements AsyncDisposable {
  readonly page: Page;
  /** Errors of scripts, failed requests, and violations of the policy. */
  readonly mistakes: string[] = [];
  /** True: the gateway is away on purpose, so failed requests are no mistake. */
  isAway = false;
  readonly #close: () => Promise<void>;

  private constructor(page: Page, close: () => Promise<void>) {
    this.page = page;
    this.#close = close;
    page.on("pageerror", (error) => this.mistakes.push(error.message));
    page.on("console", (message) => {
      if (message.type() !== "error") return;
      // The gateway is away, or nobody is signed in yet.
      const isRefused = /status of 401/.test(message.text());
      const isLost = this.isAway && /net::ERR_/.test(message.text());
      if (!isRefused && !isLost) this.mistakes.push(`${message.text()} ${message.location().url}`);
    });
  }

  static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    // No bound on the page: a busy machine needs many times what an idle one does.
    context.setDefaultTimeout(PATIENCE);
    const watched = new Watched(await context.newPage(), () => context.close());
    await watched.page.goto(url);
    return watched;
  }

  /** Keeps a picture for people. */
  async picture(name: string): Promise<void> {
    mkdirSync(PICTURES, { recursive: true });
    await this.page.screenshot({ path: join(PICTURES, `${name}.png`) });
  }

  /** Violations of WCAG 2.2 AA that axe finds. */
  async violations(): Promise<readonly string[]> {
    // The policy of the page allows no inline script. The tool's own world is outside the page.
    const found: unknown = await this.page.evaluate(
      `${AXE}; axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })
        .then(({ violations }) => violations.map(({ id, nodes }) =>
          id + ": " + nodes.slice(0, 3).map(({ target, failureSummary }) => target + " " + failureSummary).join(" | ")))`,
    );
    return found as readonly string[];
  }

  /** True: something is wider than the window. */
  async overflows(): Promise<boolean> {
    const wide: unknown = await this.page.evaluate(
      "document.documentElement.scrollWidth > document.documentElement.clientWidth",
    );
    return wide === true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

/** A daemon with its broker, and chargers that are online. */
export async function running(site: Site, chargers: SimulatedChargers): Promise<Daemon> {
  const daemon = await site.run();
  await chargers.whenOnline();
  return daemon;
}

/** CPU time of the main thread in s: other programs on the machine do not count. */
export async function threadTime(client: CDPSession): Promise<number> {
  const { metrics } = await client.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0;
}

export async function threadMeter(page: Page): Promise<CDPSession> {
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  return client;
}
