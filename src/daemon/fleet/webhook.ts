import { once } from "node:events";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { type Level, levels, type Logger } from "pino";

import type { Fleet } from "../../config/fleet.ts";
import type { EventId } from "../../domain/units.ts";
import type { RefusalReason } from "../../vtn/refusals.ts";
import type { ListenerTls } from "../../vtn/webhookServer.ts";

/** Start data of the thread of the webhook. Both threads read the configuration from the same text. */
export interface ThreadData extends Pick<Fleet, "text" | "place"> {
  /** Name of this process. */
  readonly process: string;
  readonly logLevel: string;
}

/** A message of the thread. */
export type FromThread =
  | { readonly kind: "up"; readonly port: number }
  /** The address cannot be bound. */
  | { readonly kind: "failed"; readonly message: string; readonly syscall: string }
  /** The machine lacks the address, which is awaited. Null: it has it now. */
  | { readonly kind: "unbound"; readonly fault: string | null }
  /** A delivery is stored for its sites. */
  | { readonly kind: "stored" }
  /** Only the ids of these events arrived. */
  | { readonly kind: "fetch"; readonly ids: readonly EventId[] }
  | { readonly kind: "refused"; readonly reason: RefusalReason }
  /** A line of the log, as pino writes it. */
  | { readonly kind: "log"; readonly line: string };

/** A message to the thread. */
export type ToThread =
  /** The thread answers open requests, accepts no new ones, and ends. */
  | { readonly kind: "stop" }
  /** New connections get this certificate. */
  | { readonly kind: "renew"; readonly tls: ListenerTls };

interface Handlers {
  readonly onStored: () => void;
  readonly fetch: (ids: readonly EventId[]) => void;
  readonly onUnbound: (fault: string | null) => void;
  readonly onRefused: (reason: RefusalReason) => void;
}

/** Young generation of the thread, MB. That of the process is for thousands of sites. */
const YOUNG_MB = 48;

/**
 * The webhook of a fleet, in a thread of its own. Thousands of sites keep the event loop of the process busy for tenths of
 * a second, and stop it for seconds while their heap is collected. The partner waits for neither.
 */
export class FleetWebhook implements AsyncDisposable {
  readonly port: number;
  readonly #worker: Worker;
  readonly #ended: Promise<unknown>;
  #isStopping = false;

  private constructor(worker: Worker, port: number) {
    this.port = port;
    this.#worker = worker;
    this.#ended = once(worker, "exit").then(() => {
      if (!this.#isStopping) throw new Error("the thread of the webhook ended");
    });
  }

  /** Rejects if the address cannot be bound, or if the thread cannot start. A bug of the thread ends the process. */
  static async start(data: ThreadData, log: Logger, handlers: Handlers): Promise<FleetWebhook> {
    // In a bundle both files lie beside each other too.
    const file = new URL(`./webhookThread${extname(import.meta.url)}`, import.meta.url);
    const worker = new Worker(file, {
      workerData: data,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    const up = Promise.withResolvers<number>();
    worker.on("error", up.reject);
    worker.on("message", (message: FromThread) => {
      switch (message.kind) {
        case "up":
          return up.resolve(message.port);
        case "unbound":
          return handlers.onUnbound(message.fault);
        case "failed":
          return up.reject(Object.assign(new Error(message.message), { syscall: message.syscall }));
        case "stored":
          return handlers.onStored();
        case "fetch":
          return handlers.fetch(message.ids);
        case "refused":
          return handlers.onRefused(message.reason);
        case "log":
          return relay(log, message.line);
      }
    });
    const port = await up.promise;
    worker.on("error", (cause) => {
      throw new Error("the webhook failed", { cause });
    });
    return new FleetWebhook(worker, port);
  }

  /** New connections get this certificate. Null: the thread logs where it cannot be used. */
  renew(tls: ListenerTls): null {
    this.#post({ kind: "renew", tls });
    return null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    this.#post({ kind: "stop" });
    await this.#ended;
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}

function relay(log: Logger, line: string): void {
  const { level, msg, ...fields } = JSON.parse(line) as { readonly level: number; readonly msg: string };
  log[levels.labels[level] as Level](fields, msg);
}
