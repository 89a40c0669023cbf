import { type Command, type Sent, PAST, secondsLeft } from "../domain/command.ts";
import { type Desired, valueOf } from "../domain/setpoint.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { ChargerId, Millis } from "../domain/units.ts";
import type { ChargerDriver, DriverPorts } from "./driver.ts";
import { isOnline, OnlineTracker } from "./onlineTracker.ts";
import { judgedAfter, refusalOf, Overwritten, Settling, showsAcceptance } from "./profile/acceptance.ts";
import { Contact, ControlKnowledge, isLevel, isOwners } from "./profile/controlKnowledge.ts";
import {
  decodeMessage,
  identified,
  isTakenAway,
  measuredIn,
  isReadable,
  type Memory,
} from "./profile/decodeMessage.ts";
import {
  hasRestarted,
  isAccepted,
  isPublished,
  mayLackResume,
  type Order,
  type Started,
  startOrder,
  telemetryFrom,
  shownLevel,
  whenAccepted,
  whenBrokerReturned,
  whenPublished,
  withoutMeasurements,
} from "./profile/driverState.ts";
import { Echoes, Reported } from "./profile/reported.ts";
import type { ProfileInstance } from "./profile/instance.ts";
import { telemetryOf, folded, NOTHING_STANDS, currentSignals, without } from "./profile/lastKnownSignals.ts";
import { type Ordered, ordersFor } from "./profile/orders.ts";
import { decoded } from "./profile/payload.ts";
import { type Answer, type Signals, showsNoPause } from "./profile/signals.ts";
import { type TelemetryMap, compileTelemetry } from "./profile/telemetryMap.ts";

/**
 * Drives one charger as its profile describes.
 *
 * The lives of its parts, each with a diagram: `Contact` and `ControlKnowledge` (profile/controlKnowledge.ts),
 * `OrderStage` (profile/driverState.ts), `Pause` (profile/orders.ts), `Will` (onlineTracker.ts).
 */
export class ProfileDriver implements ChargerDriver {
  readonly topics: readonly string[];
  readonly #charger: ChargerId;
  readonly #instance: ProfileInstance;
  readonly #ports: DriverPorts;
  readonly #telemetryMap: TelemetryMap;
  readonly #memory: Memory = new Map();
  readonly #echoes: Echoes;
  readonly #presence: OnlineTracker;
  readonly #reported: Reported;
  readonly #overwritten: Overwritten;
  readonly #settling: Settling;
  readonly #control = new ControlKnowledge();
  readonly #contact = new Contact();
  #lastKnown = NOTHING_STANDS;
  /** Last known value: some states do not show whether a vehicle is plugged in. */
  #lastPlugged: boolean | null = null;
  /** Retained messages arrived, and no live message since. */
  #hasRetained = false;
  #order: Order | null = null;
  /** Any live message since the start, readable or not. */
  #hasReported = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(charger: ChargerId, instance: ProfileInstance, ports: DriverPorts) {
    this.#charger = charger;
    this.#instance = instance;
    this.#ports = ports;
    this.#telemetryMap = compileTelemetry(instance);
    this.#echoes = new Echoes(instance);
    this.#reported = new Reported(instance);
    this.#overwritten = new Overwritten(instance);
    this.#settling = new Settling(instance.profile.burst, () => {
      ports.emit({
        kind: "telemetry",
        charger,
        telemetry: { at: ports.now() },
        lastKnown: this.#allTelemetry(),
      });
    });
    this.topics = this.#telemetryMap.filters;
    this.#presence = new OnlineTracker({
      silentAfter: instance.profile.alive?.silentAfter ?? null,
      willIsRetained: instance.profile.retained,
      hasReadyTopic: instance.profile.ready !== undefined,
      now: ports.now,
      onChange: (change) => {
        const online = isOnline(change);
        const snapshot = change === "online" || change === "offline";
        this.#control.lose();
        this.#echoes.forget();
        this.#overwritten.forget();
        // Phases reported between offline and online are current. After an unnoticed restart they are not.
        if (!online || change === "restarted") this.#forgetPhases();
        ports.emit({ kind: "online", charger, online, snapshot });
      },
    });
  }

  async send(command: Command, lease: Millis, before: Desired | null, isDoubted = false): Promise<Sent> {
    const { now, publish } = this.#ports;
    const expirySeconds = () => secondsLeft(command, lease, now());
    if (expirySeconds() <= 0) return PAST;
    // Another controller may have taken over.
    if (isDoubted) this.#control.lose();
    const { desired } = command;
    const known = this.#control.forCommand(desired, before, this.#signals);
    if (isOwners(desired, before, this.#order)) this.#reported.take();
    else if (this.#order === null) this.#reported.restore(command.own);
    const instance = { ...this.#instance, reported: this.#reported.values };
    const orders = ordersFor(desired, known, instance, now());
    if (!orders.ok) return { ok: false, retry: false, reason: orders.reason };
    const { order, isNeedless } = this.#startOrder(command, before, orders);
    const allSent = this.#control.publishing(orders.after);
    for (const one of isNeedless ? [] : orders.publishes) {
      if (!this.#echoes.isNeeded(one)) continue;
      this.#overwritten.expect(one);
      const sent = await publish(one.topic, one.payload, { retain: false, expirySeconds });
      if (!sent.ok) return sent;
    }
    allSent();
    this.#onPublished(order);
    return { ok: true, own: this.#reported.own };
  }

  handleMessage(topic: string, payload: Buffer, retained: boolean): void {
    const text = decoded(payload);
    this.#hasReported ||= !retained;
    if (text === undefined || !isReadable(this.#telemetryMap, topic, text)) {
      const reason = text === undefined ? "too long, or not text" : "not what this topic holds";
      this.#ports.emit({ kind: "malformed", charger: this.#charger, reason: `${topic}: ${reason}` });
      return;
    }
    if (!retained) this.#contact.onLiveMessage(this.#control, this.#ports.now());
    if (!retained) this.#echoes.record(topic, text);
    this.#reported.record(topic, text, !retained && isLevel(this.#order));
    const message = decodeMessage(this.#telemetryMap, this.#memory, topic, text);
    const signals = identified(this.#telemetryMap, this.#memory, topic, message.signals);
    const isWill = this.#telemetryMap.byTopic.get(topic)?.some(({ signal }) => signal === "online") ?? false;
    this.#updatePresence(topic, signals, retained, isWill);
    const isHeld = !retained && this.#order !== null && this.#order.desired.kind !== "release";
    if (isHeld && this.#overwritten.isBy(topic, text, this.#ports.now())) this.#reportForgotten();
    this.#updateSignals(signals, retained, this.#retainedMeasurements(retained, isWill));
    if (message.answer !== null && !retained) this.#onAnswer(message.answer);
    this.#confirm();
  }

  shows(): Desired | null {
    return isTakenAway(this.#telemetryMap, this.#memory) ? null : shownLevel(this.#signals, this.#instance);
  }

  brokerUp(): void {
    if (this.#order !== null) this.#order.stage = whenBrokerReturned(this.#order.stage);
    this.#contact.brokerUp();
    this.#control.lose();
    this.#echoes.forget();
    this.#presence.brokerUp();
  }

  brokerDown(): void {
    this.#hasRetained = false;
    clearTimeout(this.#timer);
    this.#settling[Symbol.dispose]();
    this.#presence.brokerDown();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#settling[Symbol.dispose]();
    this.#presence[Symbol.dispose]();
  }

  #startOrder(command: Command, before: Desired | null, orders: Ordered): Started {
    const { isOurs } = this.#control;
    const started = startOrder(this.#order, command, before, orders, { ...this.#instance, isOurs });
    if (started.order === this.#order) return started;
    this.#order = started.order;
    // Measurements from before the command must not count for it.
    if (!started.isNeedless) {
      const { reported, implied } = this.#lastKnown;
      this.#lastKnown = { reported: withoutMeasurements(reported), implied };
      this.#settling.forget();
    }
    return started;
  }

  #onPublished(order: Order): void {
    const isFirst = !isPublished(order.stage);
    order.stage = whenPublished(order.stage);
    if (order !== this.#order) return;
    this.#confirm();
    const within = judgedAfter(this.#instance.profile);
    if (!isFirst || isAccepted(order.stage) || within === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (order !== this.#order || isAccepted(order.stage)) return;
      const refusal = refusalOf(order, this.#signals, this.#instance, this.#reported);
      if (refusal === null) return;
      if (refusal === "lost") return this.#reportForgotten();
      const unconfirmed = { ...refusal, hasReported: this.#hasReported };
      this.#ports.emit({ kind: "unconfirmed", charger: this.#charger, id: order.id, ...unconfirmed });
      this.#control.lose();
    }, within);
  }

  #updatePresence(topic: string, { online }: Signals, retained: boolean, isWill: boolean): void {
    if (isWill && typeof online === "boolean") this.#presence.onWill(online, retained);
    if (retained) return;
    if (topic === this.#telemetryMap.ready) this.#onReady();
    if (topic === this.#telemetryMap.alive) this.#presence.onSignOfLife();
  }

  /** A command before the first `ready` is lost: the charger was starting. A retained `online` does not show this. */
  #onReady(): void {
    const hasReturned = this.#presence.onReady();
    const isFirst = this.#contact.onReady();
    // After a return control sends the command again anyway.
    if (!isFirst || hasReturned) return;
    if (this.#order !== null && !isAccepted(this.#order.stage)) this.#reportForgotten();
  }

  /**
   * Retained measurements, reported once with the first live message. They are for reports; no command is judged by
   * them. Left out with a birth message: the charger publishes all values after it.
   */
  #retainedMeasurements(retained: boolean, isWill: boolean): Signals {
    if (retained) this.#hasRetained = true;
    if (retained || !this.#hasRetained) return {};
    this.#hasRetained = false;
    return isWill ? {} : measuredIn(this.#telemetryMap, this.#memory);
  }

  #updateSignals(signals: Signals, retained: boolean, retainedMeasurements: Signals): void {
    const [{ now, emit }, charger] = [this.#ports, this.#charger];
    const before = this.#lastKnown;
    const current = retained ? withoutMeasurements(signals) : signals;
    this.#lastKnown = folded(before, current);
    const { phases } = this.#instance.electrics;
    const telemetry = telemetryOf({ ...retainedMeasurements, ...current }, before, phases, now());
    // `requestedA` is the only limit that some chargers report.
    if (Object.keys(telemetry).length > 1 || signals.requestedA !== undefined)
      emit({ kind: "telemetry", charger, telemetry, lastKnown: this.#allTelemetry() });
    if (!retained) this.#settling.record(current, () => this.#signals);
    if (!retained && showsNoPause(signals)) this.#control.pauseIsOver();
    const { plugged } = this.#signals;
    const isPlugIn = !retained && this.#lastPlugged === false && plugged === true;
    this.#lastPlugged = plugged ?? this.#lastPlugged;
    const mayLack = this.#instance.profile.refresh.onPlugIn || mayLackResume(this.#order, this.#signals);
    if ((isPlugIn && mayLack) || hasRestarted(before, signals)) this.#reportForgotten();
  }

  /** Asks control to send the whole command again. */
  #reportForgotten(): void {
    this.#control.lose();
    this.#ports.emit({ kind: "forgot", charger: this.#charger });
  }

  #allTelemetry(): Telemetry {
    const judged = this.#settling.judged(this.#signals);
    return telemetryFrom(judged, this.#order, this.#instance, this.#ports.now());
  }

  /** An acceptance counts only where the profile has no `confirmedBy`. A refusal always counts. */
  #onAnswer(answer: Answer): void {
    const isDecisive = this.#instance.profile.confirmedBy === undefined;
    if (isDecisive) clearTimeout(this.#timer);
    if (!answer.accepted || isDecisive) this.#report(answer);
  }

  #confirm(): void {
    const order = this.#order;
    if (order?.stage !== "published") return;
    if (showsAcceptance(order, this.#signals, this.#instance, this.#reported))
      this.#report({ accepted: true, reason: null });
  }

  #report({ accepted, reason }: Answer): void {
    const order = this.#order;
    if (order === null) return;
    if (accepted) order.stage = whenAccepted(order.stage);
    const { value } = valueOf(order.desired);
    this.#ports.emit({ kind: "ack", charger: this.#charger, id: order.id, accepted, value, reason });
  }

  get #signals(): Signals {
    return currentSignals(this.#lastKnown);
  }

  /** Only phases that the charger reports from now on count. */
  #forgetPhases(): void {
    this.#control.losePhases();
    const { reported, implied } = this.#lastKnown;
    this.#lastKnown = { reported: without(reported, ["phases"]), implied };
  }
}
