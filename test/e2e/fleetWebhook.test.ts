import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";

import { aFleet, siteFile } from "../support/aFleet.ts";
import { anEvent } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { postgresMissing } from "../support/postgres.ts";
import { setpointd } from "../support/setpointd.ts";
import { waitFor } from "../support/waitFor.ts";

const HOUR = 3_600_000;

/** Runs this module in each thread of a process before its program. */
const before = (module: string) => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(module)}`,
});

/** A fleet with one site of two vehicles, `v-north-a` and `v-north-b`. */
async function aFleetOfOne() {
  const fleet = await aFleet();
  expect((await fleet.put(siteFile("north"))).stderr).toBe("");
  return fleet;
}
const theEvent = anEvent("EV-1", { lastsMs: HOUR, vehicles: ["v-north-a"] });

describe.skipIf(!mosquittoAvailable || postgresMissing() !== null)("the webhook of a fleet", () => {
  test("the partner is answered while the event loop of the process stands still", async () => {
    const fleet = await aFleetOfOne();
    const worker = await fleet.start(
      fleet.config,
      before(`
        import { writeSync } from "node:fs";
        import { isMainThread } from "node:worker_threads";
        if (isMainThread) process.on("SIGUSR2", () => {
          writeSync(2, "stands still. ");
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_000);
          writeSync(2, "continues. ");
        });`),
    );
    worker.signal("SIGUSR2");
    await waitFor(() => worker.errors.includes("stands still."));
    const answered = await worker.deliver(theEvent);
    expect([answered.status, worker.errors]).toEqual([202, "stands still. "]);
    // The delivery was stored, and is handed on later.
    await fleet.site.floor.nth("north-a", 1);
    expect(worker.errors).toBe("stands still. continues. ");
  });

  test("a refused delivery is counted, logged and answered with 401", async () => {
    const fleet = await aFleetOfOne();
    const worker = await fleet.start(fleet.config);
    const wrong = Buffer.alloc(32).toString("base64");
    expect((await worker.deliver(theEvent, { "x-payload-signature": wrong })).status).toBe(401);
    expect(
      await waitFor(() => worker.lines.find(({ reason }) => reason === "signatureDiffers")),
    ).toMatchObject({ level: 40, from: "127.0.0.1" });
    expect((await worker.get("/metrics")).text).toContain('reason="signatureDiffers"} 1');
  });

  test("a delivery without authentication only makes the fleet fetch the list", async () => {
    const fleet = await aFleetOfOne();
    const { partner, floor } = fleet.site;
    const { baseUrl, tokenUrl } = partner;
    const config = fleet.configure("hints", {
      webhook: { listen: "127.0.0.1:0", auth: "none" },
      vtn: { baseUrl, tokenUrl, clientId: "depot", clientSecret: { file: "client-secret" }, pollEvery: "1h" },
    });
    const worker = await fleet.start(config);
    await waitFor(async () => (await worker.view<{ ready: boolean }[]>("/api/v1/sites"))[0]?.ready);
    partner.put(theEvent);
    const answered = await worker.deliver("{}");
    expect([answered.status, answered.json]).toMatchObject([202, { hint: true }]);
    await floor.nth("north-a", 1);
  });

  test("an address that is taken is named, and the process ends", async () => {
    const fleet = await aFleetOfOne();
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const config = fleet.configure("taken", {
      webhook: { listen: `127.0.0.1:${port}`, auth: { hmac: { secret: { file: "webhook-secret" } } } },
    });
    const { code, stderr } = await setpointd(["fleet", "-c", config]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `the fleet cannot start: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
    );
  });

  test("an address that the machine lacks is a problem of each site", async () => {
    const fleet = await aFleetOfOne();
    const auth = { hmac: { secret: { file: "webhook-secret" } } };
    const config = fleet.configure("missing", { webhook: { listen: "192.0.2.1:8090", auth } });
    const worker = await fleet.start(config);
    const problems = async (): Promise<readonly { kind: string; message: string }[]> => {
      const { status, text } = await worker.get("/sites/north/api/v1/status");
      return status === 200 ? JSON.parse(text).problems : [];
    };
    expect(
      await waitFor(async () => (await problems()).find(({ kind }) => kind === "webhook")?.message),
    ).toMatch(/^no webhook delivery can arrive: .*192\.0\.2\.1/);
  });

  test("a bug in the thread of the webhook ends the process", async () => {
    const fleet = await aFleetOfOne();
    const worker = await fleet.start(
      fleet.config,
      before(`
        import { isMainThread, BroadcastChannel } from "node:worker_threads";
        const bug = new BroadcastChannel("bug");
        if (isMainThread) process.on("SIGUSR2", () => bug.postMessage(null));
        else bug.onmessage = () => { throw new Error("a bug of the webhook"); };
        bug.unref();`),
    );
    expect(await worker.end("SIGUSR2")).toBe(1);
    expect(worker.output).toContain("a bug of the webhook");
  });
});
