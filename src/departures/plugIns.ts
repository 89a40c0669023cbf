import type { PlugIn } from "../domain/departure.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { type ChargerId, type Instant, later, type VehicleId } from "../domain/units.ts";

/** Facts about the vehicle that is plugged in at a charger. */
export interface PluggedIn {
  readonly vehicle: VehicleId | null;
  /** True: a person named the vehicle. */
  readonly isNamed: boolean;
  /** Null: before the first message since the start. */
  readonly since: Instant | null;
  /** Register of the charger at the plug-in. Null: not known. */
  readonly fromWh: number | null;
  /** State of charge of the vehicle before, which a charger may go on reporting. Null: none. */
  readonly formerSoc: number | null;
  /** Power that the vehicle draws although more is allowed, in W. Null: it draws what is allowed. */
  readonly drawsW: number | null;
  /** An unplug up to this time is one before the session, also where the charger reports it late. */
  readonly emptyUntil: Instant;
}

/** Telemetry of one charger, with the vehicle on it. */
export interface Sighting {
  readonly vehicle: VehicleId | null;
  /** Source of the vehicle's identity. Null: neither, such as for a fixed vehicle. */
  readonly namedBy: "person" | "telemetry" | null;
  readonly telemetry: Telemetry;
  /** Time of the measurement. */
  readonly at: Instant;
  /** Last report that nothing is plugged in. Null: none. */
  readonly unpluggedAt: Instant | null;
}

/** True: not plugged in. Null: the charger reports no state. */
export function isUnplugged({ state }: Telemetry): boolean | null {
  return state === undefined || state === "unknown" ? null : state === "unplugged";
}

/** The sessions of chargers: what each has measured since a vehicle was plugged in. */
export class PlugIns {
  readonly #pluggedIn = new Map<ChargerId, PluggedIn>();
  /** Last readings of chargers without a vehicle. */
  readonly #empty = new Map<ChargerId, Telemetry>();
  readonly #stored: Map<ChargerId, PlugIn>;

  /** `stored`: registers at the plug-ins before the start. */
  constructor(stored: ReadonlyMap<ChargerId, PlugIn> = new Map()) {
    this.#stored = new Map(stored);
  }

  /** Null: nothing is plugged in, or that is not known. */
  at(charger: ChargerId): PluggedIn | null {
    return this.#pluggedIn.get(charger) ?? null;
  }

  /** Applies what a charger reports. Returns the plug-in to store; null: to forget; undefined: nothing changed. */
  note(charger: ChargerId, sighting: Sighting): PlugIn | null | undefined {
    const { vehicle, namedBy, telemetry, at, unpluggedAt } = sighting;
    const unplugged = isUnplugged(telemetry);
    if (unplugged === null) return undefined;
    const before = this.#pluggedIn.get(charger);
    if (unplugged) {
      this.#empty.set(charger, telemetry);
      this.#pluggedIn.delete(charger);
      return this.#stored.delete(charger) ? null : undefined;
    }
    const isNamed = namedBy === "person";
    if (before !== undefined && isSameSession(before, sighting)) {
      this.#pluggedIn.set(charger, { ...before, vehicle, isNamed });
      return this.#renamed(charger, before, vehicle);
    }
    const empty = this.#empty.get(charger);
    this.#empty.delete(charger);
    // Another vehicle without an unplugged state in between: its register starts with this message.
    const previous = before === undefined ? empty : telemetry;
    const stored = previous === undefined ? this.#storedFor(charger, sighting) : null;
    const fromWh = previous === undefined ? (stored?.energyWh ?? null) : (previous.energyWh ?? null);
    const begunBy = stored?.at ?? at;
    this.#pluggedIn.set(charger, {
      vehicle,
      isNamed,
      since: stored?.at ?? (previous === undefined ? null : at),
      fromWh,
      formerSoc: previous?.soc ?? null,
      drawsW: null,
      emptyUntil: later(unpluggedAt ?? begunBy, begunBy),
    });
    // A charger with a counter of the session needs no register.
    if (fromWh === null || stored !== null || telemetry.sessionWh !== undefined) return undefined;
    const plugIn = { vehicle, at, energyWh: fromWh };
    this.#stored.set(charger, plugIn);
    return plugIn;
  }

  /** Notes the power that the vehicle draws although more is allowed. */
  noteDraw(charger: ChargerId, drawsW: number | null): void {
    const before = this.#pluggedIn.get(charger);
    if (before !== undefined && before.drawsW !== drawsW) this.#pluggedIn.set(charger, { ...before, drawsW });
  }

  /** The stored plug-in of this session, where it is now that of another vehicle. Undefined: nothing is to be stored. */
  #renamed(charger: ChargerId, { since }: PluggedIn, vehicle: VehicleId | null): PlugIn | undefined {
    const stored = this.#stored.get(charger);
    if (stored === undefined || stored.at !== since) return undefined;
    if (stored.vehicle === null || stored.vehicle === vehicle) return undefined;
    const plugIn = { ...stored, vehicle };
    this.#stored.set(charger, plugIn);
    return plugIn;
  }

  /** The stored plug-in, if the same vehicle still is there. Null: not known. */
  #storedFor(charger: ChargerId, { vehicle, telemetry, unpluggedAt }: Sighting): PlugIn | null {
    const stored = this.#stored.get(charger);
    if (stored === undefined || (unpluggedAt !== null && unpluggedAt > stored.at)) return null;
    const isSame = stored.vehicle === null || stored.vehicle === vehicle;
    const { energyWh = stored.energyWh } = telemetry;
    return isSame && energyWh >= stored.energyWh ? stored : null;
  }
}

/**
 * True: the same vehicle is plugged in as before. A person who names another one, or takes that back, corrects who it was
 * from the beginning. A charger that reports another one has had a quick change.
 */
const isSameSession = (before: PluggedIn, { vehicle, namedBy, unpluggedAt }: Sighting): boolean =>
  // An unplug and the next plug-in may come within one interval of the caller.
  (unpluggedAt === null || unpluggedAt <= before.emptyUntil) &&
  (before.vehicle === vehicle ||
    before.vehicle === null ||
    namedBy === "person" ||
    (before.isNamed && namedBy === null));

/** More energy in one session is an error of the meter, in Wh. */
const MOST_SESSION_WH = 10_000_000;

/** Energy since the plug-in, in Wh. Null: not known. */
export function sessionEnergy({ sessionWh, energyWh }: Telemetry, { fromWh }: PluggedIn): number | null {
  const byRegister = fromWh === null || energyWh === undefined ? -1 : energyWh - fromWh;
  const wh = sessionWh === undefined ? byRegister : Math.max(0, sessionWh);
  return wh >= 0 && wh <= MOST_SESSION_WH ? wh : null;
}

/**
 * State of charge of the vehicle, in percent. Null: not known, or perhaps of the vehicle before. Some vehicles report
 * an unknown one as 255 or -1.
 */
export const sessionSoc = ({ soc }: Telemetry, { formerSoc }: PluggedIn): number | null =>
  soc === undefined || soc === formerSoc || soc < 0 || soc > 100 ? null : soc;
