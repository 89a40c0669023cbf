import { Client } from "pg";
import type { Logger } from "pino";

import type { DatabaseOptions } from "./database.ts";

/** Channel of announcements of deliveries, before the name of the schema. The payload is the site. */
export const CHANNEL = "setpointd_delivery_";

/** Interval of the checks whether the connection still answers, and of the tries to connect again, ms. */
const CHECK_MS = 5_000;

/**
 * Announcements of the database (LISTEN), on a connection of their own. A lost connection is made again. Until then,
 * and behind a pooler of connections, nothing is announced: readers look for deliveries often.
 */
export class Announcements implements Disposable {
  readonly #options: Pick<DatabaseOptions, "url" | "schema" | "patience">;
  readonly #onDelivery: (site: string) => void;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #client: Client | null = null;
  #isListening = false;
  #isChecking = false;
  #isDisposed = false;

  /** `onDelivery`: a delivery for this site waits. */
  constructor(
    options: Pick<DatabaseOptions, "url" | "schema" | "patience" | "log">,
    onDelivery: (site: string) => void,
  ) {
    this.#options = options;
    this.#onDelivery = onDelivery;
    this.#log = options.log;
    this.#timer = setInterval(() => void this.#check(), CHECK_MS);
    void this.#check();
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      this.#client ??= await this.#connected();
      if (this.#isDisposed) return this.#end();
      // A network that is cut drops no connection.
      await this.#client.query("SELECT 1");
      this.#isListening = true;
    } catch (error) {
      this.#lose(this.#client, error);
    }
    this.#isChecking = false;
  }

  async #connected(): Promise<Client> {
    const { url, schema, patience } = this.#options;
    const client = new Client({
      connectionString: url(),
      application_name: "setpointd announcements",
      connectionTimeoutMillis: patience,
      query_timeout: patience,
      keepAlive: true,
    });
    client.on("error", (error) => this.#lose(client, error));
    client.on("end", () => this.#lose(client, null));
    client.on("notification", ({ payload = "" }) => this.#onDelivery(payload));
    try {
      await client.connect();
      await client.query(`LISTEN "${CHANNEL}${schema}"`);
    } catch (error) {
      // A replica refuses LISTEN, for example. Each try would leave a connection.
      void client.end().catch(() => {});
      throw error;
    }
    return client;
  }

  /** `client`: that of the event, which may be an older one. */
  #lose(client: Client | null, error: unknown): void {
    if (client !== this.#client) return;
    if (this.#isListening)
      this.#log.warn(
        { reason: error instanceof Error ? error.message : "the connection ended" },
        "the database announces no deliveries now: they are looked for twice a second",
      );
    this.#isListening = false;
    this.#client = null;
    void client?.end().catch(() => {});
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#isDisposed = true;
    this.#end();
  }

  #end(): void {
    const client = this.#client;
    this.#client = null;
    this.#isListening = false;
    // No wait: the answer does not come where the network is cut.
    void client?.end().catch(() => {});
  }
}
