import { z } from "zod";

import { after, type Instant, instant, minutes, seconds } from "../../domain/units.ts";

/** Meter values of both versions. Makes differ in measurands, units, phases and contexts. */

/** Readings of one message, newest value of each. Absent: not in the message. */
export interface Readings {
  readonly powerW?: number;
  readonly currentsA?: readonly number[];
  readonly voltagesV?: readonly number[];
  readonly energyWh?: number;
  readonly soc?: number;
  /** Limit that the charger offers the vehicle, A per phase. */
  readonly limitA?: number;
  /** `limitA` in W. */
  readonly limitW?: number;
}

/** The energy register as a measure of power, for makes that report neither power nor current. */
export interface Register {
  /** The charger has reported power or current. */
  readonly isNeedless: boolean;
  /** Begin of the present mean. Null: the next reading. */
  readonly begin: { readonly at: Instant; readonly wh: number } | null;
  /** No mean begins before: the vehicle still changes to a new level. */
  readonly notBefore: Instant;
  /** Step of the register by the values so far, Wh. */
  readonly step: number;
}

export const UNKNOWN_REGISTER: Register = {
  isNeedless: false,
  begin: null,
  notBefore: instant(0),
  step: 100,
};

/** Time of a mean for each Wh of the register's step, ms. The mean is then right to 80 W. */
const MEAN_OVER = 45_000;
/** A mean over more than this shows nothing about the present. */
const LONGEST_MEAN = minutes(20);
/** Time that a vehicle may take to change to a new level. */
const CHANGES_WITHIN = seconds(20);

const stepOf = (wh: number): number => (wh % 10 !== 0 ? 1 : wh % 100 === 0 ? 100 : 10);

/** The readings of a message, with the mean power since the begin where the register is all that is reported. */
export function withMeanPower(
  register: Register,
  readings: Readings,
  at: Instant,
): { readonly register: Register; readonly readings: Readings } {
  const { energyWh: wh, powerW, currentsA } = readings;
  if (powerW !== undefined || currentsA !== undefined)
    return { register: { ...register, isNeedless: true }, readings };
  if (register.isNeedless || wh === undefined || at < register.notBefore) return { register, readings };
  const step = Math.min(register.step, stepOf(wh));
  const begin = register.begin ?? { at, wh };
  const span = at - begin.at;
  // A register that goes back was replaced, and a clock was corrected.
  const isUseless = wh < begin.wh || span < 0 || span > LONGEST_MEAN;
  if (!isUseless && span < step * MEAN_OVER) return { register: { ...register, step, begin }, readings };
  const mean = Math.round(((wh - begin.wh) * 3_600_000) / span);
  return {
    register: { ...register, step, begin: { at, wh } },
    readings: isUseless ? readings : { ...readings, powerW: mean },
  };
}

/** The register at a new level. A mean over both would be of neither. */
export const atNewLevel = (register: Register, now: Instant): Register => ({
  ...register,
  begin: null,
  notBefore: after(now, CHANGES_WITHIN),
});

/** A sample of a meter, in the spelling of OCPP. */
export interface SampledValue {
  readonly value: number;
  readonly measurand: string;
  readonly unit: string | null;
  readonly phase: string | null;
  readonly context: string | null;
  readonly location: string | null;
}

/** Some makes write a comma, or add the unit. */
const numberOf = (value: string | number): number => {
  if (typeof value === "number") return value;
  const [, digits] = /^\s*([+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?)\s*[A-Za-z%]*\s*$/.exec(value) ?? [];
  return digits === undefined ? Number.NaN : Number(digits.replace(",", "."));
};

/** Some makes send "" for a member that they do not use. */
const text = z
  .string()
  .max(64)
  .nullish()
  .catch(null)
  .transform((value) => (value === "" ? null : value));

/** A sampled value of 1.6 and of 2.0.1. */
const sampled = z
  .object({
    value: z
      .union([z.string().max(64), z.number()])
      .transform(numberOf)
      .catch(Number.NaN),
    measurand: text,
    unit: text,
    unitOfMeasure: z
      .object({ unit: text, multiplier: z.number().min(-12).max(12).nullish().catch(null) })
      .nullish()
      .catch(null),
    phase: text,
    context: text,
    location: text,
    format: text,
  })
  .transform(({ value, measurand, unit, unitOfMeasure, phase, context, location, format }): SampledValue => ({
    value: format === "SignedData" ? Number.NaN : value * 10 ** (unitOfMeasure?.multiplier ?? 0),
    measurand: measurand ?? "Energy.Active.Import.Register",
    unit: unit ?? unitOfMeasure?.unit ?? null,
    phase: phase ?? null,
    context: context ?? null,
    location: location ?? null,
  }));

/** A time without a zone is UTC in OCPP. Null: unreadable. */
export function timeOf(value: unknown): Instant | null {
  if (typeof value !== "string" || value.length > 40) return null;
  const at = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(value) ? value : `${value}Z`);
  return Number.isNaN(at) ? null : instant(at);
}

/** The time in a message by the station's clock, and that of its receipt. */
export interface Stamped {
  readonly at: Instant;
  readonly receivedAt: Instant;
}

/** `isLate`: by equal lags the clock may be late, and the message shows the present. */
export interface Judged extends Stamped {
  readonly isLate: boolean;
}

/** Tolerance of equal lags, ms. Some clocks have whole seconds only. Once a clock is known to be late, a sample may wait. */
const EQUAL_LAG = { first: 1_500, next: 5_000 };
/** Messages that a station kept while it was cut off arrive in a burst. These do not, ms. */
const APART = 2_000;

/** The judgement of meter values by those before them. Those of a late clock lag alike. Null: there were none. */
export function judged(before: Judged | null, { at, receivedAt }: Stamped): Judged {
  if (before === null) return { at, receivedAt, isLate: false };
  const [arrived, passed] = [receivedAt - before.receivedAt, at - before.at];
  const differs = Math.abs(arrived - passed);
  if (before.isLate || differs > EQUAL_LAG.first)
    return { at, receivedAt, isLate: before.isLate && differs <= EQUAL_LAG.next };
  // A sample may come in several messages.
  return arrived < APART ? before : { at, receivedAt, isLate: true };
}

/** Most samples that one message may have. */
const MOST_SAMPLES = 500;

export const meterValues = z
  .array(
    z.object({
      timestamp: z.unknown().optional().transform(timeOf),
      sampledValue: z.array(sampled).max(MOST_SAMPLES).catch([]),
    }),
  )
  .max(MOST_SAMPLES)
  .catch([]);

export type MeterValues = z.infer<typeof meterValues>;

/** W, Wh, A and V of one unit. Undefined: an unknown unit, so the value is not used. */
const FACTORS: Readonly<Record<string, number>> = {
  w: 1,
  kw: 1000,
  mw: 0.001,
  wh: 1,
  kwh: 1000,
  a: 1,
  ma: 0.001,
  v: 1,
  kv: 1000,
  percent: 1,
  "%": 1,
};

const scaled = ({ value, unit }: SampledValue, standard: string): number => {
  const factor = FACTORS[(unit ?? standard).toLowerCase()];
  return factor === undefined ? Number.NaN : value * factor;
};

const isAtOutlet = ({ location, measurand }: SampledValue): boolean =>
  location === null || location === "Outlet" || measurand === "SoC" || location === "Cable";

/** Some makes (Easee) measure the power on the grid side only. Registers of two places are not mixed. */
const isOfInlet = ({ location, measurand }: SampledValue): boolean =>
  location === "Inlet" && !measurand.startsWith("Energy.");

/** L1, L1-N and L1-L2 begin with their phase. */
const phaseIndex = (phase: string | null): number | null => {
  const [, digit] = /^L([123])\b/.exec(phase ?? "") ?? [];
  return digit === undefined ? null : Number(digit) - 1;
};

/** Values of one measurand: the total, and one for each phase. */
interface Spread {
  total: number | null;
  phases: number[];
  isLineToLine: boolean;
}

function spreadOf(values: readonly SampledValue[], standard: string): Spread {
  const spread: Spread = { total: null, phases: [], isLineToLine: false };
  for (const sample of values) {
    const value = scaled(sample, standard);
    if (!Number.isFinite(value) || sample.phase === "N") continue;
    const index = phaseIndex(sample.phase);
    if (index === null) spread.total = value;
    else {
      spread.phases[index] = value;
      if (/^L\d-L\d/.test(sample.phase ?? "")) spread.isLineToLine = true;
    }
  }
  // A gap is a phase that is not used.
  spread.phases = Array.from(spread.phases, (value: number | undefined) => value ?? 0);
  return spread;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Readings of a message, and the time of its newest sample by the station's clock. */
export function readingsOf(all: MeterValues): { readonly readings: Readings; readonly at: Instant | null } {
  const inOrder = all.toSorted((a, b) => (a.timestamp ?? 0) - (b.timestamp ?? 0));
  const samples = inOrder
    .flatMap(({ sampledValue }) => sampledValue)
    .filter(({ context }) => context !== "Transaction.Begin");
  const at = inOrder.findLast(({ timestamp }) => timestamp !== null)?.timestamp ?? null;
  // A later sample of the same measurand and phase replaces the earlier one.
  const of = (measurand: string): readonly SampledValue[] => {
    const found = samples.filter((sample) => sample.measurand === measurand);
    return found.filter(found.some(isAtOutlet) ? isAtOutlet : isOfInlet);
  };
  const power = spreadOf(of("Power.Active.Import"), "W");
  const fedBack = spreadOf(of("Power.Active.Export"), "W");
  const current = spreadOf(of("Current.Import"), "A");
  const voltage = spreadOf(of("Voltage"), "V");
  const energy = spreadOf(of("Energy.Active.Import.Register"), "Wh");
  const soc = spreadOf(of("SoC"), "Percent");
  const offeredA = spreadOf(of("Current.Offered"), "A");
  const offeredW = spreadOf(of("Power.Offered"), "W");
  const [imported, exported] = [totalOf(power), totalOf(fedBack)];
  const powerW = imported === null && exported === null ? null : (imported ?? 0) - (exported ?? 0);
  const currentsA = perPhase(current);
  const voltagesV = perPhase(voltage).map((volts) => (voltage.isLineToLine ? volts / Math.sqrt(3) : volts));
  const limitA = offeredA.total ?? (offeredA.phases.length > 0 ? Math.max(...offeredA.phases) : null);
  const limitW = totalOf(offeredW);
  const energyWh = totalOf(energy);
  return {
    at,
    readings: {
      ...(powerW === null ? {} : { powerW }),
      ...(currentsA.length === 0 ? {} : { currentsA }),
      ...(voltagesV.length === 0 ? {} : { voltagesV }),
      ...(energyWh === null ? {} : { energyWh }),
      ...(soc.total === null ? {} : { soc: soc.total }),
      ...(limitA === null ? {} : { limitA }),
      ...(limitW === null ? {} : { limitW }),
    },
  };
}

const totalOf = ({ total, phases }: Spread): number | null =>
  total ?? (phases.length > 0 ? sum(phases) : null);

const perPhase = ({ total, phases }: Spread): readonly number[] =>
  phases.length > 0 ? phases : total === null ? [] : [total];
