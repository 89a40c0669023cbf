import { createServer, type Server } from "node:http";
import { describe, expect, test } from "vitest";

import type { Daemon } from "../support/aDaemon.ts";
import { aSite, type Site } from "../support/aSite.ts";
import { memoryGroup, type MemoryGroup } from "../support/memoryGroup.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const MIB = 1024 * 1024;
/** As the unit sets it. */
const MEMORY_MAX = 512 * MIB;
/** As bin/setpointd starts the runtime. */
const FLAGS =
  "--max-semi-space-size=16 --max-old-space-size-percentage=60 --external-memory-accounted-in-global-limit --disable-sigusr1";
const MINUTE = 60_000;
const EVENTS = 88_088;
const TOMORROW = new Date(Date.now() + 86_400_000).toISOString().slice(0, 19);

/** The daemon's command line within the group, with the launcher's flags. */
const asLaunched = ({ within }: MemoryGroup): readonly string[] => [
  ...within,
  "sh",
  "-c",
  `runtime="$1"; shift; exec "$runtime" ${FLAGS} "$@"`,
  "sh",
];

/** The smallest events that ask something of a vehicle. */
const events = (count: number): string => {
  const entries = Array.from(
    { length: count },
    (_, number) =>
      `{"ID":"e${number}","intervalPeriod":{"start":"${TOMORROW}","duration":"PT1H"},"payload":{"payloadType":"CurrentLevel","targetCurrent":8}}`,
  );
  return `[${entries.join(",")}]`;
};

/** A partner that answers with one text. */
class TextPartner implements AsyncDisposable {
  lists = 0;
  list: string;
  readonly #server: Server;

  private constructor(server: Server, list: string) {
    this.#server = server;
    this.list = list;
  }

  static async start(list: string): Promise<TextPartner> {
    const server = createServer((request, response) => {
      response.setHeader("content-type", "application/json");
      request.resume().on("end", () => {
        if (request.url === "/token") return response.end('{"access_token":"fine","expires_in":3600}');
        partner.lists += 1;
        return response.end(partner.list);
      });
    });
    const partner = new TextPartner(server, list);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return partner;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return `http://127.0.0.1:${address.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const siteOf = (partner: TextPartner): Promise<Site> =>
  aSite({
    over: {
      vtn: {
        baseUrl: partner.url,
        tokenUrl: `${partner.url}/token`,
        clientId: "depot",
        clientSecret: { file: "client-secret" },
        pollEvery: "5s",
      },
    },
  });

/** Events in the record of deliveries, by what became of them. */
async function taken(daemon: Daemon): Promise<{ readonly accepted: number; readonly repeats: number }> {
  const { text } = await daemon.get("/metrics");
  const count = (outcome: string): number =>
    Number(
      new RegExp(`^setpointd_deliveries_total\\{.*"list".*"${outcome}".*\\} (\\d+)$`, "m").exec(text)?.[1] ??
        0,
    );
  return { accepted: count("accepted"), repeats: count("repeats") };
}

describe.skipIf(!mosquittoAvailable || process.platform !== "linux")(
  "lists of 16 MiB under the unit's memory limit",
  () => {
    test(
      "88,088 events are ingested, the daemon starts again on them, and the same list is a repeat",
      async (context) => {
        using group = memoryGroup(`list-${process.pid}`, MEMORY_MAX);
        if (group === null) return context.skip("limits of memory need root and a group of our own");
        await using partner = await TextPartner.start(events(EVENTS));
        await using site = await siteOf(partner);
        {
          await using daemon = await site.start({}, asLaunched(group), 2 * MINUTE);
          await waitFor(async () => (await taken(daemon)).accepted === EVENTS, {
            timeoutMs: 5 * MINUTE,
            everyMs: 1_000,
          });
          expect(await daemon.end("SIGTERM")).toBe(0);
        }
        await using again = await site.start({}, asLaunched(group), 2 * MINUTE);
        await waitFor(async () => (await taken(again)).repeats >= EVENTS, {
          timeoutMs: 5 * MINUTE,
          everyMs: 1_000,
        });
        expect((await taken(again)).accepted).toBe(0);
        expect(group.killed()).toBe(false);
      },
      15 * MINUTE,
    );

    test.each([
      ["millions of nothings", `[${"{},".repeat(5_592_404)}{}]`],
      ["an event with millions of targets", `[{"ID":"e","targets":[${"{},".repeat(5_592_380)}{}]}]`],
    ])(
      "a list of %s is refused while deliveries are answered",
      async (_what, list) => {
        using group = memoryGroup(`refused-${process.pid}`, MEMORY_MAX);
        await using partner = await TextPartner.start(list);
        await using site = await siteOf(partner);
        await using daemon = await site.start({}, group === null ? [] : asLaunched(group), MINUTE);
        await waitFor(() => daemon.errors !== "" || daemon.line("the partner cannot be asked"), {
          timeoutMs: MINUTE,
        });
        expect((await daemon.deliver([])).status).toBe(202);
        expect(daemon.peakMemory).toBeLessThan(MEMORY_MAX);
        expect(group?.killed() ?? false).toBe(false);
      },
      3 * MINUTE,
    );
  },
);
