import { connect, createServer, type Server, type Socket } from "node:net";

import { freePort } from "./freePort.ts";

/** A door in front of a local port: shut, whoever was inside is thrown out and nobody gets in. */
export class Gate implements AsyncDisposable {
  readonly port: number;
  readonly #behind: number;
  readonly #sockets = new Set<Socket>();
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
      for (const [socket, other] of [
        [inside, outside],
        [outside, inside],
      ] as const) {
        this.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shut();
  }
}
