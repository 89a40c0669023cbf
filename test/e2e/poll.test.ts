import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;

describe.skipIf(!mosquittoAvailable)("setpointd poll", () => {
  test("the daemon polls the partner at once, and the verb prints the result", async () => {
    await using site = await aSite();
    const poll = () => setpointd(["poll", "-c", site.config]);
    expect(await poll()).toMatchObject({ code: 1, stderr: expect.stringContaining("no daemon runs") });

    await using daemon = await site.run();
    await waitFor(() => site.partner.faults.requests.list === 1);
    expect(await poll()).toMatchObject({
      code: 0,
      stdout: "the list was read: it is the same as last time\n",
    });
    site.partner.put(anEvent("EV-1", { lastsMs: MINUTE }));
    expect(await poll()).toMatchObject({
      code: 0,
      stdout: "the list was read: 1 accepted, 0 repeats, 0 rejected\n",
    });
    expect((await site.floor.nth("bay-01", 1)).set.event).toBe("EV-1");
    expect((await daemon.view<{ id: string }[]>("/api/v1/events")).map(({ id }) => id)).toEqual(["EV-1"]);
  });

  test("after an outage it brings what was missed at once, and while it lasts the verb prints the reason", async () => {
    await using site = await aSite();
    const poll = () => setpointd(["poll", "-c", site.config]);
    site.partner.faults.failNext(500, 1000, "list");
    await using daemon = await site.run();
    await waitFor(() => site.partner.faults.requests.list > 0);
    expect(await poll()).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "the list could not be read: the partner answered 500\n",
    });
    site.partner.put(anEvent("EV-1", { lastsMs: MINUTE }));
    site.partner.faults.forgive();
    expect((await poll()).code).toBe(0);
    expect((await daemon.view<{ id: string }[]>("/api/v1/events")).map(({ id }) => id)).toEqual(["EV-1"]);
  });
});
