import type { ComponentChildren } from "preact";

import type { Alarm, Handover as Shift } from "../apiAnswers.ts";
import { useLoaded } from "../effects.ts";
import { dayOf, exactTime, foldKinds, sentence, span } from "../format.ts";
import { scopeName } from "../holdEffect.tsx";
import { holdLine } from "../holdPreview.ts";
import { naming } from "../holdWords.ts";
import { Section, Title } from "../parts.tsx";
import { alarms, chargers, events, holds, site, zone } from "../store.ts";
import { t } from "../texts.ts";

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const words = t.handover;

type HandoverEvent = Shift["events"][number];

/** Ms between two requests: departures and verdicts change with the time. */
const EVERY = 60_000;

/** Changes with an event, a hold or an alarm that begins or ends: the sheet is requested anew. */
const versionOf = (): string =>
  [
    ...events.all.value.map(({ id, state }) => `${id} ${state}`),
    ...holds.all.value.map(({ id, state }) => `${id} ${state}`),
    ...alarms.all.value.map(({ key, state }) => `${key} ${state}`),
  ].join("\n");

/** S9: what the next shift has to know, on one sheet, as GET handover answers it. */
export function Handover() {
  const { value: shift, problem } = useLoaded<Shift>("handover", EVERY, versionOf());
  return (
    <div class="sheet">
      <Title
        aside={
          <button type="button" class="no-print" onClick={() => print()}>
            {words.print}
          </button>
        }
      >
        {words.title} {shift?.site}
      </Title>
      {problem !== null && <p class="problem">{problem}</p>}
      {shift === null ? problem === null && <p class="quiet">{t.loading}</p> : <Sheet shift={shift} />}
    </div>
  );
}

function Sheet({ shift }: { readonly shift: Shift }) {
  const at = Date.parse(shift.now);
  return (
    <>
      <p class="sheet-span">
        {dayOf(zone.value, at)}, {words.span(naming.time(shift.since), naming.time(shift.now))}
      </p>
      <p class="sheet-sentence">{shift.sentence}</p>
      <Lines name="handover-short" title={words.short} none={words.noShort}>
        {shift.short.map(({ vehicle, at: leaves, because }) => (
          <li key={vehicle}>
            <strong>
              {naming.time(leaves)} {naming.vehicle(vehicle)}
            </strong>{" "}
            {because}
          </li>
        ))}
      </Lines>
      <Faults shift={shift} />
      <Overrides shift={shift} />
      <Named />
      <Lines name="handover-events" title={words.events} none={words.noEvents}>
        {[
          ...shift.events.map((event) => <EventLine key={event.id} event={event} />),
          ...shift.withdrawn.map(({ id, at: withdrawn }) => (
            <li key={`withdrawn ${id}`}>{words.withdrawn(id, naming.time(withdrawn))}</li>
          )),
        ]}
      </Lines>
      <Lines name="handover-mode" title={words.mode} none={words.noMode(shift.mode.sentence)}>
        {shift.mode.changes.map(({ at: changed, message }) => (
          <li key={`${changed} ${message}`}>
            {naming.time(changed)} {message}
          </li>
        ))}
      </Lines>
      <Lines name="handover-expires" title={words.expires} none={words.noExpires}>
        {shift.due.map(({ at: due, message }) => (
          <li key={`${due} ${message}`}>
            <strong>{naming.time(due)}</strong> {message}
          </li>
        ))}
      </Lines>
      <div class="signature">
        {words.signatures.map((text) => (
          <p key={text}>{text}</p>
        ))}
      </div>
      <p class="made">
        {words.made(`${dayOf(zone.value, at)} ${exactTime(zone.value, at)}`)} ({site.value?.version})
      </p>
    </>
  );
}

const Lines = ({
  name,
  title,
  none,
  children,
}: {
  readonly name: string;
  readonly title: string;
  readonly none: string;
  readonly children: readonly ComponentChildren[];
}) =>
  children.length === 0 ? (
    // A single line, so that what matters stands out on the sheet.
    <p class="sheet-none">{none}</p>
  ) : (
    <Section name={name} title={title}>
      <ul class="plain">{children}</ul>
    </Section>
  );

/** The names that the answer has of a result, and the number of those that it leaves out. */
function namesIn({ count, vehicles: named }: HandoverEvent["held"]): string {
  const more = count - named.length;
  return `${named.map(naming.vehicle).join(", ")}${more > 0 ? ` ${words.more(more)}` : ""}`;
}

function EventLine({ event }: { readonly event: HandoverEvent }) {
  const { id, name, asked, start, end, followed, notFollowed, held, missed, notJudged } = event;
  const rest = [
    held.count > 0 ? words.held(namesIn(held)) : null,
    missed.count > 0 ? words.missed(namesIn(missed)) : null,
    notJudged > 0 ? words.notJudged(notJudged) : null,
  ].filter((text) => text !== null);
  return (
    <li>
      <strong>
        {naming.time(start)}–{naming.time(end)} {name === "" ? id : name}
      </strong>{" "}
      <small>{id}</small> {asked}. {words.followed(followed.count, event.vehicles)}
      {notFollowed.count > 0 && <b class="bad">; {words.notFollowed(namesIn(notFollowed))}</b>}
      {rest.length > 0 && `; ${rest.join("; ")}`}
    </li>
  );
}

const Overrides = ({ shift }: { readonly shift: Shift }) => (
  <Lines name="handover-overrides" title={words.overrides} none={words.noOverrides}>
    {shift.holds.map((hold) => (
      <li key={hold.id}>
        {hold.state === "open" ? <strong>{words.active} </strong> : null}
        {naming.time(hold.since)} {holdLine(hold, scopeName(hold.scope), naming)};{" "}
        {t.hold.by(hold.by, hold.reason)}
        {hold.ended !== null && `; ${words.ended(naming.time(hold.ended.at), hold.ended.why)}`}
        {(hold.costs ?? []).map(({ sentence }) => `; ${sentence}`).join("")}
      </li>
    ))}
  </Lines>
);

/** Vehicles that a person named: that lasts into the next shift. */
function Named() {
  const bound = chargers.all.value.flatMap(({ charger, binding }) =>
    binding === null ? [] : [{ charger, ...binding }],
  );
  if (bound.length === 0) return null;
  return (
    <Lines name="handover-named" title={words.named} none="">
      {bound.map(({ charger, vehicle, by, since, reason }) => (
        <li key={charger}>
          <strong>{naming.vehicle(vehicle)}</strong> {t.binding.said(by, charger, naming.time(since), reason)}
        </li>
      ))}
    </Lines>
  );
}

/** A note is written out at least once. */
const kindOf = ({ kind, state, acknowledged }: Alarm): string => `${kind} ${state} ${acknowledged?.note}`;

const inOrder = (ids: readonly string[]): readonly string[] =>
  ids.toSorted((a, b) => a.localeCompare(b, undefined, { numeric: true }));

/** Subjects of the rows that are not written out. The sheet names each: nobody can look them up on paper. */
const alike = (rest: readonly { readonly subject: string | null }[]) =>
  rest.length === 0
    ? []
    : [
        <li key={`alike ${rest[0]?.subject}`}>
          {t.now.moreAlike(rest.length, inOrder(rest.flatMap(({ subject }) => subject ?? [])).join(", "))}
        </li>,
      ];

function Faults({ shift }: { readonly shift: Shift }) {
  const open = shift.alarms.filter(({ clearedAt }) => clearedAt === null);
  const cleared = shift.alarms.filter(({ clearedAt }) => clearedAt !== null);
  return (
    <>
      <Lines name="handover-faults" title={words.faults} none={words.noFaults}>
        {foldKinds(open, kindOf).flatMap(({ written, rest }) => [
          ...written.map(({ key, message, action, since, acknowledged }) => (
            <li key={key}>
              <strong>{sentence(message)}</strong> ({span(Date.parse(shift.now) - Date.parse(since))}).{" "}
              {capital(action)}
              {acknowledged !== null && ` ${t.now.acknowledged(acknowledged.by)}: ${acknowledged.note}`}
            </li>
          )),
          ...alike(rest),
        ])}
      </Lines>
      {cleared.length > 0 && (
        <Lines name="handover-cleared" title={words.cleared} none="">
          {foldKinds(cleared, kindOf).flatMap(({ written, rest }) => [
            ...written.map(({ key, message, since, clearedAt }) => (
              <li key={key}>
                {naming.time(since)}–{naming.time(clearedAt ?? "")} {message}
              </li>
            )),
            ...alike(rest),
          ])}
        </Lines>
      )}
      <Lines name="handover-unreachable" title={words.unreachable} none={words.noUnreachable}>
        {foldKinds(shift.unreachable, ({ kind }) => kind).flatMap(({ written, rest }) => [
          ...written.map(({ kind, subject, message, action }) => (
            <li key={`${kind} ${subject}`}>
              {sentence(message)}. {capital(action)}
            </li>
          )),
          ...alike(rest),
        ])}
      </Lines>
    </>
  );
}
