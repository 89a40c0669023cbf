import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What stands between two parties, for every connection of now and later. */
export type Fault =
  | { readonly kind: "none" }
  /** Each piece takes this long, in each direction. */
  | { readonly kind: "latency"; readonly ms: number }
  /** Connections stand, and nothing ever arrives: a pulled cable, a dropped route. */
  | { readonly kind: "halfOpen" }
  | { readonly kind: "slow"; readonly bytesPerSecond: number }
  /** Each connection is cut once so many bytes have passed from the caller, in the middle of a packet perhaps. */
  | { readonly kind: "limited"; readonly bytes: number }
  /** Whoever calls is hung up on with a reset. */
  | { readonly kind: "refuse" };

interface Pair {
  readonly caller: Socket;
  readonly callee: Socket;
  passed: number;
}

/** A TCP proxy on loopback that misbehaves as told. */
export class FaultProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #target: number;
  readonly #pairs = new Set<Pair>();
  fault: Fault = { kind: "none" };
  /** Connections that were ever asked for. */
  calls = 0;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((caller) => this.#accept(caller));
  }

  /** In front of whoever listens on this port of loopback. */
  static async before(target: number): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await new Promise<void>((listening) => proxy.#server.listen(0, "127.0.0.1", listening));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends all connections of now in order. */
  cut(): void {
    for (const { caller, callee } of this.#pairs) {
      caller.end();
      callee.end();
    }
  }

  /** Ends all connections of now without a word. */
  reset(): void {
    for (const { caller, callee } of this.#pairs) {
      caller.resetAndDestroy();
      callee.destroy();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.reset();
    await closed;
  }

  #accept(caller: Socket): void {
    this.calls += 1;
    if (this.fault.kind === "refuse") {
      caller.on("error", () => undefined);
      caller.resetAndDestroy();
      return;
    }
    const pair = { caller, callee: connect(this.#target, "127.0.0.1"), passed: 0 };
    this.#pairs.add(pair);
    this.#carry(caller, pair.callee, pair);
    this.#carry(pair.callee, caller, pair);
  }

  #carry(from: Socket, to: Socket, pair: Pair): void {
    from.on("error", () => to.destroy());
    from.on("close", () => {
      this.#pairs.delete(pair);
      // Who cannot be heard cannot say goodbye either: the other side is left standing.
      if (this.fault.kind !== "halfOpen") to.destroy();
    });
    from.on("data", (chunk: Buffer) => {
      from.pause();
      void this.#pass(chunk, from, to, pair).then(() => from.resume());
    });
  }

  async #pass(chunk: Buffer, from: Socket, to: Socket, pair: Pair): Promise<void> {
    const { fault } = this;
    switch (fault.kind) {
      case "halfOpen":
      case "refuse":
        return;
      case "latency":
        await sleep(fault.ms);
        break;
      case "slow":
        await sleep((chunk.length / fault.bytesPerSecond) * 1000);
        break;
      case "limited":
        if (from === pair.caller) pair.passed += chunk.length;
        if (pair.passed > fault.bytes) {
          to.write(chunk.subarray(0, Math.max(0, chunk.length - (pair.passed - fault.bytes))));
          to.end();
          from.resetAndDestroy();
          return;
        }
        break;
      case "none":
        break;
    }
    if (!to.destroyed) to.write(chunk);
  }
}
