import { createServer } from "node:net";

import type { Surroundings } from "../app.ts";
import type { WebhookConfig } from "../config/webhook.ts";
import { ownListener } from "../vtn/ownListener.ts";
import type { LiveLines } from "./liveLines.ts";

/** The address of the webhook: asked for an echo where the daemon runs, else bound to see that it is free. */
export async function tryWebhook(
  webhook: WebhookConfig | null,
  isRunning: boolean,
  { now, randomBytes }: Surroundings,
  lines: LiveLines,
): Promise<void> {
  if (webhook === null) return lines.untried("webhook", "none is configured: events come by polling only");
  const { host, port } = webhook.listen;
  if (port === 0) return lines.untried("webhook", "webhook.listen has port 0, any free one");
  if (!isRunning) return tryAddress(host, port, webhook.path, lines);
  await using listener = ownListener(webhook, now);
  const word = randomBytes(8).toString("hex");
  const answer = await listener.get(`?echo=${word}`);
  const echoed = answer.kind === "answered" && answer.body.toString("utf8") === word;
  if (echoed) lines.ok("webhook", `the running daemon answers an echo at ${listener.url}`);
  else if (answer.kind === "silent" && webhook.clientCa !== null)
    lines.untried("webhook", "the listener asks for a client certificate, which this verb has not");
  else
    lines.failed(
      "webhook",
      `${listener.url} ${answer.kind === "silent" ? `does not answer (${answer.reason})` : `answers ${answer.status}, without the echo`}`,
      "the listener of the running daemon: restart it after a change of webhook.listen, webhook.path or webhook.tls",
    );
}

async function tryAddress(host: string, port: number, path: string, lines: LiveLines): Promise<void> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<string | null>();
  server.once("error", (error) => resolve(error.message));
  server.listen(port, host, () => resolve(null));
  const fault = await promise;
  if (fault === null) {
    await new Promise((closed) => server.close(closed));
    lines.ok("webhook", `${host}:${port} is free, and setpointd will listen there (path ${path})`);
  } else
    lines.failed(
      "webhook",
      `${host}:${port} cannot be listened on: ${fault}`,
      "an address of this machine that no other program has (webhook.listen)",
    );
}
