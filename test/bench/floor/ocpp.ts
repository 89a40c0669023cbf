import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

/** The minimum for the OCPP figure: a central system without checks, which sends each posted event to every station. */

const HOUR = 3_600_000;
const sockets = new Set<WebSocket>();
/** Sockets whose answer to the profile is missing. */
const missing = new Set<WebSocket>();
let answered = (): void => undefined;
let id = 0;

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk: Buffer) => (body += chunk.toString()));
  request.on("end", () => {
    const { amperes } = JSON.parse(body) as { amperes: number };
    answered = () => response.end();
    for (const socket of sockets) {
      missing.add(socket);
      const now = Date.now();
      const profile = {
        chargingProfileId: 1,
        stackLevel: 1,
        chargingProfilePurpose: "TxDefaultProfile",
        chargingProfileKind: "Absolute",
        validTo: new Date(now + HOUR).toISOString(),
        chargingSchedule: {
          chargingRateUnit: "A",
          chargingSchedulePeriod: [{ startPeriod: 0, limit: amperes }],
        },
      };
      const payload = { connectorId: 1, csChargingProfiles: profile };
      socket.send(JSON.stringify([2, `f-${(id += 1)}`, "SetChargingProfile", payload]));
    }
  });
});
new WebSocketServer({ server }).on("connection", (socket) => {
  sockets.add(socket);
  socket.on("close", () => sockets.delete(socket));
  socket.on("message", (content: Buffer) => {
    const [type, call] = JSON.parse(content.toString()) as [number, string];
    if (type === 2) {
      const accepted = { status: "Accepted", currentTime: new Date().toISOString(), interval: 60 };
      socket.send(JSON.stringify([3, call, accepted]));
    } else if (missing.delete(socket) && missing.size === 0) answered();
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
