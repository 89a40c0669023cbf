import { connect, type MqttClient } from "mqtt";

import { waitFor } from "./waitFor.ts";

/** What a charger of some make makes of its topics, by the facts of its make and not by our profile. */
interface Inside {
  /** A per phase that it lets through; 0: none. */
  limit: number;
  /** Its own words for what it is in. */
  words: Record<string, string | number>;
}

export interface Make {
  readonly profile: string;
  readonly params: Readonly<Record<string, string | number>>;
  readonly filter: string;
  readonly begins: Inside;
  /** A message of ours; what it ignores changes nothing. */
  readonly take: (inside: Inside, leaf: string, text: string) => void;
  /** Topics and payloads of everything it tells, with what the vehicle draws in A. */
  readonly tells: (inside: Inside, drawn: number) => Readonly<Record<string, unknown>>;
  readonly prefix: string;
  readonly isRetained?: boolean;
}

/** Three phases at 230 V. */
const watts = (drawn: number): number => drawn * 690;
const OWN_MAXIMUM = 32;

const GO_E: Make = {
  profile: "go-e-v2",
  params: { serial: "000001" },
  prefix: "go-eCharger/000001/",
  filter: "go-eCharger/000001/+/set",
  begins: { limit: OWN_MAXIMUM, words: { amp: 32, frc: 0 } },
  take({ words }, leaf, text) {
    const value = Number(text);
    if (leaf === "amp/set" && Number.isInteger(value) && value >= 6 && value <= 32) words["amp"] = value;
    if (leaf === "frc/set" && [0, 1, 2].includes(value)) words["frc"] = value;
  },
  tells: ({ words: { amp, frc } }, drawn) => ({
    amp,
    frc,
    acu: frc === 1 ? null : amp,
    car: drawn > 0 ? 2 : 3,
    nrg: [230, 230, 230, 0, drawn, drawn, drawn, 0, 0, 0, 0, watts(drawn), 0, 0, 0, 0],
    rbt: Date.now(),
  }),
};

const WARP: Make = {
  profile: "warp",
  params: { prefix: "warp3/AbCd" },
  prefix: "warp3/AbCd/",
  filter: "warp3/AbCd/evse/external_current_update",
  begins: { limit: OWN_MAXIMUM, words: { mA: 32_000 } },
  take({ words }, leaf, text) {
    const { current } = JSON.parse(text);
    if (leaf.endsWith("external_current_update") && (current === 0 || (current >= 6000 && current <= 32_000)))
      words["mA"] = current;
  },
  tells: ({ words: { mA } }, drawn) => ({
    "evse/external_current": { current: mA },
    "evse/state": { charger_state: drawn > 0 ? 3 : 1, error_state: 0, allowed_charging_current: mA },
    "meter/values": { power: watts(drawn), energy_abs: 12 },
    "evse/low_level_state": { uptime: Date.now() },
  }),
};

const SMARTEVSE: Make = {
  profile: "smartevse",
  params: { prefix: "SmartEVSE/1" },
  prefix: "SmartEVSE/1/",
  filter: "SmartEVSE/1/Set/+",
  begins: { limit: OWN_MAXIMUM, words: { Mode: "Solar", override: 0 } },
  take({ words }, leaf, text) {
    if (leaf === "Set/Mode") words["Mode"] = text;
    if (text === "Solar") words["override"] = 0;
    const value = Number(text);
    const isHonoured = words["Mode"] === "Normal" || words["Mode"] === "Smart";
    // 0 gives control back, which is what makes a raw 0 dangerous here.
    if (leaf === "Set/CurrentOverride" && isHonoured && (value === 0 || (value >= 60 && value <= 320)))
      words["override"] = value;
  },
  tells: ({ words: { Mode, override } }, drawn) => ({
    connected: "online",
    Mode,
    ChargeCurrentOverride: override,
    ChargeCurrent: override === 0 ? OWN_MAXIMUM * 10 : override,
    EVPlugState: "Connected",
    State: drawn > 0 ? "Charging" : "Charging Stopped",
    EVCurrentL1: drawn * 10,
    EVCurrentL2: drawn * 10,
    EVCurrentL3: drawn * 10,
  }),
  isRetained: true,
};

const OPENWB: Make = {
  profile: "openwb-secondary",
  params: { parentIp: "192.0.2.1" },
  prefix: "openWB/internal_chargepoint/0/get/",
  filter: "openWB/set/internal_chargepoint/#",
  begins: { limit: OWN_MAXIMUM, words: { set: 32, heartbeat: 0 } },
  take({ words }, leaf, text) {
    if (leaf.endsWith("global_data")) words["heartbeat"] = JSON.parse(text).heartbeat;
    const value = Number(text);
    if (leaf.endsWith("set_current") && (value === 0 || (value >= 6 && value <= 32))) words["set"] = value;
  },
  tells: ({ words: { set } }, drawn) => ({
    power: watts(drawn),
    currents: [drawn, drawn, drawn],
    plug_state: true,
    charge_state: drawn > 0,
    evse_current: set,
    fault_state: 0,
  }),
};

const OPENEVSE: Make = {
  profile: "openevse-override",
  params: { base: "openevse-a7d4" },
  prefix: "openevse-a7d4/",
  filter: "openevse-a7d4/override/set",
  begins: { limit: OWN_MAXIMUM, words: { state: "none", current: OWN_MAXIMUM } },
  take({ words }, _leaf, text) {
    if (text === "clear") Object.assign(words, { state: "none", current: OWN_MAXIMUM });
    else {
      const { state, charge_current: current } = JSON.parse(text);
      words["state"] = state;
      // Too little is not refused but clamped up: 0 would be 6 A.
      if (typeof current === "number") words["current"] = Math.max(6, current);
    }
  },
  tells: ({ words: { state, current } }, drawn) => ({
    evse_connected: "1",
    status: state === "disabled" ? "disabled" : "active",
    vehicle: "1",
    state: state === "disabled" ? "254" : drawn > 0 ? "3" : "2",
    pilot: String(current),
    amp: String(drawn * 1000),
    power: String(watts(drawn)),
  }),
};

const EVCC: Make = {
  profile: "evcc",
  params: { id: "1" },
  prefix: "evcc/",
  filter: "evcc/loadpoints/1/+/set",
  begins: { limit: OWN_MAXIMUM, words: { mode: "pv", maxCurrent: 32 } },
  take({ words }, leaf, text) {
    if (leaf.includes("/mode/")) words["mode"] = text;
    if (leaf.includes("/maxCurrent/") && Number(text) >= 6 && Number(text) <= 32)
      words["maxCurrent"] = Number(text);
  },
  tells: ({ words: { mode, maxCurrent } }, drawn) => ({
    status: "online",
    updated: String(Math.floor(Date.now() / 1000)),
    "loadpoints/1/mode": mode,
    "loadpoints/1/enabled": String(mode !== "off"),
    "loadpoints/1/maxCurrent": String(maxCurrent),
    "loadpoints/1/offeredCurrent": String(mode === "off" ? 0 : maxCurrent),
    "loadpoints/1/connected": "true",
    "loadpoints/1/charging": String(drawn > 0),
    "loadpoints/1/chargePower": String(watts(drawn)),
  }),
  isRetained: true,
};

/** By the name of the profile that is held against them. */
export const MAKES = { GO_E, WARP, SMARTEVSE, OPENWB, OPENEVSE, EVCC };

/** What each of them lets through. */
const letThrough: Readonly<Record<string, (words: Inside["words"]) => number>> = {
  "go-e-v2": ({ amp, frc }) => (frc === 1 ? 0 : Number(amp)),
  warp: ({ mA }) => Number(mA) / 1000,
  smartevse: ({ Mode, override }) =>
    Mode === "Pause" || Mode === "Off" ? 0 : override === 0 ? OWN_MAXIMUM : Number(override) / 10,
  "openwb-secondary": ({ set }) => Number(set),
  "openevse-override": ({ state, current }) => (state === "disabled" ? 0 : Number(current)),
  evcc: ({ mode, maxCurrent }) => (mode === "off" ? 0 : Number(maxCurrent)),
};

const TELL_EVERY_MS = 200;
/** What the vehicle would draw, A per phase. */
const APPETITE = 20;

/** One charger of some make at a broker, with a hungry vehicle on it. It tells everything every fifth of a second. */
export class ScriptedMake implements AsyncDisposable {
  readonly #make: Make;
  readonly #client: MqttClient;
  readonly #inside: Inside;
  readonly #timer: NodeJS.Timeout;
  /** `leaf payload` of everything that it was told, its keepalives left out. */
  readonly told: string[] = [];
  /** Deaf: it hears, and does nothing. */
  ignores = false;
  isMuted = false;

  private constructor(make: Make, url: string) {
    this.#make = make;
    this.#inside = { limit: make.begins.limit, words: { ...make.begins.words } };
    this.#client = connect(url, { reconnectPeriod: 100 });
    this.#client.on("error", () => undefined);
    this.#client.on("connect", () => this.#client.subscribe(make.filter, { qos: 1 }));
    this.#client.on("message", (topic, payload) => this.#take(topic, payload.toString()));
    this.#timer = setInterval(() => this.#tell(), TELL_EVERY_MS);
  }

  static async at(make: Make, url: string): Promise<ScriptedMake> {
    const charger = new ScriptedMake(make, url);
    await waitFor(() => charger.#client.connected, { timeoutMs: 10_000 });
    return charger;
  }

  /** A per phase. */
  get limit(): number {
    return letThrough[this.#make.profile]?.(this.#inside.words) ?? 0;
  }

  /** One of its own words. */
  word(name: string): string | number | undefined {
    return this.#inside.words[name];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#client.endAsync(true);
  }

  #take(topic: string, text: string): void {
    const leaf = topic.startsWith(this.#make.prefix) ? topic.slice(this.#make.prefix.length) : topic;
    if (!topic.endsWith("global_data"))
      this.told.push(`${leaf.replace(/^.*internal_chargepoint\//, "")} ${text}`);
    if (!this.ignores) this.#make.take(this.#inside, leaf, text);
  }

  #tell(): void {
    if (this.isMuted || !this.#client.connected) return;
    const drawn = Math.min(APPETITE, this.limit);
    for (const [leaf, value] of Object.entries(this.#make.tells(this.#inside, drawn))) {
      const payload = typeof value === "string" ? value : JSON.stringify(value);
      this.#client.publish(this.#make.prefix + leaf, payload, {
        qos: 0,
        retain: this.#make.isRetained ?? false,
      });
    }
  }
}
