import type { Logger } from "pino";

import { type Instant, minutes } from "../domain/units.ts";
import { messageOf } from "../platform/text.ts";
import type { RelayStore } from "./relayStore.ts";
import {
  cleared,
  type ForeignProfile,
  lowestOf,
  profileIn,
  withProfile,
  withStackLevel,
} from "./wire/foreignProfile.ts";
import type { Call, Frame } from "./wire/frame.ts";
import { amperesOf, atMost, type Level, type Outlet } from "./wire/profiles.ts";

/** Limits of another central system, as an outlet needs them. */
export interface OthersLimits {
  /** The lower one of a level and the limits that hold in a time. */
  readonly cap: (level: Level, outlet: Outlet, from: Instant, until: Instant) => Level;
  /** Highest stack level beside our profiles. Null: no profile. */
  readonly highest: () => number | null;
}

/** A station ends a remote start without a vehicle after its ConnectionTimeOut, which is minutes at most. */
const STARTS_WITHIN = minutes(10);

/** A profile of a session that has no connector yet. */
const isOpen = ({ purpose, connector }: ForeignProfile): boolean =>
  purpose === "transaction" && connector === 0;

/** False: its session did not begin in time, so the charger has dropped it. */
const holdsAt = ({ startsBy }: ForeignProfile, at: Instant): boolean => startsBy == null || at < startsBy;

/** True: the session of this token may be the one of the profile. Not every session has a token. */
const mayBeFor = ({ token: wanted }: ForeignProfile, token: string | null): boolean =>
  wanted == null || token === null || wanted === token;

/** `begunAt`: connector of the session of a remote start that is under way already. Null: none is. */
type Change = (before: readonly ForeignProfile[], begunAt: number | null) => readonly ForeignProfile[];

/**
 * Charging profiles of the upstream in one station. Within one purpose the higher stack level wins in the charger, not the
 * lower limit. So our profile has the highest level, and its limit is the lower one of both.
 */
export class ForeignProfiles {
  readonly #store: RelayStore | null;
  readonly #station: string;
  readonly #log: Logger;
  readonly #now: () => Instant;
  #all: readonly ForeignProfile[];
  /** Changes by requests that the charger has not answered yet. */
  readonly #pending = new Map<string, Change>();

  constructor(store: RelayStore | null, station: string, log: Logger, now: () => Instant) {
    this.#store = store;
    this.#station = station;
    this.#log = log;
    this.#now = now;
    this.#all = store?.profiles(station) ?? [];
  }

  /** The request for the charger. `most`: highest stack level below ours. Null: every one is. */
  onRequest(request: Call, most: number | null): Call {
    const { action } = request;
    const isSet = action === "SetChargingProfile" || action === "ClearChargingProfile";
    if (!isSet && profileIn(request) === null) return request;
    const call = most === null || most < 0 ? request : withStackLevel(request, most);
    const added = profileIn(call);
    const change: Change = (before, begunAt) => {
      if (action === "ClearChargingProfile") return cleared(before, call.payload);
      if (added === null) return before;
      if (isSet) return withProfile(before, added);
      if (begunAt !== null) return withProfile(before, { ...added, connector: added.connector || begunAt });
      return withProfile(before, { ...added, startsBy: this.#now() + STARTS_WITHIN });
    };
    this.#pending.set(call.id, change);
    return call;
  }

  /**
   * True: the charger has changed its profiles, and one of ours may be gone. An answer after its deadline counts: the
   * charger has carried the request out. `connectorOf`: the connector of a session, 0 where that is not known.
   */
  onAnswer(
    frame: Extract<Frame, { kind: "result" | "error" }>,
    connectorOf: (transaction: string) => number,
  ): boolean {
    const change = this.#pending.get(frame.id);
    this.#pending.delete(frame.id);
    if (change === undefined || frame.kind === "error" || frame.payload["status"] !== "Accepted")
      return false;
    // 2.0.1 names a session that began when its vehicle was plugged in. It sends no other start.
    const { transactionId: begun } = frame.payload;
    this.#replace(change(this.#all, typeof begun === "string" ? connectorOf(begun) : null));
    return true;
  }

  /** The station has disconnected. */
  onAway(): void {
    this.#pending.clear();
  }

  /**
   * A remote start may leave the connector to the vehicle. Its profile is one of the session that begins. `at`: the begin,
   * which a station that was cut off reports later. `token`: of the vehicle. Null: not known.
   */
  onStarted(connector: number, at: Instant, token: string | null): void {
    const begins = (each: ForeignProfile): boolean =>
      (isOpen(each) && mayBeFor(each, token)) || (each.startsBy != null && each.connector === connector);
    if (!this.#all.some(begins)) return;
    const left = this.#all.filter((each) => holdsAt(each, at));
    this.#replace(left.map((each) => (begins(each) ? { ...each, connector, startsBy: null } : each)));
  }

  /** Profiles of a transaction end with it. */
  onStopped(connector: number): void {
    const left = this.#all.filter(
      ({ purpose, connector: of }) => purpose !== "transaction" || of !== connector,
    );
    if (left.length !== this.#all.length) this.#replace(left);
  }

  /** Limits that compete with ours at a connector. `isWholeStation`: ours is one of the whole station. */
  beside(connector: number, isWholeStation: boolean): OthersLimits {
    const of = (wanted: ForeignProfile["purpose"]): readonly ForeignProfile[] =>
      this.#all.filter(
        (each) =>
          each.purpose === wanted &&
          holdsAt(each, this.#now()) &&
          (wanted === "station" || each.connector === connector || each.connector === 0),
      );
    const competing = () => (isWholeStation ? of("station") : [...of("transaction"), ...of("default")]);
    return {
      highest: () => {
        const levels = competing().map(({ stackLevel }) => stackLevel);
        return levels.length === 0 ? null : Math.max(0, ...levels);
      },
      cap: (level, outlet, from, until) => {
        const lowest = (purpose: ForeignProfile["purpose"]): number | null =>
          lowestOf(of(purpose), { from, until }, (value, unit) => amperesOf({ value, unit }, outlet));
        // A profile of the transaction replaces the default one.
        const limit = isWholeStation ? lowest("station") : (lowest("transaction") ?? lowest("default"));
        return limit === null ? level : atMost(level, limit, outlet);
      },
    };
  }

  #replace(all: readonly ForeignProfile[]): void {
    this.#all = all;
    try {
      this.#store?.keepProfiles(this.#station, all);
    } catch (error) {
      // The next change stores the whole list.
      const details = { station: this.#station, reason: messageOf(error) };
      this.#log.error(
        details,
        "profiles of the upstream cannot be stored: a restart of the bridge forgets them",
      );
    }
  }
}
