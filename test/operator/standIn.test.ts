import { expect, test } from "vitest";

import { instant } from "../../src/domain/units.ts";
import { Refusal } from "../../src/operator/http/problem.ts";
import { type StandIn, standInPage, standInStatus, standInViews } from "../../src/operator/standIn.ts";

const AT = instant(Date.parse("2026-11-23T05:30:00.250Z"));

const leader = {
  self: false,
  process: "gw-1 4711",
  epoch: 7,
  since: AT,
  leaseUntil: instant(AT + 10_000),
  page: "https://gw-1:8080",
};

const aStandIn = (over: Partial<StandIn> = {}): StandIn => ({
  site: "depot",
  timezone: "UTC",
  since: AT,
  leasesLost: 2,
  leader,
  ahead: null,
  fault: null,
  ...over,
});

const sentenceOf = (over: Partial<StandIn>): string =>
  (standInStatus(AT, aStandIn(over)) as { sentence: string }).sentence;

test("the status of a stand-in names the leader, since when it leads and its page", () => {
  expect(standInStatus(instant(AT + 1_000), aStandIn())).toEqual({
    site: "depot",
    timezone: "UTC",
    startedAt: "2026-11-23T05:30:00.250Z",
    now: "2026-11-23T05:30:01.250Z",
    ready: false,
    sentence:
      "this gateway stands by: gw-1 4711 leads the site depot since 2026-11-23T05:30:00Z, and its page is https://gw-1:8080",
    leader: { ...leader, since: "2026-11-23T05:30:00.250Z", leaseUntil: "2026-11-23T05:30:10.250Z" },
    database: null,
  });
  expect(sentenceOf({ leader: { ...leader, page: null } })).toBe(
    "this gateway stands by: gw-1 4711 leads the site depot since 2026-11-23T05:30:00Z",
  );
  expect(sentenceOf({ leader: null })).toBe("this gateway stands by: no process leads the site depot now");
  expect(sentenceOf({ leader: { ...leader, page: null }, fault: "timeout" })).toBe(
    "this gateway stands by: the database does not answer (timeout); by its last answer gw-1 4711 leads the site depot since 2026-11-23T05:30:00Z",
  );
  expect(sentenceOf({ leader: null, fault: "timeout" })).toBe(
    "this gateway stands by: the database does not answer (timeout)",
  );
});

test("a stand-in is healthy, not ready, and refuses every other request with the leader's name", async () => {
  const views = await Promise.resolve(
    standInViews(
      () => aStandIn(),
      () => AT,
    ),
  );
  expect(views.health()).toEqual({ fit: true, status: "standing by" });
  expect(views.ready()).toBe(false);
  expect(await views.status()).toMatchObject({ leader: { self: false, process: "gw-1 4711" } });
  const metrics = await views.metrics.text();
  expect(metrics).toContain("\nsetpointd_sites_led 0\n");
  expect(metrics).toContain("\nsetpointd_lease_lost_total 2\n");
  const refused = (): unknown => views.holds;
  expect(refused).toThrow(Refusal);
  expect(refused).toThrow(/gw-1 4711 leads the site depot.*Only the leader answers this$/);
});

test("the page of a stand-in links to the leader's page, and shows no mark-up of a name", () => {
  let standIn = aStandIn();
  const page = standInPage(
    { html: "", assets: new Map([["page-1.css", { type: "text/css", plain: Buffer.from(""), gzip: null }]]) },
    () => standIn,
  );
  expect(page.html).toContain('<link rel="stylesheet" href="/assets/page-1.css">');
  expect(page.html).toContain("<h1>depot: stand-in of gw-1 4711</h1>");
  expect(page.html).toContain('<a href="https://gw-1:8080">Open the page of the leader</a>');
  standIn = aStandIn({ leader: { ...leader, process: "<b> 1", page: null } });
  expect(page.html).toContain("stand-in of &#60;b&#62; 1");
  expect(page.html).not.toContain("<a ");
  standIn = aStandIn({ leader: null });
  expect(standInPage(null, () => standIn).html).toContain("<h1>depot: stand-in</h1>");
});
