import { describe, expect, test } from "vitest";

import { anEvent, aSite } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";

const SECOND = 1000;
/** A bug that a signal brings out, in code that the program does not know of. */
const bug = (code: string): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`process.on("SIGUSR2",()=>{${code}})`)}`,
});

describe.skipIf(!mosquittoAvailable)("an uncaught error", () => {
  test.each([
    ["an exception", 'throw new Error("out of the blue")'],
    ["a promise", 'Promise.reject(new Error("out of the blue"))'],
  ])(
    "F15: an uncaught %s is logged and ends the process with 1, and the next start continues its work",
    async (_what, code) => {
      await using site = await aSite();
      await using broken = await site.run(bug(code));
      await broken.deliver(site.partner.put(anEvent("EV-1", { lastsMs: 60 * SECOND })));
      const before = await site.floor.nth("bay-01", 1);
      broken.signal("SIGUSR2");
      expect(await broken.end("SIGCONT")).toBe(1);
      const line = broken.line("a bug ends this process");
      expect(line).toMatchObject({ level: 60, err: { message: "out of the blue" } });
      await using daemon = await site.run();
      expect((await site.floor.nth("bay-01", 2)).set.id).toBe(before.set.id);
      expect(daemon.errors).toBe("");
    },
  );
});
