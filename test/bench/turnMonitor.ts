/**
 * Runs inside the daemon's process (`--import`), outside its code: measures how long the event loop stands still. On
 * each message it answers with the longest turn since the last one.
 */

/** Longest turn of the event loop, ms. */
export interface LongestTurn {
  /** Time between two turns of a timer of 1 ms. */
  readonly wall: number;
  /** CPU that the main thread used in one turn. Other processes do not lengthen it. */
  readonly cpu: number;
}

const TICK_MS = 1;

let longest = { wall: 0, cpu: 0 };
let before = reading();

function reading(): LongestTurn {
  const { user, system } = process.threadCpuUsage();
  return { wall: performance.now(), cpu: (user + system) / 1000 };
}

setInterval(() => {
  const now = reading();
  longest = {
    wall: Math.max(longest.wall, now.wall - before.wall - TICK_MS),
    cpu: Math.max(longest.cpu, now.cpu - before.cpu),
  };
  before = now;
}, TICK_MS).unref();

process.on("message", () => {
  process.send?.(longest);
  longest = { wall: 0, cpu: 0 };
});
// The daemon must be able to end.
process.channel?.unref();
