import type { Departure } from "../apiAnswers.ts";
import type { SiteEvent } from "../derive.ts";
import { slackState } from "../derive.ts";
import { askText, nearTime, span } from "../format.ts";
import { naming } from "../holdWords.ts";
import { Cell, Glyph, HeadRow, Section, State } from "../parts.tsx";
import { type Group, groupsOf, lanesOf } from "../power.ts";
import { eventPath, vehiclePath } from "../router.ts";
import { now, site, status, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.timeline;

/** An event with its window. The last vehicle ends later by its own start offset. */
export interface Bar {
  readonly event: SiteEvent;
  readonly from: number;
  readonly until: number;
}

/** Planned work. No bays: the whole site. */
interface Work {
  readonly name: string;
  readonly bays: readonly string[];
  readonly from: number;
  readonly until: number;
}

/** The time that is drawn. `x`: place of a moment. `least`: time that the width of one mark takes, in ms. */
export interface Scale {
  readonly from: number;
  readonly until: number;
  readonly least: number;
  readonly x: (at: number) => number;
}

interface LeavingAt {
  readonly departure: Departure;
  readonly at: number;
}

/** Width of the drawing, in its own units. */
export const WIDTH = 1200;
/** A bar of this width has no room for its text. */
const SHORT = 240;
const LANE = 34;

const time = (at: number): string => nearTime(zone.value, at, now.value);

/** The same as text: for a screen reader, and for exact times. */
export function TimelineTable({
  scale,
  bars,
  leaving,
}: {
  readonly scale: Scale;
  readonly bars: readonly Bar[];
  readonly leaving: readonly LeavingAt[];
}) {
  const works = worksIn(scale);
  if (bars.length + works.length + leaving.length === 0) return null;
  const { columns } = words;
  return (
    <Section name="timeline-table" title={words.table}>
      <table class="rows">
        <HeadRow columns={columns} />
        <tbody>
          {bars.map(({ event, from, until }) => (
            <tr key={event.id}>
              <th scope="row">
                <a href={eventPath(event.id)}>{event.name ?? event.id}</a>
              </th>
              <td data-label={columns.from}>{time(from)}</td>
              <td data-label={columns.until}>{time(until)}</td>
              <td class="detail">
                {askText(event.ask)}, {words.vehicles(event.vehicles?.length ?? 0)}
              </td>
            </tr>
          ))}
          {works.map(({ name, bays, from, until }) => (
            <tr key={`${name} ${from}`}>
              <th scope="row">{name}</th>
              <td data-label={columns.from}>{time(from)}</td>
              <td data-label={columns.until}>{time(until)}</td>
              <td class="detail">
                {words.maintenance}: {bays.length === 0 ? words.wholeSite : bays.join(", ")}
              </td>
            </tr>
          ))}
          {leaving.map(({ departure, at }) => (
            <tr key={departure.vehicle}>
              <th scope="row">
                <a href={vehiclePath(departure.vehicle)}>{naming.vehicle(departure.vehicle)}</a>
              </th>
              <td data-label={columns.from}>{time(at)}</td>
              <Cell label={columns.until} />
              <td class="detail">
                {words.leavesAs}{" "}
                <State
                  shown={slackState(departure)}
                  {...(departure.slackS === null ? {} : { extra: span(departure.slackS * 1000) })}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

/** Events as bars, each in a lane that is free. A short bar has its text beside it. */
export function Events({ scale, bars }: { readonly scale: Scale; readonly bars: readonly Bar[] }) {
  const lanes = lanesOf(bars, scale.least);
  if (lanes.length === 0) return null;
  return (
    <section class="timeline-lane" aria-label={words.events}>
      <h2>{words.events}</h2>
      <div class="bars" style={{ height: `${lanes.length * LANE}px` }}>
        {lanes.flatMap((lane, index) =>
          lane.map(({ event, from, until }, position) => {
            const left = Math.max(0, scale.x(from));
            const right = Math.min(WIDTH, scale.x(until));
            const next = lane[position + 1];
            const room = (next === undefined ? WIDTH : scale.x(next.from)) - right;
            const place = right - left > SHORT ? "" : room > SHORT ? "is-short" : "is-tight";
            const state = until <= now.value ? "is-over" : from <= now.value ? "is-active" : "";
            return (
              <a
                key={event.id}
                class={`bar-event ${state} ${place}`}
                href={eventPath(event.id)}
                title={barText({ event, from, until })}
                style={{
                  left: `${(left / WIDTH) * 100}%`,
                  width: `max(1.5rem, ${((right - left) / WIDTH) * 100}%)`,
                  top: `${index * LANE}px`,
                }}
              >
                <span>
                  {askText(event.ask)} {event.name ?? event.id}
                </span>
              </a>
            );
          }),
        )}
        <i class="now-mark" style={{ left: `${(scale.x(now.value) / WIDTH) * 100}%` }} />
      </div>
    </section>
  );
}

const barText = ({ event, from, until }: Bar): string =>
  words.event(
    event.name ?? event.id,
    askText(event.ask),
    nearTime(zone.value, from, now.value),
    nearTime(zone.value, until, now.value),
    event.vehicles?.length ?? 0,
  );

/** A mark for each departure. Those too close together share one, and the table below lists them. */
export function Departures({
  scale,
  leaving,
}: {
  readonly scale: Scale;
  readonly leaving: readonly LeavingAt[];
}) {
  if (leaving.length === 0) return null;
  return (
    <section class="timeline-lane" aria-label={words.departures}>
      <h2>{words.departures}</h2>
      <div class="bars departures">
        {groupsOf(leaving, scale.least).map((group) => (
          <Mark key={group[0].departure.vehicle} group={group} scale={scale} />
        ))}
        <i class="now-mark" style={{ left: `${(scale.x(now.value) / WIDTH) * 100}%` }} />
      </div>
    </section>
  );
}

function Mark({ group, scale }: { readonly group: Group<LeavingAt>; readonly scale: Scale }) {
  const [{ departure, at }, ...others] = group;
  const slacks = group.map((each) => slackState(each.departure));
  const slack =
    slacks.toSorted((a, b) => URGENCY.indexOf(a.tone) - URGENCY.indexOf(b.tone))[0] ?? slackState(departure);
  const last = others.at(-1)?.at ?? at;
  const leaves =
    others.length === 0
      ? words.leaves(naming.vehicle(departure.vehicle), time(at))
      : words.leaveTogether(group.length, time(at), time(last));
  const text = `${leaves}: ${slack.word}`;
  const shown = {
    title: text,
    "aria-label": text,
    style: { left: `${(scale.x(at) / WIDTH) * 100}%` },
  };
  const glyph = <Glyph shape={slack.shape === "dot" ? "down" : slack.shape} />;
  return others.length === 0 ? (
    <a class={slack.tone} href={vehiclePath(departure.vehicle)} {...shown}>
      {glyph}
    </a>
  ) : (
    <span class={slack.tone} role="img" {...shown}>
      {glyph}
      <small>{group.length}</small>
    </span>
  );
}

/** Tones of departures, the most urgent first. */
const URGENCY = ["bad", "warn", "mute", "info", "good"];

/** Planned work. It is shown, and limits nothing. */
export function Maintenance({ scale }: { readonly scale: Scale }) {
  const works = worksIn(scale);
  if (works.length === 0) return null;
  return (
    <section class="timeline-lane" aria-label={words.maintenance}>
      <h2>
        {words.maintenance}{" "}
        <small>
          {works
            .map(({ name, bays, from, until }) => words.work(name, bays, time(from), time(until)))
            .join("; ")}
        </small>
      </h2>
      <div class="bars observing maintenance">
        {works.map(({ name, bays, from, until }) => {
          const [left, right] = [Math.max(0, scale.x(from)), Math.min(WIDTH, scale.x(until))];
          return (
            <i
              key={`${name} ${from}`}
              title={words.work(name, bays, time(from), time(until))}
              style={{
                left: `${(left / WIDTH) * 100}%`,
                width: `${(Math.max(4, right - left) / WIDTH) * 100}%`,
              }}
            />
          );
        })}
        <i class="now-mark" style={{ left: `${(scale.x(now.value) / WIDTH) * 100}%` }} />
      </div>
    </section>
  );
}

/** Planned work in the time that is drawn, the first first. */
const worksIn = (scale: Scale): readonly Work[] =>
  (site.value?.maintenance ?? [])
    .map(({ name, bays, ...times }) => ({
      name,
      bays,
      from: Date.parse(times.from),
      until: Date.parse(times.until),
    }))
    .filter(({ from, until }) => from < scale.until && until > scale.from)
    .toSorted((a, b) => a.from - b.from);

/** The period in which a person has the site observe: nothing is sent then. */
export function Observing({ scale }: { readonly scale: Scale }) {
  const period = status.value?.observing;
  if (period == null) return null;
  const [from, until] = [Math.max(scale.from, now.value), Date.parse(period.until)];
  return (
    <section class="timeline-lane" aria-label={words.observing}>
      <h2>
        {words.observing} <small>{words.observed(time(until), period.reason)}</small>
      </h2>
      <div class="bars observing">
        <i
          style={{
            left: `${(scale.x(from) / WIDTH) * 100}%`,
            width: `${(Math.max(4, Math.min(WIDTH, scale.x(until)) - scale.x(from)) / WIDTH) * 100}%`,
          }}
        />
      </div>
    </section>
  );
}
