import { describe, expect, test } from "vitest";

import { aSite, anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { ServiceManager, systemdInstalled } from "../support/serviceManager.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;

describe.skipIf(!mosquittoAvailable)("as a service of a gateway", () => {
  test.skipIf(!systemdInstalled)(
    "systemd is notified that it is ready, then that it lives, then that it stops",
    async () => {
      using manager = await ServiceManager.start();
      await using site = await aSite();
      await using daemon = await site.run({ NOTIFY_SOCKET: manager.socket, WATCHDOG_USEC: "400000" });
      await waitFor(() => manager.heard.split("WATCHDOG=1\nSTATUS=controlling").length > 3);
      expect(await daemon.end("SIGTERM")).toBe(0);
      await waitFor(() => manager.heard.includes("STOPPING=1"));
      expect(manager.heard.match(/READY=1/g)).toHaveLength(1);
      expect(manager.heard.indexOf("READY=1")).toBeLessThan(manager.heard.indexOf("WATCHDOG=1"));
    },
  );

  test("SIGTERM stops it within 5 s, even where it should release chargers first and the broker hangs", async () => {
    await using site = await aSite({ over: { control: { onStop: "release" } } });
    await using daemon = await site.run();
    await daemon.deliver(anEvent("EV-1", { lastsMs: 60 * SECOND }));
    await site.floor.nth("bay-01", 1);
    site.broker.freeze();
    const asked = performance.now();
    await daemon.end("SIGTERM");
    expect(performance.now() - asked).toBeLessThan(5 * SECOND);
    site.broker.thaw();
  });
});
