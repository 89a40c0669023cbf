import type { Writable } from "node:stream";

import type { AuditRow, Json } from "../../domain/audit.ts";
import { iso } from "../../domain/units.ts";

/** Media type of server-sent events. */
export const EVENT_STREAM = "text/event-stream";

/** Kinds of events on the stream, beside `reset`. */
type StreamKind = "status" | "charger" | "vehicle" | "event" | "hold" | "alarm" | "audit";

/** An object that changed, as its list shows it. */
export interface LiveObject {
  readonly kind: StreamKind;
  /** Key of the object within its kind. */
  readonly key: string;
  readonly value: Json;
}

/** The site as the stream sees it. */
export interface LiveSource {
  /** True: changes are collected from now on. */
  readonly collect: (isOn: boolean) => void;
  /** Objects that changed since the last call, each as it is now, at most `most`. */
  readonly take: (most: number) => readonly LiveObject[];
  /** Number of this run. A position in the stream of another run cannot be resumed. */
  readonly epoch: number;
}

/** Ms between two rounds: an object is sent at most ten times a second. */
const ROUND_MS = 100;
const HEARTBEAT_MS = 15_000;
/** Objects that one round builds. More would stall the event loop. */
const MAX_BUILT = 200;
/** Time for which changes are collected after the last client left: it may come back. */
const LINGER_MS = 60_000;
/** A client that reads nothing for this time is disconnected. */
const MAX_BLOCKED_MS = 60_000;
/** Rows of the record that are kept for clients that fall behind or come back. */
const MAX_ROWS = 1000;
export const MAX_CLIENTS = 100;
/** Bytes that one write hands to a connection, more or less. */
const CHUNK = 64 * 1024;
/** Replaced frames that stay in the list until it is swept. */
const MAX_STALE = 1000;

interface Frame {
  /** From 1, in the order of the changes. */
  readonly position: number;
  readonly bytes: Buffer;
  /** A later frame of the same object replaces it. */
  isStale: boolean;
}

/** Answer to a client. */
type Connection = Pick<Writable, "write" | "end" | "destroy" | "on" | "writableEnded" | "destroyed">;

interface Client {
  readonly response: Connection;
  readonly mayStay: () => boolean;
  /** Position of the last frame that was handed to the connection. */
  cursor: number;
  /** Round in which the connection accepted no more. Null: it accepts more. */
  blockedAt: number | null;
}

/**
 * Server-sent events for many clients.
 *
 * The latest frame of each object is kept, in the order of the changes, and each client has a position in that order.
 * A client that reads slowly gets fewer states of an object, and never an old one after a new one. Nothing queues
 * for it. Only the newest rows of the record are kept: a client that falls behind them gets `reset`, and loads the
 * lists again.
 */
export class LiveStream implements Disposable {
  /** Null: the site is starting, and no client is let in. */
  #source: LiveSource | null = null;
  readonly #clients = new Set<Client>();
  readonly #latest = new Map<string, Frame>();
  /** In the order of their positions. */
  #frames: Frame[] = [];
  #stale = 0;
  readonly #rows: string[] = [];
  #position = 0;
  /** A client whose cursor is below has missed a frame that is no longer kept. */
  #floor = 0;
  /** Position at the end of the last round. */
  #sentUpTo = 0;
  #round = 0;
  #timer: NodeJS.Timeout | null = null;
  /** Round in which the last client left. */
  #emptySince = 0;

  /** Reads the changes of this site. */
  follow(source: LiveSource): this {
    this.#source = source;
    return this;
  }

  /** Frames in memory, the replaced ones included. */
  get kept(): number {
    return this.#frames.length;
  }

  /** Adds rows of the record, as its list shows them. */
  addRows(rows: readonly AuditRow[]): void {
    if (this.#timer === null) return;
    for (const row of rows) {
      // Acknowledgements may share a row, and its number.
      const name = `audit ${row.seq} ${row.command}`;
      this.#put("audit", name, { ...row, at: iso(row.at) });
      this.#rows.push(name);
    }
    for (const name of this.#rows.splice(0, Math.max(0, this.#rows.length - MAX_ROWS))) {
      this.#floor = Math.max(this.#floor, this.#latest.get(name)?.position ?? 0);
      this.#forget(name);
    }
  }

  get isFull(): boolean {
    return this.#clients.size >= MAX_CLIENTS;
  }

  /** `lastEventId` null: a client without a past, which gets `reset` first. `mayStay` is asked at each heartbeat. */
  join(response: Connection, lastEventId: string | null, mayStay: () => boolean): void {
    this.#start();
    const resumed = this.#resumedAt(lastEventId);
    const client: Client = { response, mayStay, cursor: resumed ?? this.#position, blockedAt: null };
    this.#clients.add(client);
    response.on("close", () => {
      this.#clients.delete(client);
      this.#emptySince = this.#round;
    });
    response.on("drain", () => {
      client.blockedAt = null;
      this.#feed(client, null);
    });
    if (resumed === null) this.#reset(client, lastEventId === null ? "new" : "position unknown");
    else this.#feed(client, null);
  }

  [Symbol.dispose](): void {
    this.#stop();
    for (const { response } of this.#clients) response.end();
  }

  /** Present position, as clients send it back in Last-Event-ID. */
  get #id(): string {
    return `${this.#source?.epoch ?? 0}-${this.#position}`;
  }

  #start(): void {
    if (this.#timer !== null) return;
    // No client of the time before can resume, because nothing was collected since.
    this.#floor = this.#position += 1;
    this.#sentUpTo = this.#position;
    this.#emptySince = this.#round;
    this.#source?.collect(true);
    this.#timer = setInterval(() => this.#next(), ROUND_MS);
    this.#timer.unref();
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#source?.collect(false);
    this.#latest.clear();
    this.#frames = [];
    this.#stale = 0;
    this.#rows.length = 0;
  }

  /** Null: the position is of another run, or frames after it are no longer kept. */
  #resumedAt(lastEventId: string | null): number | null {
    const [, epoch, digits] = /^(\d{1,15})-(\d{1,15})$/.exec(lastEventId ?? "") ?? [];
    const position = Number(digits);
    if (Number(epoch) !== this.#source?.epoch) return null;
    return position >= this.#floor && position <= this.#position ? position : null;
  }

  #next(): void {
    this.#round += 1;
    if (this.#clients.size === 0 && (this.#round - this.#emptySince) * ROUND_MS >= LINGER_MS)
      return this.#stop();
    for (const { kind, key, value } of this.#source?.take(MAX_BUILT) ?? [])
      this.#put(kind, `${kind} ${key}`, value);
    const before = this.#sentUpTo;
    this.#sentUpTo = this.#position;
    const fresh = this.#position === before ? null : this.#bytesAfter(before);
    const isHeartbeat = this.#round % (HEARTBEAT_MS / ROUND_MS) === 0;
    for (const client of this.#clients) {
      if (isHeartbeat) this.#beat(client);
      // Clients that are up to date share the bytes of this round.
      this.#feed(client, client.cursor === before ? fresh : null);
    }
  }

  #put(kind: StreamKind, name: string, value: Json): void {
    this.#forget(name);
    this.#position += 1;
    const bytes = Buffer.from(`id: ${this.#id}\nevent: ${kind}\ndata: ${JSON.stringify(value)}\n\n`);
    const frame = { position: this.#position, bytes, isStale: false };
    this.#latest.set(name, frame);
    this.#frames.push(frame);
    if (this.#stale <= this.#latest.size + MAX_STALE) return;
    this.#frames = this.#frames.filter(({ isStale }) => !isStale);
    this.#stale = 0;
  }

  #forget(name: string): void {
    const frame = this.#latest.get(name);
    if (frame === undefined) return;
    frame.isStale = true;
    this.#stale += 1;
    this.#latest.delete(name);
  }

  /** Index of the first frame after a position. */
  #indexAfter(position: number): number {
    let [low, high] = [0, this.#frames.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#frames[middle]?.position ?? Infinity) > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #bytesAfter(position: number): Buffer {
    const frames = this.#frames.slice(this.#indexAfter(position)).filter(({ isStale }) => !isStale);
    return Buffer.concat(frames.map(({ bytes }) => bytes));
  }

  /** Hands a client the frames after its cursor, until its connection accepts no more. `shared`: all of them. */
  #feed(client: Client, shared: Buffer | null): void {
    if (client.blockedAt !== null || client.cursor === this.#position) return;
    if (client.cursor < this.#floor) return this.#reset(client, "fell behind");
    if (shared !== null) {
      client.cursor = this.#position;
      return this.#write(client, shared);
    }
    let chunk: Buffer[] = [];
    let size = 0;
    for (let index = this.#indexAfter(client.cursor); index < this.#frames.length; index += 1) {
      const frame = this.#frames[index];
      if (frame === undefined || frame.isStale) continue;
      chunk.push(frame.bytes);
      size += frame.bytes.length;
      client.cursor = frame.position;
      if (size < CHUNK) continue;
      this.#write(client, Buffer.concat(chunk));
      if (client.blockedAt !== null) return;
      [chunk, size] = [[], 0];
    }
    client.cursor = this.#position;
    if (size > 0) this.#write(client, Buffer.concat(chunk));
  }

  #reset(client: Client, because: string): void {
    client.cursor = this.#position;
    this.#write(client, `id: ${this.#id}\nevent: reset\ndata: ${JSON.stringify({ because })}\n\n`);
  }

  #beat(client: Client): void {
    const { response, blockedAt, mayStay } = client;
    if (!mayStay()) response.end();
    else if (blockedAt === null) this.#write(client, ": alive\n\n");
    else if ((this.#round - blockedAt) * ROUND_MS >= MAX_BLOCKED_MS) response.destroy();
  }

  #write(client: Client, bytes: Buffer | string): void {
    if (client.response.writableEnded || client.response.destroyed) return;
    if (!client.response.write(bytes)) client.blockedAt = this.#round;
  }
}
