/** JSON.parse alone: `parser.ts FILE` answers every order with the CPU, in ms, of parsing the file's text once. */
import { readFileSync } from "node:fs";

const ROUNDS = 20;
const text = readFileSync(process.argv[2] ?? "", "utf8");

process.on("message", () => {
  const before = process.cpuUsage();
  for (let round = 0; round < ROUNDS; round += 1) JSON.parse(text);
  const { user, system } = process.cpuUsage(before);
  process.send?.((user + system) / 1000 / ROUNDS);
});
process.send?.(0);
