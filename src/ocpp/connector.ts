import { isOlder, orderExpires, type SetMessage } from "../chargers/native/payload.ts";
import type { ConnectorConfig } from "../config/ocpp.ts";
import { formatLevel } from "../domain/setpoint.ts";
import { type Instant, instant } from "../domain/units.ts";
import { delayUntil } from "../platform/clock.ts";
import {
  AppliedLimit,
  acceptedValue,
  type ConnectorPorts,
  describeRefusal,
  limitOf,
  type InForce,
  type Leased,
  highestStackLevel,
  stackBeside,
  isHeld,
  isIncrease,
  NO_SMART_CHARGING,
  profileIdOf,
  profileIdsOf,
  isRefusal,
  isSameLevel,
  mayHold,
  type ReadyStation,
  type Transaction,
  WriteBudget,
} from "./orders.ts";
import type { Limit, Outcome } from "./wire/dialect.ts";
import { amperesOf, levelOf, type Level } from "./wire/profiles.ts";

/** Orders to one connector, and the limit that its charger accepted. One order is written at a time. */
export class Connector {
  readonly config: ConnectorConfig;
  readonly #ports: ConnectorPorts;
  readonly #isWholeStation: boolean;
  #last: Pick<SetMessage, "epoch" | "seq"> | null = null;
  /** Order that waits for the end of the present write. A newer one replaces it. */
  #wanted: Leased | "expiry" | "again" | null = null;
  #isWorking = false;
  #inForce: InForce | null = null;
  /** Last order, which the charger refused. Some makes take profiles in a session only. */
  #refused: Leased | null = null;
  #transaction: Transaction | null = null;
  #leaseTimer: NodeJS.Timeout | undefined;
  /** The last write may be gone or outdated. */
  #mayBeReplaced = false;
  readonly budget: WriteBudget;
  readonly applied: AppliedLimit;
  /** Profiles that the charger may still hold, by id. Null: one of our last run. */
  readonly #held: Map<number, Limit | null>;
  readonly counts = { accepted: 0, refused: 0, written: 0, released: 0, expired: 0 };
  lastRefusal: string | null = null;
  /** A profile of another central system has the stack level of ours, or a higher one. */
  isOutranked = false;

  constructor(config: ConnectorConfig, ports: ConnectorPorts) {
    this.config = config;
    this.#ports = ports;
    this.#isWholeStation = config.id === 0 || ports.isWholeStation;
    this.budget = new WriteBudget(config.writesPerHour);
    this.applied = new AppliedLimit(config.id, ports);
    this.#held = new Map(profileIdsOf(config.id, this.#isWholeStation).map((id) => [id, null]));
  }

  /** Limit that the charger accepted. Null: none of ours. */
  get level(): { readonly text: string; readonly until: Instant } | null {
    const held = this.#inForce;
    return held === null ? null : { text: formatLevel(held.order.desired), until: held.until };
  }

  /** Limit that the charger accepted, in A per phase. Null: none of ours. */
  get amperes(): number | null {
    return this.#inForce === null ? null : amperesOf(this.#inForce.level, this.config);
  }

  /** Handles a `set`. The newest waiting one wins. */
  onSet(order: SetMessage): void {
    const { now } = this.#ports;
    if (this.#last !== null && isOlder(order, this.#last))
      return this.#refuse(order, `older than ${this.#last.epoch}-${this.#last.seq}`);
    const leaseEnd = orderExpires(order, now());
    if (leaseEnd <= now()) return this.#refuse(order, "its time has passed");
    this.#last = order;
    this.#wanted = { order, leaseEnd };
    void this.#work();
  }

  /** A transaction has begun: the limit in force is written for it as well. */
  onStarted(id: string, startedAt: Instant | null): Promise<void> {
    this.#transaction = { id, startedAt };
    return this.#writeAgain();
  }

  /** The limit in force may be gone or outdated: it is written again. */
  async rewrite(): Promise<void> {
    this.#mayBeReplaced = true;
    // Beyond its writes per hour the charger gets our limit with the next refresh.
    if (this.budget.denial(this.#ports.now()) === null) await this.#writeAgain();
  }

  /** No transaction is known. */
  onStopped(): void {
    if (this.#transaction === null) return;
    this.#transaction = null;
    // The profile ends with its transaction.
    this.#held.delete(profileIdOf(this.config.id, true));
  }

  /** None of our limits is known to apply, as after a lost connection. The charger keeps its profiles until they end. */
  forgetLimit(): void {
    clearTimeout(this.#leaseTimer);
    this.#refused = null;
    this.#inForce = null;
    this.applied.forget();
  }

  close(): void {
    clearTimeout(this.#leaseTimer);
    this.applied.close();
  }

  #writeAgain(): Promise<void> {
    this.#wanted ??= "again";
    return this.#work();
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    try {
      for (let wanted = this.#wanted; wanted !== null; wanted = this.#wanted) {
        this.#wanted = null;
        const next = wanted === "again" ? this.#again() : wanted;
        if (next === "expiry") await this.#expire();
        else if (next !== null) await this.#carryOut(next);
      }
    } finally {
      this.#isWorking = false;
    }
  }

  /** The last order, if it was refused and its lease lasts, or the limit in force. The lease counts from its last refresh. */
  #again(): Leased | null {
    const refused = this.#refused;
    return refused !== null && refused.leaseEnd > this.#ports.now() ? refused : this.#inForce;
  }

  async #carryOut({ order, leaseEnd }: Leased): Promise<void> {
    this.#refused = null;
    const station = this.#ports.station();
    if (station === null) return this.#refuse(order, "the charger is not connected");
    if (station.capabilities.smartCharging === false) return this.#refuse(order, NO_SMART_CHARGING);
    if (order.desired.kind === "release") return this.#release(order, station);
    const wanted = levelOf(order.desired, this.config, station.capabilities);
    if (wanted === null) return this.#refuse(order, "OCPP cannot command a level below zero");
    const until = Math.max(leaseEnd, this.#ports.now() + this.budget.shortestProfile);
    const level = this.#ports.others.cap(wanted, this.config, this.#ports.now(), instant(until));
    if (this.#isRefreshed(level)) {
      this.#extendLease(leaseEnd);
      return this.#accept(order, level);
    }
    const denied = isIncrease(this.#inForce, level) ? this.budget.denial(this.#ports.now()) : null;
    const reason = denied ?? (await this.#write({ order, leaseEnd }, level, station));
    if (reason === null) return this.#accept(order, level);
    // A write without an answer is not followed by another one.
    if (denied !== null || !this.#mayBeReplaced) await this.#keep(level, leaseEnd, station);
    this.#refused = { order, leaseEnd };
    this.#refuse(order, reason);
  }

  /** Renews the limit in force when another one is refused. Without it the charger would be free. */
  async #keep(refused: Level, leaseEnd: Instant, station: ReadyStation): Promise<void> {
    const held = this.#inForce;
    if (held === null || isSameLevel(held.level, refused)) return;
    if (this.#isRefreshed(held.level)) this.#extendLease(leaseEnd);
    else await this.#write({ order: held.order, leaseEnd }, held.level, station);
  }

  /** Null: the charger is away, or neither it nor the configuration names a level. */
  get highestStackLevel(): number | null {
    const station = this.#ports.station();
    return station === null ? null : highestStackLevel(this.config, station.capabilities);
  }

  /** Null: the charger accepted the level. A text: the reason of its refusal. */
  async #write({ order, leaseEnd }: Leased, level: Level, station: ReadyStation): Promise<string | null> {
    const { now, onEvent } = this.#ports;
    const began = now();
    const transaction = this.#transaction;
    const until = instant(Math.max(leaseEnd, began + this.budget.shortestProfile));
    const outcomes: (Outcome | string)[] = [];
    const stack = stackBeside(this.#ports.others.highest(), this.config, station.capabilities);
    const { clockAhead } = station;
    this.isOutranked = stack.isOutranked;
    const isRefresh = this.#isHeld(level);
    this.#mayBeReplaced = false;
    for (const inTransaction of transaction === null || this.#isWholeStation ? [false] : [false, true]) {
      const ours = {
        connector: this.#isWholeStation ? 0 : this.config.id,
        profileId: profileIdOf(this.config.id, inTransaction),
        transaction: inTransaction ? transaction : null,
      };
      const limit = limitOf(level, ours, { began, until, clockAhead }, this.config, stack.level);
      const answer = await station.ask({ ...station.dialect.setLimit(limit), isUrgent: true });
      outcomes.push(answer.kind === "answered" ? answer.value : answer.reason);
      if (mayHold(answer)) this.#held.set(limit.profileId, limit);
      if (answer.kind === "unanswered") this.#mayBeReplaced = true;
      // A station that is gone or hangs is not asked twice.
      if (answer.kind === "closed" || answer.kind === "unanswered") break;
    }
    this.budget.add(began, isRefresh);
    this.counts.written += 1;
    const refusals = outcomes.filter(isRefusal);
    const reason = refusals.map(describeRefusal).join("; ");
    if (refusals.length === outcomes.length) return reason;
    if (reason !== "") onEvent("one of two charging profiles was refused", { reason });
    const isChanged = this.#inForce === null || !isSameLevel(this.#inForce.level, level);
    this.#inForce = { order, leaseEnd, level, writtenAt: began, until, transaction: transaction?.id ?? null };
    this.#extendLease(leaseEnd);
    if (isChanged) this.applied.askSoon(level);
    return null;
  }

  async #release(order: SetMessage, station: ReadyStation): Promise<void> {
    const reason = await this.#clear(station);
    if (reason !== null) return this.#refuse(order, reason);
    this.counts.released += 1;
    this.#accept(order, null);
    this.forgetLimit();
    this.applied.askWhetherKept(this.#transaction !== null);
  }

  /** Clears our profiles, and no others. Null: none of them is left. A text: some may be gone. */
  async #clear({ ask, dialect }: ReadyStation): Promise<string | null> {
    this.#mayBeReplaced = true;
    // A release that comes again is asked again.
    const ids =
      this.#held.size > 0 ? [...this.#held.keys()] : profileIdsOf(this.config.id, this.#isWholeStation);
    for (const id of ids) {
      const answer = await ask({ ...dialect.clearLimit(id), isUrgent: true });
      if (answer.kind !== "answered") return answer.reason;
      if (!answer.value.accepted)
        return `the charger answered ClearChargingProfile with ${answer.value.status}`;
      // Some makes clear profiles by their place only. Ours has replaced any other one there.
      const limit = answer.value.status === "Unknown" && !this.isOutranked ? this.#held.get(id) : null;
      if (limit != null) await ask({ ...dialect.clearPlace(limit), isUrgent: true });
      this.#held.delete(id);
    }
    return null;
  }

  /** The charger ends the limit by itself. Makes that ignore validTo are cleared as long as we are there. */
  #extendLease(leaseEnd: Instant): void {
    if (this.#inForce !== null) this.#inForce = { ...this.#inForce, leaseEnd };
    clearTimeout(this.#leaseTimer);
    const onEnd = (): void => {
      if (this.#wanted === null || this.#wanted === "again") this.#wanted = "expiry";
      void this.#work();
    };
    this.#leaseTimer = setTimeout(onEnd, delayUntil(leaseEnd, this.#ports.now()));
  }

  async #expire(): Promise<void> {
    const { now, station, onEvent } = this.#ports;
    const ready = station();
    const held = this.#inForce;
    if (ready === null || held === null) return;
    // Timers fire 1 ms early, a clock may be set back, and a refresh may have extended the lease in the meantime.
    if (held.leaseEnd > now()) return this.#extendLease(held.leaseEnd);
    this.forgetLimit();
    this.counts.expired += 1;
    const fault = await this.#clear(ready);
    onEvent("the lease passed without a refresh: our limit is cleared", { order: held.order.id, fault });
  }

  /** True: the charger holds this level long enough, so nothing is written. */
  #isRefreshed(level: Level): boolean {
    const lastWriteAt = this.#inForce?.writtenAt ?? 0;
    // A tenth of tolerance: refreshes do not arrive to the millisecond.
    return this.#isHeld(level) && this.#ports.now() - lastWriteAt < this.budget.interval * 0.9;
  }

  /** True: the charger holds this level, as far as we know. */
  #isHeld(level: Level): boolean {
    return !this.#mayBeReplaced && isHeld(this.#inForce, level, this.#transaction);
  }

  #accept({ id, desired }: SetMessage, level: Level | null): void {
    this.counts.accepted += 1;
    this.lastRefusal = null;
    this.#ports.ack({ id, accepted: true, value: acceptedValue(desired, level), reason: null });
  }

  #refuse(order: SetMessage, reason: string): void {
    this.counts.refused += 1;
    this.lastRefusal = reason;
    this.#ports.onEvent("setpoint refused", { order: order.id, reason });
    this.#ports.ack({ id: order.id, accepted: false, value: null, reason });
  }
}
