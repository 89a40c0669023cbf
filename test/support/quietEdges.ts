import type { ControlPorts } from "../../src/control/ports.ts";
import { millis } from "../../src/domain/units.ts";

/** Edges of control at which nothing goes wrong: a commit is stored at once, a publish is acknowledged, no time passes. */
export const quietEdges: Omit<ControlPorts, "now"> = {
  monotonic: () => millis(0),
  random: () => 0.5,
  write: () => {},
  writeUntilStored: async () => {},
  durable: async () => ({ ok: true }),
  send: async () => ({ ok: true }),
  publishState: async () => ({ ok: true }),
  isLinked: () => true,
  windowOf: () => 20,
  observe: () => {},
  fetchById: () => {},
  started: () => {},
  evaluated: () => {},
  warn: () => {},
};
