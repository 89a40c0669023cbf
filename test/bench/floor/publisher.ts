/**
 * mqtt.js alone: `publisher.ts BROKER FILE` publishes the messages of a file (JSON, as fanout.ts records them) with QoS 1
 * on every order. The order is the number in flight at a time (0: no limit). It answers after the last PUBACK with how
 * long it took, in ms.
 */
import { readFileSync } from "node:fs";
import { connectAsync } from "mqtt";

const [, , broker = "", file = ""] = process.argv;
const messages: readonly { topic: string; payload: string; expiry?: number }[] = JSON.parse(
  readFileSync(file, "utf8"),
);
const client = await connectAsync(broker, { protocolVersion: 5, reconnectPeriod: 0 });

const publishAll = (window: number): Promise<void> =>
  new Promise((published, failed) => {
    let [next, acknowledged] = [0, 0];
    const publish = (): void => {
      const message = messages[next];
      if (message === undefined) return;
      next += 1;
      const { topic, payload, expiry } = message;
      const properties = expiry === undefined ? {} : { properties: { messageExpiryInterval: expiry } };
      client.publish(topic, payload, { qos: 1, ...properties }, (error) => {
        if (error) return failed(error);
        acknowledged += 1;
        if (acknowledged === messages.length) published();
        publish();
      });
    };
    for (let started = 0; started < window; started += 1) publish();
  });

process.on("message", (window) => {
  const began = performance.now();
  void publishAll(Number(window) || messages.length).then(() => process.send?.(performance.now() - began));
});
process.send?.(0);
