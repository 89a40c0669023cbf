import { createServer } from "node:net";

import { expect, onTestFinished, test, vi } from "vitest";

import { Binding, listenAt } from "../../src/platform/listener.ts";

const failing = (code: string): Error => Object.assign(new Error(`listen ${code}`), { code });

/** A listener whose addresses fail with these codes in turn, then are there. */
async function aBinding(...codes: readonly string[]) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const left = [...codes];
  const changes: (string | null)[] = [];
  const listen = vi.fn(async () => {
    const code = left.shift();
    if (code !== undefined) throw failing(code);
  });
  const binding = await Binding.open(listen, (fault) => changes.push(fault));
  return { binding, listen, changes };
}

test("a listener whose address the machine lacks at the start listens once it is there, and each reason is reported once", async () => {
  const { binding, listen, changes } = await aBinding("EADDRNOTAVAIL", "EADDRNOTAVAIL", "EADDRINUSE");
  expect(binding.fault).toBe("listen EADDRNOTAVAIL");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(changes).toEqual(["listen EADDRNOTAVAIL", "listen EADDRINUSE", null]);
  expect([binding.fault, listen.mock.calls.length]).toEqual([null, 4]);
});

test("an address that another program has at the start is an error", async () => {
  await expect(aBinding("EADDRINUSE")).rejects.toThrow("EADDRINUSE");
});

test("a missing address that is needed is an error", async () => {
  await expect(Binding.open(() => Promise.reject(failing("EADDRNOTAVAIL")), vi.fn(), true)).rejects.toThrow(
    "EADDRNOTAVAIL",
  );
});

test("a listener that was closed does not try its address again", async () => {
  const { binding, listen } = await aBinding("EADDRNOTAVAIL", "EADDRNOTAVAIL");
  binding[Symbol.dispose]();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(listen).toHaveBeenCalledTimes(1);
});

test("a server that failed at a missing address listens at the next attempt, and keeps no handler of the first", async () => {
  await using server = createServer();
  await expect(listenAt(server, { host: "192.0.2.1", port: 0 })).rejects.toThrow("EADDRNOTAVAIL");
  await listenAt(server, { host: "127.0.0.1", port: 0 });
  expect([server.listening, server.listenerCount("error")]).toEqual([true, 0]);
});
