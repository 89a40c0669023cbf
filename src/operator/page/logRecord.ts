import { computed, signal } from "@preact/signals";

import { get, Refused, saveFile } from "./api.ts";
import type { AuditRow, RecordCheck } from "./apiAnswers.ts";
import { now } from "./store.ts";
import { t } from "./texts.ts";

const words = t.log;

/** Rows of one request. */
const PAGE = 300;
/** Rows that one export holds at most. */
const MOST_EXPORTED = 100_000;

export const rows = signal<readonly AuditRow[]>([]);
export const isAtBegin = signal(false);
export const isLoading = signal(false);
export const problem = signal<string | null>(null);
export const filter = signal({ kind: "", event: "", charger: "", text: "" });
export const check = signal<{ readonly at: number; readonly result: RecordCheck } | "running" | null>(null);
export const exported = signal<number | null>(null);

/** Acknowledgements may share a row of the record, and its number. */
export const keyOf = ({ seq, command, at }: AuditRow): string => `${seq} ${command} ${at}`;

/** The requests filter by event and charger; the page filters the loaded rows by the rest. */
export const shown = computed(() => {
  const { kind, text } = filter.value;
  const wanted = text.trim().toLowerCase();
  if (kind === "" && wanted === "") return rows.value;
  return rows.value.filter(
    (row) =>
      (kind === "" || row.kind === kind) &&
      (wanted === "" ||
        `${row.words} ${row.vehicle ?? ""} ${row.command ?? ""}`.toLowerCase().includes(wanted)),
  );
});

function pagePath(before: number | null): string {
  const { event, charger } = filter.value;
  const query = new URLSearchParams({ newest: "true", limit: String(PAGE) });
  if (before !== null) query.set("before", String(before));
  if (event.trim() !== "") query.set("event", event.trim());
  if (charger.trim() !== "") query.set("charger", charger.trim());
  return `audit?${query}`;
}

/** Number of the current query. An answer to an earlier one is dropped. */
let generation = 0;

export async function load(fromStart: boolean): Promise<void> {
  if (isLoading.value && !fromStart) return;
  if (fromStart) {
    generation += 1;
    rows.value = [];
    isAtBegin.value = false;
  }
  const mine = generation;
  isLoading.value = true;
  try {
    const last = rows.value.at(-1);
    // The last number is asked for once more: several entries may share it.
    const page = await get<readonly AuditRow[]>(pagePath(last === undefined ? null : last.seq + 1));
    if (mine !== generation) return;
    const known = new Set(rows.value.filter(({ seq }) => seq === last?.seq).map(keyOf));
    const fresh = page.filter((row) => !known.has(keyOf(row)));
    rows.value = [...rows.value, ...fresh];
    isAtBegin.value = fresh.length === 0;
    problem.value = null;
  } catch (error) {
    if (mine === generation) problem.value = error instanceof Refused ? error.message : String(error);
  } finally {
    if (mine === generation) isLoading.value = false;
  }
}

export const reload = (): void => void load(true);

export async function verify(): Promise<void> {
  check.value = "running";
  try {
    check.value = { at: now.value, result: await get<RecordCheck>("audit/check") };
  } catch (error) {
    check.value = null;
    problem.value = error instanceof Refused ? error.message : String(error);
  }
}

/** A cell of CSV. A text that a spreadsheet would run as a formula begins with an apostrophe. */
const cell = (value: string | number | null): string => {
  const text = value === null ? "" : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

function csvOf(all: readonly AuditRow[]): string {
  const lines = all.map(({ seq, at, kind, charger, vehicle, event, command, words: said, hash }) =>
    [seq, at, kind, charger, vehicle, event, command, said, hash].map(cell).join(","),
  );
  return `${words.columns}\n${lines.join("\n")}\n`;
}

/** Saves every row of the filter, also those that are not loaded yet. */
export async function save(format: "CSV" | "JSON"): Promise<void> {
  exported.value = 0;
  try {
    while (!isAtBegin.value && rows.value.length < MOST_EXPORTED && problem.value === null) {
      await load(false);
      exported.value = rows.value.length;
    }
    const name = `record-${new Date(now.value).toISOString().slice(0, 16).replace(":", "")}`;
    if (format === "CSV") saveFile(csvOf(shown.value), `${name}.csv`, "text/csv");
    else saveFile(`${JSON.stringify(shown.value)}\n`, `${name}.json`, "application/json");
  } finally {
    exported.value = null;
  }
}
