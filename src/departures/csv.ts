import type { Need } from "../domain/departure.ts";

/** The header of a file of departures. */
export const CSV_HEADER = ["vehicle", "at", "energyKwh", "soc"] as const;
/** The member of the API for the same energy. */
const COLUMNS = [...CSV_HEADER, "energyWh"] as const;

type Column = (typeof COLUMNS)[number];

/** A mistake in a file, by line and column. */
interface CsvMistake {
  readonly path: string;
  readonly found: string;
  readonly expected: string;
}

/** A line of a file of departures. */
interface CsvDeparture {
  /** Number of the line, from 1. */
  readonly line: number;
  readonly vehicle: string;
  readonly at: string;
  readonly need: Need;
}

/** The departures of a file that are written as they should be, and the mistakes in the others. */
interface CsvRead {
  readonly departures: readonly CsvDeparture[];
  readonly mistakes: readonly CsvMistake[];
}

/** A file holds at most so many departures. */
const MOST_LINES = 100_000;
/** Largest energy of a departure, as the API takes it. */
const MOST_KWH = 10_000;
/** Mistakes in an answer: a wrong column would repeat one for every line. */
export const MOST_MISTAKES = 100;

/** Place of a value in a file, as an answer names it. */
export const placeOf = (line: number, column: Column): string => `line ${line}, ${column}`;

/**
 * Reads departures from CSV with the header `vehicle,at,energyKwh,soc`. Columns may stand in any order, separated by
 * commas or semicolons. A column of a need may be absent. `energyWh` may stand for `energyKwh`.
 */
export function readDepartures(text: string): CsvRead {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  const header = lines.slice(0, 1).join("");
  const separator = header.includes(";") ? ";" : ",";
  const columns = cellsOf(header, separator)?.map((name) => name.trim().toLowerCase()) ?? [];
  const known = COLUMNS.map((name) => name.toLowerCase());
  const isHeader =
    new Set(columns).size === columns.length &&
    columns.every((name) => known.includes(name)) &&
    columns.includes("vehicle") &&
    columns.includes("at") &&
    columns.length > 2;
  const expected = `the header ${CSV_HEADER.join(",")}. One of energyKwh and soc may be absent, and energyWh may stand for energyKwh`;
  if (!isHeader) return { departures: [], mistakes: [{ path: "line 1", found: cut(header), expected }] };
  if (lines.length - 1 > MOST_LINES)
    return {
      departures: [],
      mistakes: [{ path: "", found: `${lines.length - 1} lines`, expected: `at most ${MOST_LINES}` }],
    };
  const mistakes: CsvMistake[] = [];
  const departures: CsvDeparture[] = [];
  for (const [index, content] of lines.entries()) {
    if (index === 0 || content.trim() === "") continue;
    const line = index + 1;
    const cells = cellsOf(content, separator);
    if (cells === null || cells.length !== columns.length) {
      const wanted = `${columns.length} values separated by "${separator}", as in the header`;
      mistakes.push({ path: `line ${line}`, found: cut(content), expected: wanted });
      continue;
    }
    const cell = (column: Column): string => (cells[columns.indexOf(column.toLowerCase())] ?? "").trim();
    const departure = departureIn(line, cell, mistakes);
    if (departure !== null) departures.push(departure);
  }
  if (departures.length === 0 && mistakes.length === 0)
    mistakes.push({ path: "line 2", found: "", expected: "at least one departure" });
  return { departures, mistakes };
}

function departureIn(
  line: number,
  cell: (column: Column) => string,
  mistakes: CsvMistake[],
): CsvDeparture | null {
  const before = mistakes.length;
  const [vehicle, at] = [cell("vehicle"), cell("at")];
  const wrong = (column: Column, expected: string): void => {
    mistakes.push({ path: placeOf(line, column), found: cut(cell(column)), expected });
  };
  if (vehicle === "") wrong("vehicle", "the id or name of a vehicle");
  if (at === "") wrong("at", AT);
  const [kwh, wh, soc] = [numberIn(cell("energyKwh")), numberIn(cell("energyWh")), numberIn(cell("soc"))];
  let need: Need | null = null;
  if (kwh !== null && !(kwh > 0 && kwh <= MOST_KWH)) wrong("energyKwh", "kWh, more than 0, e.g. 18");
  else if (wh !== null && !(wh > 0 && wh <= MOST_KWH * 1000))
    wrong("energyWh", "Wh, more than 0, e.g. 18000");
  else if (soc !== null && !(soc >= 1 && soc <= 100)) wrong("soc", "percent from 1 to 100, e.g. 80");
  else if ([kwh, wh, soc].filter((given) => given !== null).length !== 1)
    wrong("energyKwh", "exactly one of energyKwh, energyWh and soc");
  else if (soc !== null) need = { kind: "soc", percent: soc };
  else need = { kind: "energy", wh: wholeWh(wh ?? Number(kwh) * 1000) };
  return need === null || mistakes.length > before ? null : { line, vehicle, at, need };
}

/** An energy of a departure in whole Wh. At least 1: a vehicle that needs 0 would be ready. */
export const wholeWh = (wh: number): number => Math.max(1, Math.round(wh));

/** A time as a departure may give it. */
export const AT = "a time of day of the site, e.g. 05:40, or a moment, e.g. 2026-11-24T04:40:00Z";

/** Null: empty. NaN: no number. A comma may separate the decimals, where semicolons separate the values. */
function numberIn(text: string): number | null {
  if (text === "") return null;
  return /^\d+([.,]\d+)?$/.test(text) ? Number(text.replace(",", ".")) : Number.NaN;
}

/** The values of a line, as RFC 4180 quotes them. Null: a quote is not closed. */
function cellsOf(line: string, separator: string): readonly string[] | null {
  const cells: string[] = [];
  let rest = line;
  for (;;) {
    const quoted = /^\s*"(?:[^"]|"")*"\s*/.exec(rest);
    const end = quoted === null ? rest.indexOf(separator) : quoted[0].length;
    if (quoted === null && /^\s*"/.test(rest)) return null;
    const isLast = quoted === null ? end < 0 : rest.length === end;
    if (quoted !== null && !isLast && rest[end] !== separator) return null;
    cells.push(
      quoted === null
        ? isLast
          ? rest
          : rest.slice(0, end)
        : quoted[0].trim().slice(1, -1).replaceAll('""', '"'),
    );
    if (isLast) return cells;
    rest = rest.slice(end + 1);
  }
}

const cut = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}...` : text);
