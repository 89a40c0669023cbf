import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";

import { cannotListen } from "../../../src/cli/commands/check.ts";
import { configured } from "../../support/aConfiguration.ts";

/** What Node says when that address is listened on. */
async function refusal(host: string, port: number): Promise<Error> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", resolve);
    server.listen(port, host, () => server.close(() => reject(new Error("it can be listened on"))));
  });
}

const taken = createServer();
beforeAll(() => new Promise<void>((up) => taken.listen(0, "127.0.0.1", up)));
afterAll(() => void taken.close());
const portOf = () => (taken.address() as AddressInfo).port;

test("a port that another program has is named by its key, with what to do, at each of the listeners", async () => {
  const listen = `127.0.0.1:${portOf()}`;
  const refused = await refusal("127.0.0.1", portOf());
  const inUse = `${listen} is in use by another program: stop that, or choose another port`;
  const embedded = { url: undefined, embedded: { listen } };
  for (const [key, over] of [
    ["operator.listen", { operator: { listen } }],
    ["webhook.listen", { webhook: { listen } }],
    ["mqtt.embedded.listen", { mqtt: embedded }],
    ["brokers.yard.embedded.listen", { brokers: { yard: embedded } }],
  ] as const)
    expect(cannotListen(refused, configured(over))).toBe(`${key}: ${inUse}`);
});

test("an address of another machine, and a name that no resolver knows, each have their own message", async () => {
  // TEST-NET-1: no machine has it.
  const foreign = await refusal("192.0.2.1", 18_080);
  const far = configured({
    operator: { listen: "192.0.2.1:18080", access: "login", trustProxy: ["10.0.0.1"] },
    webhook: { listen: "127.0.0.1:18081" },
  });
  expect(cannotListen(foreign, far)).toBe(
    "operator.listen: 192.0.2.1:18080 is no address of this machine: name one that it has, or 0.0.0.0 for all of them",
  );
  // As Node says it; what looks names up here may say something else, or nothing for long.
  const nameless = Object.assign(new Error("getaddrinfo ENOTFOUND nobody.invalid"), {
    code: "ENOTFOUND",
    hostname: "nobody.invalid",
  });
  const named = configured({ webhook: { listen: "nobody.invalid:18080" } });
  expect(cannotListen(nameless, named)).toBe(
    "webhook.listen: nobody.invalid:18080 is a name that this machine does not know: name an address that it has",
  );
});

test("a port that needs a right is reported with the right, and an unknown error keeps its text", () => {
  // As Node says it to whoever is not root; the tests may be.
  const denied = Object.assign(new Error("listen EACCES: permission denied ::1:80"), {
    code: "EACCES",
    syscall: "listen",
    address: "::1",
    port: 80,
  });
  expect(cannotListen(denied, configured({ operator: { listen: "[::1]:80" } }))).toBe(
    "operator.listen: [::1]:80 needs a right, as every port under 1024 does: choose a higher port, or give setpointd CAP_NET_BIND_SERVICE",
  );
  expect(cannotListen(denied, configured({}))).toBe("cannot listen: listen EACCES: permission denied ::1:80");
  const high = Object.assign(new Error("no"), { code: "EACCES", syscall: "listen", port: 8090 });
  expect(cannotListen(high, configured({ webhook: { listen: "127.0.0.1:8090" } }))).toBe(
    "webhook.listen: 127.0.0.1:8090 cannot be listened on (no)",
  );
});
