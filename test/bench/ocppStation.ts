import { WebSocket } from "ws";

const ANSWER = JSON.stringify({
  status: "Accepted",
  configurationKey: [{ key: "SupportedFeatureProfiles", readonly: true, value: "Core,SmartCharging" }],
});

/** A station that answers everything, and counts the charging profiles that it answered. */
export class Station {
  readonly #url: string;
  socket: WebSocket;
  profiles = 0;

  constructor(url: string) {
    this.#url = url;
    this.socket = this.open();
  }

  open(): WebSocket {
    this.socket = new WebSocket(this.#url, ["ocpp1.6"]);
    this.socket.on("error", () => undefined);
    this.socket.on("open", () =>
      this.send("BootNotification", { chargePointVendor: "Bench", chargePointModel: "1" }),
    );
    this.socket.on("message", (content: Buffer) => {
      const [type, id, action] = JSON.parse(content.toString()) as [number, string, string];
      if (type !== 2) return;
      if (action === "SetChargingProfile") this.profiles += 1;
      this.socket.send(`[3,"${id}",${ANSWER}]`);
    });
    return this.socket;
  }

  send(action: string, payload: object): void {
    this.socket.send(JSON.stringify([2, `b-${Math.random()}`, action, payload]));
  }

  meter(): void {
    const sampledValue = [
      { value: "11040", measurand: "Power.Active.Import", unit: "W" },
      ...["L1", "L2", "L3"].map((phase) => ({ value: "16", measurand: "Current.Import", unit: "A", phase })),
      { value: "123456" },
    ];
    const timestamp = new Date().toISOString();
    this.send("MeterValues", { connectorId: 1, transactionId: 7, meterValue: [{ timestamp, sampledValue }] });
  }
}
