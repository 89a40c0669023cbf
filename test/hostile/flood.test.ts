import { connect, type Socket } from "node:net";
import { Pool } from "undici";
import { describe, expect, test } from "vitest";

import { type Daemon, signature } from "../support/aDaemon.ts";
import { aSite, anEvent, type Site, startOf, WEBHOOK_SECRET } from "../support/aSite.ts";
import { mosquittoAvailable } from "../support/mosquitto.ts";
import { waitFor } from "../support/waitFor.ts";

const MINUTE = 60_000;
const MIB = 1024 * 1024;
const BIGGEST = "x".repeat(2 * MIB);
const JUNK = `[${'{"ID":"a","payload":1},'.repeat(9_000)}{}]`;

/** Otherwise V8 takes what memory the machine has before it looks for what can be thrown away. */
const AS_ON_A_GATEWAY = { NODE_OPTIONS: "--max-old-space-size=128" };

/** Everything that is thrown at the webhook until `stop`. */
class Flood implements AsyncDisposable {
  readonly told = new Map<number, number>();
  readonly #url: URL;
  readonly #pool: Pool;
  readonly #attackers: Promise<void>[] = [];
  readonly #sockets = new Set<Socket>();
  #over = false;

  constructor({ webhookUrl }: Daemon) {
    this.#url = new URL(webhookUrl);
    this.#pool = new Pool(this.#url.origin, { connections: 60 });
  }

  /** So many senders of this body, each one request after the other. */
  post(senders: number, body: string, proof: string): void {
    const headers = { "content-type": "application/json", "x-payload-signature": proof };
    const send = async (): Promise<void> => {
      while (!this.#over) {
        const answer = await this.#pool
          .request({ method: "POST", path: this.#url.pathname, headers, body })
          .catch(() => null);
        if (answer === null) continue;
        await answer.body.dump();
        this.told.set(answer.statusCode, (this.told.get(answer.statusCode) ?? 0) + 1);
      }
    };
    for (let sender = 0; sender < senders; sender += 1) this.#attackers.push(send());
  }

  /** So many bodies at a time that never end, on connections of their own. */
  pour(senders: number, proof: string): void {
    const head = `POST ${this.#url.pathname} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${proof}transfer-encoding: chunked\r\n\r\n`;
    const piece = Buffer.from(`10000\r\n${"x".repeat(0x10000)}\r\n`);
    const open = (): void => {
      if (this.#over) return;
      const socket = connect(Number(this.#url.port), this.#url.hostname);
      this.#sockets.add(socket);
      const pour = (): void => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on("drain", pour).on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        open();
      });
      socket.resume().write(head);
      pour();
    };
    for (let sender = 0; sender < senders; sender += 1) open();
  }

  /** Connections that say nothing. */
  sit(count: number): void {
    for (let sitter = 0; sitter < count; sitter += 1) {
      const socket = connect(Number(this.#url.port), this.#url.hostname).on("error", () => undefined);
      this.#sockets.add(socket);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true;
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#attackers);
    await this.#pool.destroy();
  }
}

/** Deliveries, a refusal and a command: what a daemon needs for its ordinary work is in memory after that. */
async function warmedUp(site: Site, daemon: Daemon): Promise<void> {
  await daemon.deliver(anEvent("EV-warm", { lastsMs: MINUTE, vehicles: ["veh-4"] }));
  await site.floor.nth("bay-04", 1);
  await daemon.deliver(JUNK);
  await daemon.deliver(BIGGEST);
}

describe.skipIf(!mosquittoAvailable || process.platform !== "linux")("a flood at the webhook", () => {
  test.each([
    ["signed", 202],
    ["unsigned", 401],
  ] as const)(
    "F60 F62: a %s flood with oversized and endless bodies neither fills the memory nor holds up what falls due",
    async (kind, answer) => {
      await using site = await aSite();
      await using daemon = await site.run(AS_ON_A_GATEWAY);
      await warmedUp(site, daemon);
      const before = daemon.memory;
      const due = anEvent("EV-due", { startIn: 3_000, lastsMs: MINUTE });
      await daemon.deliver(due);
      let most = 0;
      {
        await using flood = new Flood(daemon);
        const proof = (body: string) => (kind === "signed" ? signature(body, WEBHOOK_SECRET) : "AAAA");
        flood.sit(300);
        flood.post(40, "{}", proof("{}"));
        flood.post(10, BIGGEST, proof(BIGGEST));
        flood.post(2, JUNK, proof(JUNK));
        flood.pour(8, kind === "signed" ? "x-payload-signature: AAAA\r\n" : "");
        await waitFor(
          () => {
            most = Math.max(most, daemon.memory);
            return site.floor.sets("bay-01").length > 0;
          },
          { timeoutMs: 15_000, everyMs: 50 },
        );
        const first = await site.floor.nth("bay-01", 1);
        expect(first.at - startOf(due)).toBeLessThan(5_000);
        expect(flood.told.get(answer)).toBeGreaterThan(20);
        expect([...flood.told.keys()].filter((status) => ![answer, 413, 429].includes(status))).toEqual([]);
      }
      expect((most - before) / MIB).toBeLessThan(100);
      // F12
      expect(daemon.lines.length).toBeLessThan(200);
      expect((await daemon.deliver(due)).json).toMatchObject({ repeats: 1 });
    },
    60_000,
  );
});
