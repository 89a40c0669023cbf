import { createServer } from "node:net";

/** Ports below those that a system gives to a listener on port 0: another test would get it before its program listens. */
const LOWEST = 15_000;
const HIGHEST = 32_000;

/** A loopback port that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
  const server = createServer();
  const isFree = await new Promise<boolean>((listening) => {
    server.once("error", () => listening(false));
    server.listen(port, "127.0.0.1", () => listening(true));
  });
  if (!isFree) return freePort();
  await new Promise<void>((closed) => server.close(() => closed()));
  return port;
}
