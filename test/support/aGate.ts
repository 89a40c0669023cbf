import { connect, createServer, type Server, type Socket } from "node:net";

import { freePort } from "./freePort.ts";

/** `in`: from the client to the server. `out`: from the server to the client. */
export type Direction = "in" | "out";

/** One direction of a connection, and what waits there. */
interface Lane {
  readonly direction: Direction;
  readonly to: Socket;
  waiting: (() => void)[];
}

/** A door in front of a local port: shut, whoever was inside is thrown out and nobody gets in. */
export class Gate implements AsyncDisposable {
  readonly port: number;
  #behind: number;
  readonly #sockets = new Set<Socket>();
  readonly #lanes = new Set<Lane>();
  readonly #held = new Set<Direction>();
  #server: Server | null = null;

  private constructor(port: number, behind: number) {
    this.port = port;
    this.#behind = behind;
  }

  /** Shut at first. */
  static async before(behind: number): Promise<Gate> {
    return new Gate(await freePort(), behind);
  }

  async open(): Promise<void> {
    const server = createServer((inside) => {
      const outside = connect({ host: "127.0.0.1", port: this.#behind });
      this.#join("in", inside, outside);
      this.#join("out", outside, inside);
    });
    this.#server = server;
    await new Promise<void>((listening, failed) => {
      server.once("error", failed);
      server.listen(this.port, "127.0.0.1", listening);
    });
  }

  async shut(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    for (const socket of this.#sockets) socket.destroy();
    if (server !== null) await new Promise((closed) => server.close(closed));
  }

  /** Leads to another port from now on, as the address of a database does after a failover. */
  async lead(behind: number): Promise<void> {
    this.#behind = behind;
    await this.shut();
    await this.open();
  }

  /** Nothing passes in this direction, an end included, as where a network is cut one way. */
  hold(direction: Direction): void {
    this.#held.add(direction);
  }

  /** What was held arrives late, as TCP sends it again. */
  free(): void {
    this.#held.clear();
    for (const lane of this.#lanes) {
      const { waiting } = lane;
      lane.waiting = [];
      for (const step of waiting) step();
    }
  }

  #join(direction: Direction, from: Socket, to: Socket): void {
    const lane: Lane = { direction, to, waiting: [] };
    this.#lanes.add(lane);
    this.#sockets.add(from);
    const pass = (step: () => void): void => {
      if (this.#held.has(direction)) lane.waiting.push(step);
      else step();
    };
    from.on("error", () => undefined);
    from.on("data", (chunk) => pass(() => void (to.destroyed || to.write(chunk))));
    from.on("end", () => pass(() => void (to.destroyed || to.end())));
    from.on("close", () => {
      this.#sockets.delete(from);
      pass(() => {
        this.#lanes.delete(lane);
        to.destroy();
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.free();
    await this.shut();
  }
}
