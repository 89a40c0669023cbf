import type { Logger } from "pino";

import type { BrokerTiming } from "../chargers/broker/createClient.ts";
import type { ConnectorConfig, OcppConfig } from "../config/ocpp.ts";
import type { Instant } from "../domain/units.ts";
import { NativeOutlet } from "./bridge.ts";
import { Connector } from "./connector.ts";
import type { ForeignProfiles } from "./foreignProfiles.ts";
import type { ReadyStation } from "./orders.ts";
import {
  believedTime,
  isOutOfOrder,
  isSilent,
  NOTHING_KNOWN,
  type OutletState,
  telemetryOf,
  withComposite,
  withMeaning,
  withNewLevel,
  withStationStatus,
  withTransaction,
} from "./outletState.ts";
import type { RelayStore } from "./relayStore.ts";
import type { StationCounts } from "./stationCounts.ts";
import type { Meaning, UnplacedStarts } from "./wire/dialect.ts";
import { judged, type Judged } from "./wire/meterValues.ts";

/** Clock, random source and names that a station gets. */
export interface StationPorts {
  readonly now: () => Instant;
  readonly random: () => number;
  readonly log: Logger;
  /** Ids of our calls, unlike those of any other party. */
  readonly nextId: () => string;
  /** Null: there is no upstream. */
  readonly relayStore: RelayStore | null;
  /** Begin of the MQTT client ids. */
  readonly clientId: string;
  readonly timing?: Partial<BrokerTiming>;
}

export interface OutletPorts extends StationPorts {
  /** Null: the station is not ready. */
  readonly station: () => ReadyStation | null;
  /** Charging profiles of another central system. */
  readonly foreign: ForeignProfiles;
  readonly onOutOfOrder: () => void;
  /** The station has no other connector. */
  readonly isAlone: boolean;
}

/** A charger that was cut off sends these late. Their vehicle may be at another charger by now. */
const DATED: ReadonlySet<Meaning["kind"]> = new Set(["meter", "started", "stopped"]);

/** A connector: its orders, its state, and its charger at the broker. */
export class Outlet implements AsyncDisposable {
  readonly config: ConnectorConfig;
  readonly connector: Connector;
  readonly native: NativeOutlet;
  readonly #shared: OcppConfig;
  readonly #ports: OutletPorts;
  #state: OutletState = NOTHING_KNOWN;
  #lastReboot: string | null = null;
  /** Limit at the last message. Null: none of ours. */
  #level: string | null = null;
  /** Meter values before the next ones. Null: none with a time. */
  #metered: Judged | null = null;
  malformedSets = 0;

  constructor(config: ConnectorConfig, shared: OcppConfig, ports: OutletPorts) {
    this.config = config;
    this.#shared = shared;
    this.#ports = ports;
    const { now, random, log, clientId, timing, station } = ports;
    const isWholeStation = shared.upstream !== null && ports.isAlone;
    this.connector = new Connector(config, {
      now,
      station,
      isWholeStation,
      others: ports.foreign.beside(config.id, isWholeStation || config.id === 0),
      ack: (ack) => this.native.ack(ack),
      onComposite: (composite) => {
        if (composite !== null)
          log.info(
            { charger: config.charger, ...composite },
            "the charger reports the limit that it applies",
          );
        this.#state = withComposite(this.#state, composite, config);
        this.publish();
      },
      onEvent: (what, details) => log.info({ charger: config.charger, ...details }, what),
    });
    this.native = new NativeOutlet({
      site: shared.site,
      mqtt: shared.mqtt,
      charger: config.charger,
      clientId,
      random,
      log,
      onSet: (order) => this.connector.onSet(order),
      onReboot: (id) => void this.#reboot(id),
      onMalformed: () => (this.malformedSets += 1),
      onUp: () => this.publish(),
      ...(timing === undefined ? {} : { timing }),
    });
  }

  get state(): OutletState {
    return this.#state;
  }

  /** Time of the last charging profile. Null: none yet. */
  get lastWriteAt(): Instant | null {
    return this.connector.budget.lastWriteAt;
  }

  /** A stop names its transaction only. A status of the connector 0 is one of the whole station. */
  concerns(meaning: Meaning): boolean {
    if (meaning.kind === "boot") return true;
    if (meaning.connector === null && "transaction" in meaning) {
      const { transaction, started } = this.#state;
      // A session that begins without its outlet, or began before our start, can only be one of the only outlet.
      const isNew = meaning.kind === "started" || (transaction === null && started === null);
      if (isNew && this.#ports.isAlone) return true;
      return [transaction, started?.transaction].includes(meaning.transaction);
    }
    return meaning.connector === this.config.id || this.#isOfStation(meaning);
  }

  /** True: a session that began before our start may be here. */
  mayHave(session: string): boolean {
    const { state, transaction, started, ended } = this.#state;
    return transaction === null && started === null && ended !== session && state !== "unplugged";
  }

  #isOfStation(meaning: Meaning): meaning is Extract<Meaning, { kind: "status" }> {
    return meaning.kind === "status" && meaning.connector === 0 && this.config.id !== 0;
  }

  /** Applies a message and publishes the telemetry. True: the station's clock is wrong. */
  onMeaning(meaning: Meaning): boolean {
    const now = this.#ports.now();
    this.#noteLevel(now);
    const claimed = "at" in meaning ? meaning.at : null;
    const { at: believed, isWrong } = believedTime(claimed, now);
    const at = meaning.kind === "meter" && this.#isOfLateClock(claimed, now) ? now : believed;
    if (meaning.kind === "meter" && isOutOfOrder(this.#state, at)) {
      this.#ports.onOutOfOrder();
      return isWrong;
    }
    this.#state = this.#isOfStation(meaning)
      ? withStationStatus(this.#state, meaning)
      : withMeaning(this.#state, meaning, at);
    // A station that was connected to another system before names a transaction that we did not start.
    const isUnderWay = meaning.kind === "charging" && meaning.state !== "unplugged";
    const named = meaning.kind === "meter" || isUnderWay ? meaning.transaction : null;
    if (named !== null) this.#adopt(named);
    if (meaning.kind === "started") {
      this.#ports.foreign.onStarted(this.config.id, at, meaning.identity?.value ?? null);
      void this.connector.onStarted(meaning.transaction, at);
    }
    if (this.#state.transaction === null) this.connector.onStopped();
    if (this.#isEnd(meaning)) this.#ports.foreign.onStopped(this.config.id);
    this.#publishAt(DATED.has(meaning.kind) ? at : now);
    return isWrong;
  }

  #isOfLateClock(claimed: Instant | null, now: Instant): boolean {
    if (claimed === null) return false;
    this.#metered = judged(this.#metered, { at: claimed, receivedAt: now });
    return this.#metered.isLate;
  }

  /** No session is left. After our start a session may be under way that no message has named yet. */
  #isEnd(meaning: Meaning): boolean {
    if (meaning.kind === "stopped") return true;
    return meaning.kind === "status" && meaning.plug === null && this.#state.state === "unplugged";
  }

  /** Orders can be carried out. Called again when the station reports its abilities late. */
  onReady(): void {
    this.native.open();
    void this.connector.rewrite();
  }

  onAway(): void {
    this.connector.forgetLimit();
    this.native.close();
  }

  publish(): void {
    this.#publishAt(this.#ports.now());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.connector.close();
    await this.native[Symbol.asyncDispose]();
  }

  /** Restarts the whole station. OCPP 1.6 knows no restart of one connector. */
  async #reboot(id: string): Promise<void> {
    // The broker may deliver a message twice.
    if (id === this.#lastReboot) return;
    this.#lastReboot = id;
    const reason = await this.#restart();
    const { log } = this.#ports;
    const details = { charger: this.config.charger, reboot: id };
    if (reason === null) log.info(details, "the charger restarts");
    else log.warn({ ...details, reason }, "reboot refused");
    this.native.ack({ id, accepted: reason === null, value: null, reason });
  }

  /** Null: the station restarts. A text: the reason why it does not. */
  async #restart(): Promise<string | null> {
    const station = this.#ports.station();
    if (station === null) return "the charger is not connected";
    if (this.#shared.upstream !== null)
      return "its central system (upstream) owns it: restart it from there, so that no session is lost";
    const answer = await station.ask({ ...station.dialect.reset(), isUrgent: true });
    if (answer.kind !== "answered") return answer.reason;
    return answer.value.accepted ? null : `the charger answered Reset with ${answer.value.status}`;
  }

  #adopt(transaction: string): void {
    if (this.#state.transaction === transaction) return;
    this.#state = withTransaction(this.#state, transaction);
    if (this.#state.transaction !== transaction) return;
    void this.connector.onStarted(transaction, null);
  }

  #noteLevel(now: Instant): void {
    const level = this.connector.level?.text ?? null;
    if (level === this.#level) return;
    this.#level = level;
    this.#state = withNewLevel(this.#state, now);
  }

  #publishAt(at: Instant): void {
    this.#noteLevel(this.#ports.now());
    // Before the first message nothing is known of the outlet.
    if (isSilent(this.#state)) return;
    this.native.telemetry(telemetryOf(this.#state, this.config, at, this.#shared.meterValues.every));
  }
}

/**
 * The outlets that a message is about. One that names its session only, which began before our start, is about the only
 * outlet that may have such a session (2.0.1: only one event of a session has to name its EVSE). None, where the station has
 * reported an EVSE that the configuration lacks. A stop may be one that the station has kept for long, of a session before the
 * present one.
 */
export function concernedBy(
  meaning: Meaning,
  outlets: readonly Outlet[],
  unplaced: UnplacedStarts,
  counts: Pick<StationCounts, "of">,
): readonly Outlet[] {
  const concerned = outlets.filter((outlet) => outlet.concerns(meaning));
  if (concerned.length > 0 || !("transaction" in meaning)) return concerned;
  if (meaning.kind === "started" || meaning.kind === "stopped") return concerned;
  const { connector, transaction } = meaning;
  if (connector !== null || transaction === null || unplaced.has(transaction)) return concerned;
  if (counts.of("otherConnectors") > 0) return concerned;
  const possible = outlets.filter((outlet) => outlet.mayHave(transaction));
  return possible.length === 1 ? possible : [];
}

/** Connector of a session. 0: not known. */
export const connectorOf = (session: string, outlets: readonly Outlet[]): number =>
  outlets.find(({ state }) => state.transaction === session)?.config.id ?? 0;

/** Highest stack level that other profiles may have beside ours. Null: any. */
export function highestBelow(outlets: readonly Outlet[]): number | null {
  const levels = outlets.flatMap(({ connector }) => connector.highestStackLevel ?? []);
  return levels.length === 0 ? null : Math.min(...levels) - 1;
}
