/** mqtt.js alone: `listener.ts BROKER` subscribes to all telemetry and parses it, nothing else. */
import { connectAsync } from "mqtt";

const client = await connectAsync(process.argv[2] ?? "", { protocolVersion: 5, reconnectPeriod: 0 });
client.on("message", (_topic, payload) => {
  JSON.parse(payload.toString());
});
await client.subscribeAsync("setpointd/+/chargers/+/telemetry", { qos: 1 });
process.send?.(0);
