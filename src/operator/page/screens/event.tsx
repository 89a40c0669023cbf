import type { AuditRow, Report } from "../apiAnswers.ts";
import type { SiteEvent } from "../derive.ts";
import { compliance, eventState } from "../derive.ts";
import { useEventRecord, useLoaded } from "../effects.ts";
import { askText, exactTime, kilowatts, revisedText, span } from "../format.ts";
import { OptOut, Proof } from "../actions.tsx";
import { type Bar, type EventRow, firstRows, revisionsIn, vehicleRows } from "../eventRecord.ts";
import { naming } from "../holdWords.ts";
import { Level, Missing, Section, State, Title } from "../parts.tsx";
import { Course, DryRun, Energy, Preview, Reports } from "./eventParts.tsx";
import { linkTo, vehiclePath } from "../router.ts";
import { sitePower } from "../power.ts";
import { brokersAway, chargers, events, now, site, status, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.event;
const exact = (iso: string): string => exactTime(zone.value, Date.parse(iso));

const REFRESH = 10_000;
/** Vehicles that are listed: a table of 20,000 would stop the browser. */
const MOST_LINES = 200;

const STATE = {
  planned: { shape: "ring", tone: "info" },
  active: { shape: "down", tone: "info" },
  ended: { shape: "dot", tone: "mute" },
  withdrawn: { shape: "cross", tone: "mute" },
  forgotten: { shape: "ring", tone: "mute" },
} as const;

/** S4: what was asked and how it changed, who followed, and what was reported. */
export function EventScreen({ id }: { readonly id: string }) {
  const event = events.of(id);
  const record = useEventRecord(id, REFRESH, event?.modified);
  const reports = useLoaded<readonly Report[]>("reports", REFRESH);
  const { rows } = record;
  if (event === undefined && rows.length === 0)
    return record.isLoading ? <p class="quiet">{t.loading}</p> : <Missing>{words.none(id)}</Missing>;
  const own = (reports.value ?? []).filter((report) => report.event === id);
  const state = event === undefined ? "forgotten" : eventState(event, now.value);
  return (
    <>
      <Title
        aside={
          <span class="title-aside">
            <span>{id}</span>
            <State shown={{ word: words.states[state], ...STATE[state] }} />
          </span>
        }
      >
        {event?.name ?? nameIn(rows) ?? id}
      </Title>
      <Course event={event} reports={own} />
      {event?.start !== undefined && <Head event={event} />}
      {event !== undefined && state === "planned" ? (
        <Preview event={event} />
      ) : (
        <Vehicles event={event} rows={rows} isCut={record.isCut} />
      )}
      <Revisions rows={rows} />
      <Reports all={own} />
    </>
  );
}

/** Name of an event of which only the record is left: quoted in its rows. */
const nameIn = (rows: readonly AuditRow[]): string | undefined =>
  rows.findLast(({ kind, words: text }) => kind === "event" && text.includes('"'))?.words.split('"')[1];

function Head({ event }: { readonly event: SiteEvent }) {
  const { start, end, ask, priority, randomizeStartMs = 0, source, odd = [] } = event;
  const under = chargers.all.value.filter(({ asked }) => asked?.event === event.id);
  const { good, total } = compliance(event.id, chargers.all.value, brokersAway.value);
  const { limits } = sitePower(under, site.value?.ratings ?? {}, brokersAway.value);
  const power = limits.find((each) => each.event === event.id);
  const left = Date.parse(end ?? "") - now.value;
  const state = eventState(event, now.value);
  const isActive = state === "active";
  const isObserved = isActive && status.value?.mode === "observe";
  const targets = words.targets(event.vehicles?.length ?? 0, event.foreignVehicles ?? 0);
  return (
    <>
      <dl class="levels">
        <div>
          <dt>{words.asks}</dt>
          <dd>{askText(ask)}</dd>
          <dd class="age">
            {[words.priority(priority ?? null), words.from(source ?? "")].filter(Boolean).join(", ")}
          </dd>
        </div>
        <div>
          <dt>{words.time}</dt>
          <dd class="from-until">
            {start !== undefined && <span>{naming.time(start)}–</span>}
            {end !== undefined && <span>{naming.time(end)}</span>}
          </dd>
          <dd class="age">
            {isActive && left > 0 ? t.now.left(span(left)) : ""}{" "}
            {randomizeStartMs > 0 && words.spread(span(randomizeStartMs))}
          </dd>
        </div>
        {state === "planned" && start !== undefined ? (
          <Level label={words.startsIn} value={span(Math.max(0, Date.parse(start) - now.value))}>
            {targets}
          </Level>
        ) : (
          <>
            <Level label={words.follow} value={total === 0 || isObserved ? "–" : `${good}/${total}`}>
              {isObserved ? t.now.onlyObserved : targets}
            </Level>
            <Energy event={event} />
            <Level label={words.delivered} value={power === undefined ? "–" : kilowatts(power.drawn)}>
              {power !== undefined && words.allowed(kilowatts(power.allowed))}
            </Level>
          </>
        )}
      </dl>
      {odd.map((text) => (
        <p key={text} class="hint">
          <State shown={{ word: text, shape: "triangle", tone: "warn" }} />
        </p>
      ))}
      <div class="acts">
        {isActive && <OptOut event={event} />}
        <a class="button plain" href={linkTo(`/log?event=${encodeURIComponent(event.id)}`)}>
          {words.log}
        </a>
        {state !== "planned" && <Proof id={event.id} />}
        {state === "ended" && <DryRun event={event} />}
      </div>
    </>
  );
}

/** The number of vehicles with each result: who is under the event, and who is not and why. */
function Totals({ lines }: { readonly lines: readonly EventRow[] }) {
  const byWord = Map.groupBy(lines, ({ result }) => result.word);
  return (
    <span class="counts">
      {[...byWord].flatMap(([word, rows]) => {
        const [first] = rows;
        if (first === undefined) return [];
        return <State key={word} shown={{ ...first.result, word: words.count(word, rows.length) }} />;
      })}
    </span>
  );
}

/** Row of a vehicle: its drawn offset, when it was on its setpoint, and when it did not follow. */
function Vehicles({
  event,
  rows,
  isCut,
}: {
  readonly event: SiteEvent | undefined;
  readonly rows: readonly AuditRow[];
  readonly isCut: boolean;
}) {
  const lines = vehicleRows(rows, event, now.value);
  const [first] = lines;
  if (first === undefined) return null;
  const from = first.from;
  const until = Math.max(first.until, from + 1);
  const listed = firstRows(lines, MOST_LINES);
  const place = (at: number): number => (100 * (Math.min(Math.max(at, from), until) - from)) / (until - from);
  return (
    <Section
      name="gantt"
      title={words.vehicles}
      aside={
        <>
          <Totals lines={lines} />
          <span class="legend">
            <span class="legend-on">{words.bars.on}</span>
            <span class="legend-sent">{words.bars.sent}</span>
            <span class="legend-bad">{words.bars.bad}</span>
            <span class="legend-held">{words.bars.held}</span>
            <span class="legend-offset">{words.bars.offset}</span>
            {lines.some(({ bars }) => bars.some(({ kind }) => kind === "observed")) && (
              <span class="legend-observed">{words.bars.observed}</span>
            )}
          </span>
        </>
      }
    >
      <table class="rows gantt">
        <thead>
          <tr>
            <th>{t.now.columns.vehicle}</th>
            <th>{words.offset}</th>
            <th class="gantt-scale">
              <span>{exact(new Date(from).toISOString())}</span>
              <span>{exact(new Date(until).toISOString())}</span>
            </th>
            <th>{words.result}</th>
          </tr>
        </thead>
        <tbody>
          {listed.map((line) => (
            <Line key={line.vehicle} line={line} place={place} />
          ))}
        </tbody>
      </table>
      {listed.length < lines.length && <p class="hint">{words.more(listed.length, lines.length)}</p>}
      {isCut && <p class="hint">{words.rowsCut(rows.length)}</p>}
    </Section>
  );
}

function Line({ line, place }: { readonly line: EventRow; readonly place: (at: number) => number }) {
  const name = vehicles.of(line.vehicle)?.name ?? line.vehicle;
  return (
    <tr>
      <th scope="row">
        <a href={vehiclePath(line.vehicle)}>{name}</a>
      </th>
      <td data-label={words.offset}>
        {line.offsetMs === null
          ? "–"
          : line.offsetMs < 10_000
            ? `${(line.offsetMs / 1000).toFixed(1)} s`
            : span(line.offsetMs)}
      </td>
      <td class="gantt-cell">
        <span class="gantt-track" role="img" aria-label={line.bars.map(barText).join(", ")}>
          {line.bars.map((bar) => (
            <i
              key={`${bar.kind} ${bar.from}`}
              class={`gantt-bar ${bar.kind}`}
              style={{
                left: `${place(bar.from)}%`,
                width: `${Math.max(0.4, place(bar.until) - place(bar.from))}%`,
              }}
            />
          ))}
        </span>
      </td>
      <td data-label={words.result}>
        <State shown={line.result} />
      </td>
    </tr>
  );
}

const barText = ({ kind, from, until }: Bar): string =>
  `${words.bars[kind]} ${exact(new Date(from).toISOString())}–${exact(new Date(until).toISOString())}`;

/** Each revision with what differs from the one before. */
function Revisions({ rows }: { readonly rows: readonly AuditRow[] }) {
  const all = revisionsIn(rows);
  if (all.length === 0) return null;
  return (
    <Section name="revisions" title={words.revisions} aside={<span class="count">{all.length}</span>}>
      <ol class="revisions">
        {all.map(({ seq, at, how, text, changes }) => (
          <li key={seq}>
            <p>
              <strong>{exact(at)}</strong> {how}
            </p>
            {changes.length === 0 ? (
              <p class="trouble-do">{text}</p>
            ) : (
              <ul>
                {changes.map(({ what, before, after }) => (
                  <li key={what}>
                    {words.fields[what]}: <del>{revisedText(zone.value, what, before)}</del> →{" "}
                    <ins>{revisedText(zone.value, what, after)}</ins>
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ol>
    </Section>
  );
}
