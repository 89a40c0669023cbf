import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { request } from "undici";

/** One request and its answer, as they passed. */
export interface Exchange {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly status: number;
  readonly answer: string;
}

/** Passes HTTP requests on as they are, and keeps what passed. */
export class RecordingProxy implements AsyncDisposable {
  readonly exchanges: Exchange[] = [];
  readonly #server: Server;
  readonly #target: string;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((asked, answer) => {
      void this.#pass(asked, answer).catch((error: unknown) => answer.destroy(error as Error));
    });
  }

  /** In front of a server, e.g. `http://127.0.0.1:8090`. */
  static async before(target: string): Promise<RecordingProxy> {
    const proxy = new RecordingProxy(target);
    await new Promise<void>((listening) => proxy.#server.listen(0, "127.0.0.1", listening));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #pass(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = "GET", url: path = "/" } = asked;
    const { host: _, connection: __, "transfer-encoding": ___, ...others } = asked.headers;
    const headers = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, String(value)]));
    const body = await buffer(asked);
    const given = await request(`${this.#target}${path}`, {
      method: method === "POST" ? "POST" : "GET",
      headers,
      body: body.length === 0 ? null : body,
    });
    const text = await given.body.text();
    this.exchanges.push({
      method,
      path,
      headers,
      body: body.toString(),
      status: given.statusCode,
      answer: text,
    });
    const { "transfer-encoding": ____, connection: _____, ...answered } = given.headers;
    answer.writeHead(given.statusCode, answered).end(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((closed) => this.#server.close(() => closed()));
  }
}
