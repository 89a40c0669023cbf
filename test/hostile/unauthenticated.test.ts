import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";

import type { Daemon } from "../support/aDaemon.ts";
import { anEvent, aSite, startOf } from "../support/aSite.ts";
import { memoryGroup } from "../support/memoryGroup.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const SECOND = 1000;
const MIB = 1024 * 1024;
/** As the unit sets it. */
const MEMORY_MAX = 512 * MIB;
/** Of the right form, and of no known secret. */
const FORGED = `x-payload-signature: ${"A".repeat(43)}=\r\n`;

const head = (fields: string): string =>
  `POST /webhooks/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${fields}\r\n`;

/** Connections of one attacker: each is opened again as soon as it is closed. */
class Attack implements Disposable {
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #over = false;
  opened = 0;

  constructor({ webhookUrl }: Daemon) {
    this.#port = Number(new URL(webhookUrl).port);
  }

  connections(count: number, onConnect: (socket: Socket) => void): void {
    const open = (): void => {
      if (this.#over) return;
      this.opened += 1;
      const socket = connect(this.#port, "127.0.0.1", () => onConnect(socket));
      this.#sockets.add(socket);
      socket.resume().on("error", () => undefined);
      socket.once("close", () => {
        this.#sockets.delete(socket);
        setImmediate(open);
      });
    };
    for (let number = 0; number < count; number += 1) open();
  }

  get open(): readonly Socket[] {
    return [...this.#sockets];
  }

  [Symbol.dispose](): void {
    this.#over = true;
    for (const socket of this.#sockets) socket.destroy();
  }
}

describe.skipIf(!mosquittoAvailable || process.platform !== "linux")(
  "senders without a signature of ours",
  () => {
    test("256 bodies of 1 MiB less one byte leave the daemon alive under the unit's memory limit, and let the partner in", async () => {
      using group = memoryGroup(`bodies-${process.pid}`, MEMORY_MAX);
      await using site = await aSite();
      await using daemon = await site.run({}, group?.within);
      using attack = new Attack(daemon);
      const most = "x".repeat(MIB - 1);
      attack.connections(256, (socket) => {
        socket.write(head(`${FORGED}content-length: ${MIB}\r\n`));
        socket.write(most);
      });
      let peak = 0;
      for (let number = 0; number < 15; number += 1) {
        const event = anEvent(`EV-${number}`, { startIn: 3600 * SECOND, lastsMs: SECOND });
        expect((await daemon.deliver(event)).status).toBe(202);
        peak = Math.max(peak, daemon.memory);
        await sleep(100);
      }
      expect(attack.opened).toBeGreaterThan(256);
      expect(group?.killed() ?? false).toBe(false);
      // Three quarters of the limit. What the daemon needs without an attack differs with what it has loaded.
      expect(peak).toBeLessThan(0.75 * MEMORY_MAX);
      const { webhook } = await daemon.view<{ webhook: { refused: Record<string, { count: number }> } }>(
        "/api/v1/status",
      );
      expect(Object.keys(webhook.refused)).toContain("bodyDropped");
    });

    test.each([
      ["unsigned posts", head("content-length: 2\r\n") + "{}"],
      ["forged posts", head(`${FORGED}content-length: 2\r\n`) + "{}"],
      ["echoes", "GET /webhooks/events?echo=a HTTP/1.1\r\nhost: x\r\n\r\n"],
    ])(
      "pipelined %s at 4 MB/s on 16 connections delay neither a start nor its release",
      async (_what, request) => {
        await using site = await aSite();
        await using daemon = await site.run();
        const packet = Buffer.from(request.repeat(Math.ceil((64 * 1024) / request.length)));
        const due = anEvent("EV-due", { startIn: 2 * SECOND, lastsMs: 4 * SECOND });
        await daemon.deliver(due);
        using attack = new Attack(daemon);
        attack.connections(16, () => undefined);
        let turn = 0;
        const flood = setInterval(() => {
          // 64 KiB each 16 ms are 4 MB/s.
          const open = attack.open.filter(({ readyState }) => readyState === "open");
          open[(turn += 1) % open.length]?.write(packet);
        }, 16);
        try {
          const start = await site.floor.nth("bay-01", 1, 20 * SECOND);
          const release = await site.floor.nth("bay-01", 2, 20 * SECOND);
          expect(start.set.kind).toBe("current");
          expect(start.at - startOf(due)).toBeLessThan(SECOND);
          expect(release.at - startOf(due) - 4 * SECOND).toBeLessThan(SECOND);
          expect((await daemon.deliver(due)).json).toMatchObject({ repeats: 1 });
        } finally {
          clearInterval(flood);
        }
        const { webhook } = await daemon.view<{ webhook: { refused: Record<string, { count: number }> } }>(
          "/api/v1/status",
        );
        expect(webhook.refused["pipelined"]?.count).toBeGreaterThan(20);
        await waitFor(() => daemon.lines.length < 300);
      },
    );
  },
);
