import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { Aedes } from "aedes";
import type { Logger } from "pino";

export interface EmbeddedBrokerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Whoever connects has to know these; null: anyone may. */
  readonly credentials: { readonly username: string; readonly password: () => string } | null;
  readonly log: Logger;
}

/**
 * A broker inside this process, for trying things out and for small sites: MQTT 3.1.1 only, one user name for all,
 * nothing kept over a restart. Configuration keeps it on loopback unless told otherwise.
 */
export class EmbeddedBroker implements AsyncDisposable {
  readonly #aedes: Aedes;
  readonly #server: Server;
  readonly #sockets: ReadonlySet<Socket>;
  readonly port: number;

  private constructor(aedes: Aedes, server: Server, sockets: ReadonlySet<Socket>, port: number) {
    this.#aedes = aedes;
    this.#server = server;
    this.#sockets = sockets;
    this.port = port;
  }

  /** Listening once it resolves; rejects where the address is taken, for then the program cannot start. */
  static async listen({ host, port, credentials, log }: EmbeddedBrokerOptions): Promise<EmbeddedBroker> {
    const aedes = await Aedes.createBroker();
    if (credentials !== null) {
      aedes.authenticate = (_client, username, password, done) => {
        const known = username === credentials.username && isSame(password, credentials.password());
        done(null, known);
      };
    }
    const complain = (client: { readonly id: string | null } | null, error: Error) =>
      log.debug({ client: client?.id ?? null, reason: error.message }, "embedded broker: client trouble");
    aedes.on("clientError", complain);
    aedes.on("connectionError", complain);
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      aedes.handle(socket);
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen(port, host, resolve);
    try {
      await promise;
    } catch (error) {
      aedes.close();
      throw error;
    }
    server.off("error", reject);
    server.on("error", (error) => log.error({ reason: error.message }, "embedded broker: listener trouble"));
    const bound = (server.address() as AddressInfo).port;
    log.info({ host, port: bound }, "embedded broker is listening");
    return new EmbeddedBroker(aedes, server, sockets, bound);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#aedes.close();
    // Who connected and never said CONNECT is unknown to aedes, and would hold the listener open.
    for (const socket of this.#sockets) socket.destroy();
    await promise;
  }
}

/** Takes the same time whatever the difference. */
const isSame = (given: Buffer | undefined, expected: string): boolean =>
  timingSafeEqual(digest(given ?? ""), digest(expected));

const digest = (text: Buffer | string): Buffer => createHash("sha256").update(text).digest();
