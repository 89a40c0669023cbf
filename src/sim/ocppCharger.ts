import { WebSocket } from "ws";
import { z } from "zod";

import { amperes, type Instant, iso, fromIso } from "../domain/units.ts";
import { type Payload, readFrame, writeCall, writeReply } from "../ocpp/wire/frame.ts";
import { limitOf, rebooted, type SimulatedCharger, stateOf, step } from "./charger.ts";

export interface OcppChargerOptions {
  /** Address with the identity at its end. */
  readonly url: string;
  readonly identity: string;
  readonly password: string;
  /** Token of the vehicle at the plug. */
  readonly token: string;
  readonly model: SimulatedCharger;
  readonly now: () => Instant;
}

const profile = z.object({
  chargingProfileId: z.number(),
  validTo: z.string(),
  chargingSchedule: z.object({
    chargingRateUnit: z.literal("A"),
    chargingSchedulePeriod: z.array(z.object({ limit: z.number() })).min(1),
  }),
});

type Profile = z.infer<typeof profile>;

const STATUS: Readonly<Record<string, string>> = {
  unplugged: "Available",
  connected: "Preparing",
  charging: "Charging",
  paused: "SuspendedEVSE",
  finished: "Finishing",
};

const CONFIGURATION = {
  SupportedFeatureProfiles: "Core,SmartCharging,RemoteTrigger",
  ChargeProfileMaxStackLevel: "10",
  ChargingScheduleAllowedChargingRateUnit: "Current",
};

const TICK_MS = 250;
const METER_EVERY_MS = 1_000;
const RECONNECT_AFTER_MS = 1_000;
const RESTARTS_FOR_MS = 3_000;

/** A simulated charger with OCPP 1.6J, one connector and a vehicle that charges. It reconnects by itself. */
export class OcppCharger implements Disposable {
  readonly #options: OcppChargerOptions;
  readonly #profiles = new Map<number, Profile>();
  readonly #waiting = new Map<string, (payload: Payload) => void>();
  readonly #ticking: NodeJS.Timeout;
  #model: SimulatedCharger;
  #socket: WebSocket | null = null;
  #transaction: number | null = null;
  #status = "";
  #metered = 0;
  #calls = 0;
  #isClosed = false;
  #isStarting = false;

  constructor(options: OcppChargerOptions) {
    this.#options = options;
    this.#model = options.model;
    this.#ticking = setInterval(() => this.#tick(), TICK_MS);
    this.#connect();
  }

  /** State of the charger now. */
  get model(): SimulatedCharger {
    // A charger that restarts draws nothing.
    if (this.#isStarting) return rebooted(this.#model, this.#options.now());
    this.#model = step({ ...this.#model, order: this.#order() }, this.#options.now());
    return this.#model;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearInterval(this.#ticking);
    this.#socket?.terminate();
  }

  /** The profile that ends last, as an order. Null: none holds. */
  #order(): SimulatedCharger["order"] {
    const now = this.#options.now();
    const [held] = [...this.#profiles.values()]
      .filter(({ validTo }) => Date.parse(validTo) > now)
      .toSorted((a, b) => Date.parse(b.validTo) - Date.parse(a.validTo));
    const limit = held?.chargingSchedule.chargingSchedulePeriod[0]?.limit;
    if (held === undefined || limit === undefined) return null;
    const expires = fromIso(held.validTo);
    return { epoch: 0, seq: 0, expires, desired: { kind: "current", amperes: amperes(limit) } };
  }

  #connect(): void {
    const { url, identity, password } = this.#options;
    const login = Buffer.from(`${identity}:${password}`).toString("base64");
    const socket = new WebSocket(url, ["ocpp1.6"], { headers: { authorization: `Basic ${login}` } });
    this.#socket = socket;
    socket.on("error", () => undefined);
    socket.on("open", () => void this.#begin());
    socket.on("message", (content: Buffer) => this.#onText(content.toString("utf8")));
    socket.on("close", () => {
      this.#status = "";
      this.#waiting.clear();
      const isStart = this.#isStarting;
      setTimeout(
        () => {
          if (isStart) this.#switchOn();
          if (!this.#isClosed) this.#connect();
        },
        isStart ? RESTARTS_FOR_MS : RECONNECT_AFTER_MS,
      ).unref();
    });
  }

  /** A restart ends the transaction. Charging profiles stay until they end. */
  #switchOn(): void {
    this.#isStarting = false;
    this.#transaction = null;
    this.#model = rebooted(this.#model, this.#options.now());
  }

  async #begin(): Promise<void> {
    const vendor = {
      chargePointVendor: "setpointd",
      chargePointModel: "Simulated",
      firmwareVersion: "simulated 1.0",
    };
    await this.#call("BootNotification", vendor);
    const { token, now } = this.#options;
    const { vehicle, energyWh } = this.model;
    if (vehicle === null || this.#transaction !== null) return;
    const start = { connectorId: 1, idTag: token, meterStart: Math.round(energyWh), timestamp: iso(now()) };
    this.#transaction = Number((await this.#call("StartTransaction", start))["transactionId"]);
  }

  #call(action: string, payload: Payload): Promise<Payload> {
    const id = `sim-${(this.#calls += 1)}`;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#send(writeCall(id, action, payload));
    });
  }

  #send(text: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  #onText(text: string): void {
    const frame = readFrame(text);
    if (frame.kind === "result") {
      this.#waiting.get(frame.id)?.(frame.payload);
      this.#waiting.delete(frame.id);
    }
    if (frame.kind === "call")
      this.#send(writeReply(frame.id, { ok: true, payload: this.#answer(frame.action, frame.payload) }));
  }

  #answer(action: string, payload: Payload): Payload {
    switch (action) {
      case "GetConfiguration":
        return {
          configurationKey: Object.entries(CONFIGURATION).map(([key, value]) => ({
            key,
            readonly: true,
            value,
          })),
        };
      case "SetChargingProfile": {
        const read = profile.safeParse(payload["csChargingProfiles"]);
        if (!read.success) return { status: "Rejected" };
        this.#profiles.set(read.data.chargingProfileId, read.data);
        return { status: "Accepted" };
      }
      case "ClearChargingProfile":
        return { status: this.#profiles.delete(Number(payload["id"])) ? "Accepted" : "Unknown" };
      case "GetCompositeSchedule":
        return {
          status: "Accepted",
          chargingSchedule: {
            chargingRateUnit: "A",
            chargingSchedulePeriod: [{ startPeriod: 0, limit: limitOf(this.model) }],
          },
        };
      case "Reset":
        this.#isStarting = true;
        // The answer goes out first.
        setTimeout(() => this.#socket?.terminate(), 100).unref();
        return { status: "Accepted" };
      default:
        return { status: "Accepted" };
    }
  }

  #tick(): void {
    const { now } = this.#options;
    const { model } = this;
    if (this.#socket?.readyState !== WebSocket.OPEN || this.#transaction === null) return;
    const status = STATUS[stateOf(model)] ?? "Unavailable";
    if (status !== this.#status) {
      this.#status = status;
      void this.#call("StatusNotification", { connectorId: 1, status, errorCode: "NoError" });
    }
    if (now() - this.#metered < METER_EVERY_MS) return;
    this.#metered = now();
    void this.#call("MeterValues", {
      connectorId: 1,
      transactionId: this.#transaction,
      meterValue: [{ timestamp: iso(now()), sampledValue: samplesOf(model) }],
    });
  }
}

function samplesOf({ drawn, energyWh, traits }: SimulatedCharger): readonly Payload[] {
  const { phases, voltage } = traits;
  return [
    { measurand: "Power.Active.Import", unit: "W", value: (drawn * phases * voltage).toFixed(1) },
    { measurand: "Energy.Active.Import.Register", unit: "Wh", value: energyWh.toFixed(1) },
    ...Array.from({ length: phases }, (_, index) => ({
      measurand: "Current.Import",
      unit: "A",
      phase: `L${index + 1}`,
      value: drawn.toFixed(1),
    })),
  ];
}
