import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { get } from "../api.ts";
import type { AuditRow, Hold } from "../apiAnswers.ts";
import type { SiteEvent } from "../derive.ts";
import { slackState } from "../derive.ts";
import { askText, dayOf, exactTime, kilowattHours, nearTime, span } from "../format.ts";
import { type Outcome, outcomeOf } from "../overview.ts";
import { Section, Title } from "../parts.tsx";
import { alarms, departures, events, holds, now, site, status, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.handover;

/** A shift with its neighbours. */
const SHIFT = 12 * 3_600_000;
/** Events whose outcome is looked up. */
const MOST_EVENTS = 20;

/** By event. */
const outcomes = signal<ReadonlyMap<string, Outcome>>(new Map());

const nameOf = (id: string): string => vehicles.of(id)?.name ?? id;
const time = (at: string | number): string =>
  nearTime(zone.value, typeof at === "string" ? Date.parse(at) : at, now.value);

const endOf = ({ end, randomizeStartMs = 0 }: SiteEvent): number => Date.parse(end ?? "") + randomizeStartMs;

/** Events of the last shift, the newest start first. */
const recentEvents = (): readonly SiteEvent[] =>
  events.all.value
    .filter(
      (event) =>
        event.state !== "withdrawn" &&
        event.start !== undefined &&
        Date.parse(event.start) <= now.value &&
        endOf(event) > now.value - SHIFT,
    )
    .toSorted((a, b) => Date.parse(b.start ?? "") - Date.parse(a.start ?? ""))
    .slice(0, MOST_EVENTS);

async function loadOutcomes(ids: readonly string[]): Promise<void> {
  const found = await Promise.all(
    ids.map(async (id) => {
      const query = new URLSearchParams({ event: id, limit: "10000" });
      return [id, outcomeOf(await get<readonly AuditRow[]>(`audit?${query}`))] as const;
    }),
  );
  outcomes.value = new Map(found);
}

/** S9: what the next shift has to know, on one sheet. */
export function Handover() {
  const recent = recentEvents();
  const ids = recent.map(({ id }) => id).join("\n");
  useEffect(() => {
    void loadOutcomes(ids === "" ? [] : ids.split("\n")).catch(() => undefined);
  }, [ids]);
  const at = now.value;
  return (
    <div class="sheet">
      <Title
        aside={
          <button type="button" class="no-print" onClick={() => print()}>
            {words.print}
          </button>
        }
      >
        {words.title} {status.value?.site}
      </Title>
      <p class="sheet-span">
        {dayOf(zone.value, at)}, {words.span(time(at - SHIFT), time(at))}
      </p>
      <Short />
      <Faults />
      <Overrides />
      <Section name="handover-events" title={words.events}>
        <List none={words.noEvents}>
          {recent.map((event) => (
            <EventLine key={event.id} event={event} />
          ))}
        </List>
      </Section>
      <Expiring />
      <p class="signature">{words.signature}</p>
      <p class="made">
        {words.made(`${dayOf(zone.value, at)} ${exactTime(zone.value, at)}`)} ({site.value?.version})
      </p>
    </div>
  );
}

const List = ({
  none,
  children,
}: {
  readonly none: string;
  readonly children: readonly ComponentChildren[];
}) => (children.length === 0 ? <p class="quiet">{none}</p> : <ul class="plain">{children}</ul>);

function EventLine({ event }: { readonly event: SiteEvent }) {
  const { id, name, ask, start } = event;
  const outcome = outcomes.value.get(id);
  const judged = outcome === undefined ? 0 : outcome.good.length + outcome.bad.length;
  return (
    <li>
      <strong>
        {time(start ?? "")}–{time(endOf(event))} {name ?? id}
      </strong>{" "}
      <small>{id}</small> {askText(ask)}.{" "}
      {outcome === undefined || judged === 0 ? words.unknown : words.followed(outcome.good.length, judged)}
      {outcome !== undefined && outcome.bad.length > 0 && (
        <b class="bad"> {words.notFollowed(outcome.bad.map(nameOf).join(", "))}</b>
      )}
    </li>
  );
}

function whoOf({ scope }: Hold): string {
  if ("vehicle" in scope) return nameOf(scope.vehicle);
  return "charger" in scope ? scope.charger : words.site;
}

function Overrides() {
  const list = holds.all.value
    .filter(({ state, ended }) => state === "open" || Date.parse(ended?.at ?? "") > now.value - SHIFT)
    .toSorted((a, b) => Date.parse(b.since) - Date.parse(a.since));
  return (
    <Section name="handover-overrides" title={words.overrides}>
      <List none={words.noOverrides}>
        {list.map((hold) => (
          <li key={hold.id}>
            {hold.state === "open" ? <strong>{words.active} </strong> : null}
            {time(hold.since)} {whoOf(hold)} {t.hold.by(hold.by, hold.reason)}
            {hold.ended !== null && `; ${words.ended(time(hold.ended.at), hold.ended.why)}`}
          </li>
        ))}
      </List>
    </Section>
  );
}

function Short() {
  const list = departures.all.value.filter((departure) => slackState(departure).tone === "bad");
  return (
    <Section name="handover-short" title={words.short}>
      <List none={words.noShort}>
        {list.map(({ vehicle, at, short, because }) => (
          <li key={vehicle}>
            <strong>
              {time(at)} {nameOf(vehicle)}
            </strong>{" "}
            {words.shortBy(kilowattHours(short?.energyWh ?? 0), because ?? t.strip.unknown)}
          </li>
        ))}
      </List>
    </Section>
  );
}

function Faults() {
  const open = alarms.all.value.filter(({ state }) => state !== "cleared");
  const cleared = alarms.all.value.filter(
    ({ clearedAt }) => clearedAt !== null && Date.parse(clearedAt) > now.value - SHIFT,
  );
  return (
    <>
      <Section name="handover-faults" title={words.faults}>
        <List none={words.noFaults}>
          {open.map(({ key, message, action, since, acknowledged }) => (
            <li key={key}>
              <strong>{message}</strong> ({span(now.value - Date.parse(since))}). {action}
              {acknowledged !== null && ` ${t.now.acknowledged(acknowledged.by)}: ${acknowledged.note}`}
            </li>
          ))}
        </List>
      </Section>
      {cleared.length > 0 && (
        <Section name="handover-cleared" title={words.cleared}>
          <List none={words.noCleared}>
            {cleared.map(({ key, message, since, clearedAt }) => (
              <li key={key}>
                {time(since)}–{time(clearedAt ?? "")} {message}
              </li>
            ))}
          </List>
        </Section>
      )}
    </>
  );
}

/** Events and overrides that begin or end by themselves during the next shift. */
function Expiring() {
  const until = now.value + SHIFT;
  const lies = (at: number): boolean => at > now.value && at < until;
  const lines = [
    ...holds.all.value
      .filter((hold) => hold.state === "open" && hold.until !== null)
      .map((hold) => ({
        at: Date.parse(hold.until ?? ""),
        text: words.expiresHold(whoOf(hold), time(hold.until ?? "")),
      })),
    ...events.all.value.flatMap((event) => {
      if (event.state === "withdrawn" || event.start === undefined) return [];
      const name = event.name ?? event.id;
      const start = Date.parse(event.start);
      return [
        { at: start, text: words.starts(name, time(start)) },
        { at: endOf(event), text: words.expiresEvent(name, time(endOf(event))) },
      ];
    }),
  ]
    .filter(({ at }) => lies(at))
    .toSorted((a, b) => a.at - b.at);
  return (
    <Section name="handover-expires" title={words.expires}>
      <List none={words.noExpires}>
        {lines.map(({ at, text }) => (
          <li key={`${at} ${text}`}>{text}</li>
        ))}
      </List>
    </Section>
  );
}
