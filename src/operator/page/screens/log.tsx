import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { AuditRow } from "../apiAnswers.ts";
import { exactTime, nearTime } from "../format.ts";
import {
  check,
  exported,
  filter,
  isAtBegin,
  isLoading,
  keyOf,
  load,
  problem,
  reload,
  rows,
  save,
  shown,
  verify,
} from "../logRecord.ts";
import { Glyph, Title } from "../parts.tsx";
import { eventPath, vehiclePath } from "../router.ts";
import { lastSeq, now, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.log;

/** Windows in which a row has two lines, as in the style sheet. */
const NARROW = "(max-width: 47.5em)";
/** Height of a closed row, px. Closed rows are equal, so that a long list can be scrolled without being built. */
const rowHeight = (): number =>
  (matchMedia(NARROW).matches ? 4 : 2.75) *
  Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
/** Rows that are built above and below the visible ones. */
const MARGIN = 12;

const opened = signal<string | null>(null);

const FORMATS = ["CSV", "JSON"] as const;

/** S6: the record, the newest row first. */
export function Log() {
  useEffect(() => {
    reload();
  }, []);
  const isFiltered = filter.value.event.trim() !== "" || filter.value.charger.trim() !== "";
  const fresh = isFiltered ? 0 : lastSeq.value - (rows.value[0]?.seq ?? lastSeq.value);
  return (
    <>
      <Title aside={<span class="count">{words.rows(shown.value.length, rows.value.length)}</span>}>
        {words.title}
      </Title>
      <Filters />
      <div class="log-acts">
        <button type="button" aria-disabled={check.value === "running"} onClick={() => void verify()}>
          {words.check}
        </button>
        {FORMATS.map((format) => (
          <button
            key={format}
            type="button"
            aria-disabled={exported.value !== null}
            onClick={() => exported.value === null && void save(format)}
          >
            {words.export(format)}
          </button>
        ))}
        {fresh > 0 && (
          <button type="button" onClick={reload}>
            {words.fresh(fresh)}
          </button>
        )}
        <Checked />
      </div>
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <Rows />
    </>
  );
}

/** Result of the last check, and progress of an export. */
function Checked() {
  const { value } = check;
  return (
    <p class="log-check" role="status">
      {exported.value !== null && words.exporting(exported.value)}
      {value === "running" && words.checking}
      {value !== null && value !== "running" && (
        <span class={`state ${value.result.ok ? "good" : "bad"}`}>
          <Glyph shape={value.result.ok ? "dot" : "cross"} />
          <span>
            {value.result.ok
              ? words.whole(value.result.rows ?? 0, exactTime(zone.value, value.at))
              : words.broken(value.result.reason ?? "")}
          </span>
        </span>
      )}
    </p>
  );
}

const set = (changes: Partial<typeof filter.value>): void => {
  filter.value = { ...filter.value, ...changes };
};

function Filters() {
  const { kind, event, charger, text } = filter.value;
  return (
    <form
      class="filters"
      onSubmit={(submit) => {
        submit.preventDefault();
        reload();
      }}
    >
      <label>
        {words.kind}
        <select value={kind} onChange={({ currentTarget }) => set({ kind: currentTarget.value })}>
          <option value="">{words.every}</option>
          {Object.entries(words.kinds).map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label>
        {words.event}
        <input value={event} onInput={(e) => set({ event: e.currentTarget.value })} onChange={reload} />
      </label>
      <label>
        {words.charger}
        <input value={charger} onInput={(e) => set({ charger: e.currentTarget.value })} onChange={reload} />
      </label>
      <label>
        {words.text}
        <input
          type="search"
          placeholder={words.textHint}
          value={text}
          onInput={(e) => set({ text: e.currentTarget.value })}
        />
      </label>
    </form>
  );
}

/** Position of the list in the window, px. */
const scroll = signal({ top: 0, height: 800, row: 44 });

/** The line below the rows. */
function footer(count: number): string {
  if (isLoading.value) return words.loading;
  if (!isAtBegin.value) return "";
  return count === 0 ? words.none : words.begin;
}

/** Only the rows in view are built. More are loaded when the end comes near. */
function Rows() {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const measure = (): void => {
      const top = list.current?.getBoundingClientRect().top ?? 0;
      scroll.value = { top: Math.max(0, -top), height: innerHeight, row: rowHeight() };
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, []);
  const all = shown.value;
  const { top, height, row: each } = scroll.value;
  const first = Math.max(0, Math.floor(top / each) - MARGIN);
  const last = Math.min(all.length, Math.ceil((top + height) / each) + MARGIN);
  const needsMore = !isAtBegin.value && last >= all.length - 2 * MARGIN;
  useEffect(() => {
    if (needsMore && !isLoading.value && problem.value === null) void load(false);
  });
  return (
    // A list has items: while the first rows load there are none.
    <div ref={list} class="panel log" role={last > first ? "list" : "group"} aria-label={words.list}>
      <p class="quiet print-only">{words.inView}</p>
      <div class="log-gap" style={{ height: `${first * each}px` }} />
      {all.slice(first, last).map((row) => (
        <Row key={keyOf(row)} row={row} />
      ))}
      <div class="log-gap" style={{ height: `${(all.length - last) * each}px` }} />
      <p class="quiet">{footer(all.length)}</p>
    </div>
  );
}

function Row({ row }: { readonly row: AuditRow }) {
  const key = keyOf(row);
  const isOpen = opened.value === key;
  return (
    <div class={`log-row kind-${row.kind}`} role="listitem">
      <button
        type="button"
        class="log-line"
        aria-expanded={isOpen}
        onClick={() => (opened.value = isOpen ? null : key)}
      >
        <time dateTime={row.at}>{momentOf(row.at)}</time>
        <span class="log-kind">{words.kinds[row.kind] ?? row.kind}</span>
        <span class="log-words">{row.words}</span>
      </button>
      {isOpen && (
        <div class="log-raw">
          <p>{row.words}</p>
          <p>
            {row.event !== null && <a href={eventPath(row.event)}>{row.event}</a>}{" "}
            {row.vehicle !== null && <a href={vehiclePath(row.vehicle)}>{row.vehicle}</a>}
          </p>
          <h3>{words.raw}</h3>
          <pre tabIndex={0}>{JSON.stringify(row, null, 2)}</pre>
        </div>
      )}
    </div>
  );
}

const momentOf = (at: string): string => {
  const moment = Date.parse(at);
  const near = nearTime(zone.value, moment, now.value);
  const exact = exactTime(zone.value, moment);
  return near.length > 5 ? `${near.slice(0, -5)}${exact}` : exact;
};
