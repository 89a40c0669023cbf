/** A part of the charge within which the vehicle draws at most so much. */
export interface Band {
  /** Energy from now to the end of this part, in Wh. */
  readonly untilWh: number;
  readonly mostW: number;
}

/** State of charge from which a battery charges slower, in percent. */
export const KNEE = 80;
/** Part of the full power that is left at 100 %. */
export const AT_THE_END = 0.2;
/** Percent of a band. */
const STEP = 2;

/** The battery of a vehicle, and what it draws. */
export interface Battery {
  /** Percent. Null: not known. */
  readonly soc: number | null;
  /** Null: not known. */
  readonly capacityWh: number | null;
  /** Measured power in W. Null: not known. */
  readonly powerW: number | null;
  /** Largest power that charger and vehicle allow, in W. */
  readonly mostW: number;
}

/** Part of the full power that is taken to be left at a state of charge. */
const leftAt = (soc: number): number =>
  soc <= KNEE ? 1 : 1 - (1 - AT_THE_END) * ((Math.min(soc, 100) - KNEE) / (100 - KNEE));

/**
 * The slower end of a charge. A vehicle that draws more than that now keeps its lead. Empty: the state of charge or the
 * capacity is not known, or nothing limits the power.
 *
 *   W |-----------.
 *     |            `-.         80 %: all of it
 *     |               `-.     100 %: a fifth
 *     +------------------- %
 */
export function taper({ soc, capacityWh, powerW, mostW }: Battery): readonly Band[] {
  if (soc === null || capacityWh === null || !Number.isFinite(mostW)) return [];
  const lead = Math.max(1, (powerW ?? 0) / (leftAt(soc) * mostW));
  const bands: Band[] = [];
  for (let from = Math.max(soc, KNEE); from < 100; from += STEP) {
    const until = Math.min(from + STEP, 100);
    if (from === KNEE && soc < KNEE) bands.push({ untilWh: ((KNEE - soc) / 100) * capacityWh, mostW });
    bands.push({
      untilWh: ((until - soc) / 100) * capacityWh,
      mostW: Math.min(mostW, lead * mostW * leftAt((from + until) / 2)),
    });
  }
  return bands;
}

/** Time that the slower end costs a vehicle that gets all of `fullW`, in hours, for this energy from now. */
export function slowerBy(bands: readonly Band[], wh: number, fullW: number): number {
  let [hours, done] = [0, 0];
  for (const { untilWh, mostW } of bands) {
    const part = Math.max(0, Math.min(untilWh, wh) - done);
    if (mostW < fullW) hours += part / mostW - part / fullW;
    done = Math.max(done, untilWh);
  }
  return hours;
}
