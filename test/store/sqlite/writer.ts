/**
 * A daemon's store in a process of its own: `node writer.ts DIRECTORY ROWS`. Writes turns of that many rows and one
 * command until it is killed, and says each turn on stdout once it is durable. A refusal is said, and ends it.
 */
import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { say } from "../../../src/cli/output.ts";
import { openState } from "../../../src/store/sqlite/open.ts";
import { commandRecord, NOON, row } from "./words.ts";

const [, , directory = "", rows = "1"] = process.argv;
// Waits where the pipe is full: whoever reads may be busy with what it has.
const tell = (answer: object): void => say(JSON.stringify(answer));

const state = openState(directory, {
  now: () => NOON,
  random: randomBytes,
  keys: { site: null, proof: null },
  log: pino({ level: "silent" }),
});
if (state.ok) {
  tell({ open: true });
  for (let turn = state.store.reads.audit({ newest: true, limit: 1 })[0]?.seq ?? 0; ; turn += Number(rows)) {
    const facts = { turn };
    state.store.write([{ kind: "command", record: commandRecord("bay-01", turn) }]);
    state.store.write(Array.from({ length: Number(rows) }, (_, n) => row(`row ${turn + n + 1}`, { facts })));
    tell({ turn, ...(await state.store.durable()) });
  }
} else {
  tell({ open: false, reason: state.reason });
  process.exitCode = 1;
}
