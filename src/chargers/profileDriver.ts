import { type Command, commandId, type Sent } from "../domain/command.ts";
import { type Desired, valueOf } from "../domain/setpoint.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { ChargerId, Millis } from "../domain/units.ts";
import { type ChargerDriver, type DriverPorts, PAST, secondsLeft } from "./driver.ts";
import { Presence } from "./presence.ts";
import { isAccepted, refusalOf, Overwritten, Settling } from "./profile/acceptance.ts";
import {
  decodeMessage,
  identified,
  isTakenAway,
  measuredIn,
  isReadable,
  type Memory,
} from "./profile/decodeMessage.ts";
import { type Order, telemetryFrom, shownLevel, withoutMeasurements } from "./profile/driverState.ts";
import { isLevel, isOwners, pauseBefore, phasesBefore, Echoes } from "./profile/echoes.ts";
import type { ProfileInstance } from "./profile/instance.ts";
import { telemetryOf, folded, NOTHING_STANDS, currentSignals, without } from "./profile/lastKnownSignals.ts";
import { ordersFor, type Pause } from "./profile/orders.ts";
import { decoded } from "./profile/payload.ts";
import type { Publish } from "./profile/publishes.ts";
import { Reported } from "./profile/reported.ts";
import { type Answer, type Signals, showsNoPause } from "./profile/signals.ts";
import { type TelemetryMap, compileTelemetry } from "./profile/telemetryMap.ts";

/** A charger that is spoken with as its profile says. It remembers what the charger told and was told, since each message says a part. */
export class ProfileDriver implements ChargerDriver {
  readonly topics: readonly string[];
  readonly #charger: ChargerId;
  readonly #instance: ProfileInstance;
  readonly #ports: DriverPorts;
  readonly #telemetryMap: TelemetryMap;
  readonly #memory: Memory = new Map();
  readonly #echoes: Echoes;
  readonly #presence: Presence;
  readonly #reported: Reported;
  readonly #overwritten: Overwritten;
  readonly #settling: Settling;
  #stands = NOTHING_STANDS;
  /** A state may hide whether a vehicle is there. */
  #lastPlugged: boolean | null = null;
  /** Something waited at the broker, and its charger has not spoken since. */
  #hasWaiting = false;
  #order: Order | null = null;
  #acquired = false;
  /** Null: not known, since we have told it nothing since the start. */
  #pause: Pause | null = null;
  /** That it was switched to by us; null: none, or it was away since; undefined: we have told it nothing since the start. */
  #phases: number | null | undefined;
  #isAway = false;
  /** Since the broker came back. What left before that may have found nobody there. */
  #wasHeard = true;
  /** Anything live, since the start. */
  #everHeard = false;
  /** Counts its returns: what left before one may be lost. */
  #returns = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(charger: ChargerId, bound: ProfileInstance, ports: DriverPorts) {
    this.#charger = charger;
    this.#instance = bound;
    this.#ports = ports;
    this.#telemetryMap = compileTelemetry(bound);
    this.#echoes = new Echoes(bound);
    this.#reported = new Reported(bound);
    this.#overwritten = new Overwritten(bound);
    this.#settling = new Settling(bound.profile.burst, () => {
      ports.say({ kind: "telemetry", charger, telemetry: { at: ports.now() }, lastKnown: this.#snapshot() });
    });
    this.topics = this.#telemetryMap.filters;
    this.#presence = new Presence({
      silentAfter: bound.profile.alive?.silentAfter ?? null,
      willIsRetained: bound.profile.retained,
      obeysLater: bound.profile.ready !== undefined,
      now: ports.now,
      say: (online, snapshot) => {
        this.#forget();
        this.#echoes.forget();
        this.#overwritten.forget();
        // What it says between going and coming back is of now; one that was off unnoticed has only just come.
        if (!online || (!snapshot && !this.#isAway)) this.#forgetPhases();
        this.#isAway = !online;
        ports.say({ kind: "online", charger, online, snapshot });
      },
    });
  }

  async send(command: Command, lease: Millis, before: Desired | null, isDoubted = false): Promise<Sent> {
    const { now, publish } = this.#ports;
    const expirySeconds = () => secondsLeft(command, lease, now());
    if (expirySeconds() <= 0) return PAST;
    // Somebody else may have taken control.
    if (isDoubted) this.#forget();
    const { desired } = command;
    const standing = {
      acquired: this.#acquired,
      pause: pauseBefore(this.#pause, before, this.#standing),
      phases: phasesBefore(this.#phases, desired, before, this.#standing),
    };
    if (isOwners(desired, before, this.#order)) this.#reported.take();
    const bound = { ...this.#instance, reported: this.#reported.values };
    const orders = ordersFor(desired, standing, bound, now());
    if (!orders.ok) return { ok: false, retry: false, reason: orders.reason };
    const { order, needless } = this.#take(command, before, orders.publishes);
    const returns = this.#returns;
    // A pause that is not acknowledged may have arrived all the same, and what ends it may get lost.
    this.#pause = orders.standing.pause;
    for (const one of needless ? [] : orders.publishes) {
      if (!this.#echoes.isNews(one)) continue;
      this.#overwritten.expect(one);
      const sent = await publish(one.topic, one.payload, { retain: false, expirySeconds });
      if (!sent.ok) return sent;
    }
    if (returns === this.#returns) {
      this.#acquired = orders.standing.acquired;
      this.#phases = orders.standing.phases;
    }
    this.#arrived(order);
    return { ok: true };
  }

  handleMessage(topic: string, payload: Buffer, retained: boolean): void {
    const text = decoded(payload);
    this.#everHeard ||= !retained;
    if (text === undefined || !isReadable(this.#telemetryMap, topic, text)) {
      const reason = text === undefined ? "too long, or not text" : "not what this topic holds";
      this.#ports.say({ kind: "malformed", charger: this.#charger, reason: `${topic}: ${reason}` });
      return;
    }
    if (!retained && !this.#wasHeard) {
      this.#wasHeard = true;
      this.#forget();
    }
    if (!retained) this.#echoes.hear(topic, text);
    this.#reported.hear(topic, text, !retained && isLevel(this.#order));
    const { signals: said, answer } = decodeMessage(this.#telemetryMap, this.#memory, topic, text);
    const means = identified(this.#telemetryMap, this.#memory, topic, said);
    const isWill = this.#telemetryMap.byTopic.get(topic)?.some(({ signal }) => signal === "online") ?? false;
    this.#hearPresence(topic, means, retained, isWill);
    const isHeld = !retained && this.#order !== null && this.#order.desired.kind !== "release";
    if (isHeld && this.#overwritten.isBy(topic, text, this.#ports.now())) this.#sayForgot();
    this.#hearMeans(means, retained, this.#lastKnown(retained, isWill));
    if (answer !== null && !retained) this.#hearAnswer(answer);
    this.#confirm();
  }

  shows(): Desired | null {
    return isTakenAway(this.#telemetryMap, this.#memory) ? null : shownLevel(this.#standing, this.#instance);
  }

  brokerUp(): void {
    this.#wasHeard = false;
    this.#forget();
    this.#echoes.forget();
    this.#presence.brokerUp();
  }

  brokerDown(): void {
    this.#hasWaiting = false;
    clearTimeout(this.#timer);
    this.#settling[Symbol.dispose]();
    this.#presence.brokerDown();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#settling[Symbol.dispose]();
    this.#presence[Symbol.dispose]();
  }

  /** `needless`: the charger stands under exactly this already, and each write wears it. */
  #take(
    command: Command,
    before: Desired | null,
    publishes: readonly Publish[],
  ): { order: Order; needless: boolean } {
    const [id, last] = [commandId(command), this.#order];
    if (last !== null && last.id === id) return { order: last, needless: false };
    const wire = JSON.stringify(publishes);
    const wears = this.#instance.profile.rate.wear !== "none";
    const needless = wears && this.#acquired && last !== null && last.arrived && last.wire === wire;
    const order = { id, desired: command.desired, before, wire, arrived: false, answered: false };
    this.#order = order;
    // What it drew before is not held against what it is told now.
    if (!needless) {
      this.#stands = { ...this.#stands, told: withoutMeasurements(this.#stands.told) };
      this.#settling.forget();
    }
    return { order, needless };
  }

  #arrived(order: Order): void {
    const isFirst = !order.arrived;
    order.arrived = true;
    if (order !== this.#order) return;
    this.#confirm();
    const { confirmedBy } = this.#instance.profile;
    if (!isFirst || order.answered || confirmedBy === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (order !== this.#order || order.answered) return;
      const reason = refusalOf(order.desired, this.#standing, this.#instance, this.#reported);
      if (reason === null) return;
      const hasReported = this.#everHeard;
      this.#ports.say({ kind: "unconfirmed", charger: this.#charger, id: order.id, reason, hasReported });
      this.#forget();
    }, confirmedBy.within);
  }

  #hearPresence(topic: string, { online }: Signals, retained: boolean, isWill: boolean): void {
    if (isWill && typeof online === "boolean") this.#presence.willSays(online, retained);
    if (retained) return;
    if (topic === this.#telemetryMap.ready) this.#presence.obeys();
    if (topic === this.#telemetryMap.alive) this.#presence.gaveSign();
  }

  /**
   * Measured values that waited at the broker, told once, for reports, when the charger first speaks. No command is
   * judged by them. Not with its birth message, after which it tells everything anew.
   */
  #lastKnown(retained: boolean, isWill: boolean): Signals {
    if (retained) this.#hasWaiting = true;
    if (retained || !this.#hasWaiting) return {};
    this.#hasWaiting = false;
    return isWill ? {} : measuredIn(this.#telemetryMap, this.#memory);
  }

  #hearMeans(means: Signals, retained: boolean, lastKnown: Signals): void {
    const { now, say } = this.#ports;
    const charger = this.#charger;
    const before = this.#stands;
    const told = retained ? withoutMeasurements(means) : means;
    this.#stands = folded(before, told);
    const telemetry = telemetryOf({ ...lastKnown, ...told }, before, this.#instance.electrics.phases, now());
    // Some have no other word for their limit.
    if (Object.keys(telemetry).length > 1 || means.requestedA !== undefined)
      say({ kind: "telemetry", charger, telemetry, lastKnown: this.#snapshot() });
    if (!retained) this.#settling.hear(told, () => this.#standing);
    if (this.#pause === "ending" && !retained && showsNoPause(means)) this.#pause = "none";
    const { plugged } = this.#standing;
    const isPlugIn = !retained && this.#lastPlugged === false && plugged === true;
    this.#lastPlugged = plugged ?? this.#lastPlugged;
    if (isPlugIn && this.#instance.profile.refresh.onPlugIn) this.#sayForgot();
  }

  #sayForgot(): void {
    this.#forget();
    this.#ports.say({ kind: "forgot", charger: this.#charger });
  }

  #snapshot(): Telemetry {
    return telemetryFrom(
      this.#settling.judged(this.#standing),
      this.#order,
      this.#instance,
      this.#ports.now(),
    );
  }

  /** A yes counts only where the charger does not show by itself what it took. */
  #hearAnswer(answer: Answer): void {
    if (!answer.accepted || this.#instance.profile.confirmedBy === undefined) this.#answer(answer);
  }

  #confirm(): void {
    const order = this.#order;
    if (order === null || !order.arrived || order.answered) return;
    if (isAccepted(order.desired, this.#standing, this.#instance, this.#reported))
      this.#answer({ accepted: true, reason: null });
  }

  #answer({ accepted, reason }: Answer): void {
    const order = this.#order;
    if (order === null) return;
    if (accepted) order.answered = true;
    const { value } = valueOf(order.desired);
    this.#ports.say({ kind: "ack", charger: this.#charger, id: order.id, accepted, value, reason });
  }

  get #standing(): Signals {
    return currentSignals(this.#stands);
  }

  /** Only what it says from now on counts. */
  #forgetPhases(): void {
    this.#phases = null;
    this.#stands = { ...this.#stands, told: without(this.#stands.told, ["phases"]) };
  }

  /** It came back, lost what it was told, or does not do it: control has to be taken anew. */
  #forget(): void {
    this.#acquired = false;
    this.#returns += 1;
  }
}
