/**
 * One SQLite transaction as durable as the daemon's: `committer.ts DIRECTORY` stores the texts of each order, a row each,
 * and answers with how long that took, in ms.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const [, , directory = ""] = process.argv;
const database = new DatabaseSync(join(directory, "committer.db"));
database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
database.exec("CREATE TABLE stored (seq INTEGER PRIMARY KEY, body TEXT)");
const insert = database.prepare("INSERT INTO stored (body) VALUES (?)");

process.on("message", (texts: readonly string[]) => {
  const began = performance.now();
  database.exec("BEGIN IMMEDIATE");
  for (const text of texts) insert.run(text);
  database.exec("COMMIT");
  process.send?.(performance.now() - began);
});
process.send?.(0);
