/**
 * A bare program that listens: `starter.ts [DATABASE]`. With the database of a state it first reads and parses every
 * stored event. Ready once node:http listens.
 */
import { createServer } from "node:http";
import { DatabaseSync } from "node:sqlite";

const [, , path] = process.argv;
if (path !== undefined) {
  const database = new DatabaseSync(path, { readOnly: true });
  for (const row of database.prepare("SELECT body FROM event").iterate()) JSON.parse(String(row["body"]));
  database.close();
}
createServer().listen(0, "127.0.0.1", () => process.send?.(0));
