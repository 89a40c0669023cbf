import { createServer, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A reverse proxy that can hold the streams of the API back. Their connections stay open, and nothing arrives. */
export class HeldStream implements AsyncDisposable {
  readonly #server: Server;
  readonly #streams = new Set<ServerResponse>();
  readonly #held = new WeakSet<ServerResponse>();
  /** True: streams that are opened from now on are held back from their begin. */
  holdsNew = false;

  private constructor(target: URL) {
    this.#server = createServer((incoming, response) => {
      const { method, url, headers } = incoming;
      const isStream = url?.startsWith("/api/v1/stream") === true;
      if (isStream) this.#streams.add(response);
      if (isStream && this.holdsNew) this.#held.add(response);
      const options = { method, path: url, headers: { ...headers, host: target.host } };
      const onward = request(target, options, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        answer.on("data", (chunk: Buffer) => !this.#held.has(response) && response.write(chunk));
        answer.on("end", () => response.end());
      });
      onward.on("error", () => response.destroy());
      response.on("close", () => onward.destroy());
      incoming.pipe(onward);
    });
  }

  static async before(target: string): Promise<HeldStream> {
    const proxy = new HeldStream(new URL(target));
    await new Promise<void>((listening) => proxy.#server.listen(0, "127.0.0.1", listening));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Holds back the streams that are open now. */
  hold(): void {
    for (const response of this.#streams) this.#held.add(response);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}
