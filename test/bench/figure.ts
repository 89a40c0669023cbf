/** One measured number, as `npm run bench` prints it: one JSON line each. */
interface Figure {
  readonly name: string;
  readonly value: number;
  /** "ms", "bytes", "%", ... */
  readonly unit: string;
  /** The same of the bare program, in the same unit; null: there is nothing to hold it against. */
  readonly floor: number | null;
  readonly ratio: number | null;
}

/** What a measurement has to say and where: figures on stdout, progress on stderr. */
export interface Report {
  readonly figure: (name: string, unit: string, value: number, floor?: number) => void;
  readonly progress: (words: string) => void;
}

/** Everything that one figure (or a few of one kind) needs: starts it, measures, says it, stops it. */
export type Measurement = (report: Report) => Promise<void>;

/** Figures to three digits after the point: more is noise. */
const rounded = (value: number): number => Math.round(value * 1000) / 1000;

/** Writes figures to stdout and progress to stderr. */
export const report: Report = {
  figure(name, unit, value, floor) {
    const figure: Figure = {
      name,
      value: rounded(value),
      unit,
      floor: floor === undefined ? null : rounded(floor),
      ratio: floor === undefined ? null : rounded(value / floor),
    };
    process.stdout.write(`${JSON.stringify(figure)}\n`);
  },
  progress(words) {
    process.stderr.write(`${words}\n`);
  },
};

/** The value below which the fraction of them lies; NaN of none. */
export function quantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(fraction * sorted.length))] ?? NaN;
}

/** The middle one, or the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  const [low, high] = [sorted[sorted.length % 2 === 0 ? half - 1 : half], sorted[half]];
  return low === undefined || high === undefined ? NaN : (low + high) / 2;
}
