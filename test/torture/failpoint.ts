/**
 * Loaded before the daemon (`node --import`), in the tests only: ends it with SIGKILL right before or right after its
 * nth commit, publish of a command, PUBACK or 202, as the environment says: `SETPOINTD_KILL_AT=commit.before:3`.
 */
import { spawnSync } from "node:child_process";
import { writeSync } from "node:fs";
import { Socket } from "node:net";
import { DatabaseSync } from "node:sqlite";

type Place = "commit" | "publish" | "puback" | "answer";

const [point = "", nth = ""] = (process.env["SETPOINTD_KILL_AT"] ?? "").split(":");
let left = Number(nth);

/** Does not return where this is the moment: the signal comes before the system call does. */
function pass(place: Place, when: "before" | "after"): void {
  if (point !== `${place}.${when}`) return;
  left -= 1;
  if (left > 0) return;
  writeSync(2, `killed at ${point}\n`);
  // `process.kill` of the own process writes the compile cache first: on a busy machine it stood still for seconds, alive.
  spawnSync("sh", ["-c", `kill -KILL ${process.pid}`]);
}

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  if (sql !== "COMMIT") return exec.call(this, sql);
  pass("commit", "before");
  exec.call(this, sql);
  pass("commit", "after");
};

/** What a piece of outgoing traffic is: as one piece holds all that was written in one turn, the first thing that counts. */
function outgoing(bytes: Buffer): Place | null {
  if (bytes.subarray(0, 12).toString("latin1") === "HTTP/1.1 202") return "answer";
  const isMqttPublish = bytes.includes("/chargers/") && bytes.includes("/set");
  return isMqttPublish ? "publish" : null;
}

const MQTT_PUBACK = 0x40;

/** The layer below the public `write`: by then nothing is gathered any more, and what returns has left this process. */
interface Wire {
  _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void;
  _writev(chunks: readonly { chunk: Buffer | string; encoding: BufferEncoding }[], done: () => void): void;
  push(chunk: Buffer | null): boolean;
}
const wire = Socket.prototype as unknown as Wire;
const { _write, _writev, push } = wire;
const bytesOf = (chunk: Buffer | string, encoding: BufferEncoding): Buffer =>
  typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;

wire._write = function (this: Wire, chunk, encoding, done): void {
  const place = outgoing(bytesOf(chunk, encoding));
  if (place !== null) pass(place, "before");
  _write.call(this, chunk, encoding, done);
  if (place !== null) pass(place, "after");
};
wire._writev = function (this: Wire, chunks, done): void {
  const place = outgoing(Buffer.concat(chunks.map(({ chunk, encoding }) => bytesOf(chunk, encoding))));
  if (place !== null) pass(place, "before");
  _writev.call(this, chunks, done);
  if (place !== null) pass(place, "after");
};
wire.push = function (this: Wire, chunk): boolean {
  if (chunk?.[0] !== MQTT_PUBACK) return push.call(this, chunk);
  pass("puback", "before");
  const more = push.call(this, chunk);
  setImmediate(() => pass("puback", "after"));
  return more;
};
