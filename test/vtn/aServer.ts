import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { Writable } from "node:stream";
import { type Logger, pino } from "pino";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A real HTTP server on loopback that does what a test says, and remembers what it was asked. */
export interface AServer extends AsyncDisposable {
  readonly origin: string;
  readonly seen: Seen[];
  answer: (response: ServerResponse, seen: Seen) => void;
}

export async function aServer(answer: AServer["answer"]): Promise<AServer> {
  const seen: Seen[] = [];
  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString() };
      seen.push(one);
      server.answer(response, one);
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const address = http.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const server: AServer = {
    origin: `http://127.0.0.1:${address.port}`,
    seen,
    answer,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  return server;
}

/** Answers with JSON. */
export const json =
  (value: unknown, status = 200, headers: Record<string, string> = {}): AServer["answer"] =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
    response.end(typeof value === "string" ? value : JSON.stringify(value));
  };

/** Sends a byte now and then, for ever: no single read ever takes long. */
export const drip: AServer["answer"] = (response) => {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" "), 20);
  response.on("close", () => clearInterval(timer));
};

/** A real logger that keeps what it would have written. */
export function aLog(): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  return { log: pino({ level: "trace" }, sink), lines };
}
