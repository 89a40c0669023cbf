/**
 * The least that takes a webhook and is durable: `relay.ts BROKER DIRECTORY WINDOW` does node:http -> JSON.parse ->
 * one SQLite commit -> 202 -> one QoS 1 publish per vehicle, so many in flight at a time. Says its port.
 */
import { createServer } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { connectAsync } from "mqtt";

const [, , broker = "", directory = "", window = ""] = process.argv;
const database = new DatabaseSync(join(directory, "relay.db"));
database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
database.exec("CREATE TABLE event (seq INTEGER PRIMARY KEY, body TEXT)");
const insert = database.prepare("INSERT INTO event (body) VALUES (?)");
const client = await connectAsync(broker, { protocolVersion: 5, reconnectPeriod: 0 });

const waiting: (readonly [topic: string, payload: string])[] = [];
let inFlight = 0;

function pump(): void {
  while (inFlight < Number(window)) {
    const message = waiting.shift();
    if (message === undefined) return;
    inFlight += 1;
    client.publish(...message, { qos: 1 }, () => {
      inFlight -= 1;
      pump();
    });
  }
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString();
    const event = JSON.parse(body);
    insert.run(body);
    response.writeHead(202).end();
    for (const vehicle of event.targets[0].values) {
      const set = { id: event.ID, kind: "current", value: event.payload.targetCurrent, unit: "A", vehicle };
      waiting.push([`setpointd/relay/chargers/${vehicle}/set`, JSON.stringify(set)]);
    }
    pump();
  });
});
server.listen(0, "127.0.0.1", () => {
  const bound = server.address();
  process.send?.(typeof bound === "object" && bound !== null ? bound.port : 0);
});
