import { useState } from "preact/hooks";

import type { EventPlan, PlannedVehicle, ProofFact, Report } from "../apiAnswers.ts";
import { eventState, type SiteEvent, slackState, type Shown } from "../derive.ts";
import { useLoaded } from "../effects.ts";
import { energyTotals } from "../eventRecord.ts";
import { kilowattHours, levelText, nearTime, span } from "../format.ts";
import { naming } from "../holdWords.ts";
import { Cell, Dialog, HeadRow, Section, State, StepItems } from "../parts.tsx";
import { eventPath, vehiclePath } from "../router.ts";
import { departures, events, holds, now, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.event;
const previewWords = words.preview;

const REPORT = {
  planned: { shape: "ring", tone: "info" },
  waiting: { shape: "pause", tone: "warn" },
  sent: { shape: "dot", tone: "good" },
  flagged: { shape: "triangle", tone: "bad" },
} as const;

/** Progress of an event: what is done, and what is next. */
export function Course({
  event,
  reports,
}: {
  readonly event: SiteEvent | undefined;
  readonly reports: readonly Report[];
}) {
  if (event?.start === undefined || event.end === undefined) return null;
  const { receivedAt, start, end, randomizeStartMs = 0 } = event;
  const state = eventState(event, now.value);
  const hasEnded = state === "ended";
  const hasStarted = hasEnded || state === "active";
  const allStarted = Date.parse(start) + randomizeStartMs;
  const isStarting = state === "active" && now.value < allStarted;
  // The last vehicle ends later by its own start offset.
  const last = nearTime(zone.value, Date.parse(end) + randomizeStartMs, now.value);
  const sent = reports.filter((report) => report.state === "sent").length;
  const text = words.steps;
  const steps = [
    receivedAt === undefined ? null : ([text.received(naming.time(receivedAt)), true] as const),
    [hasStarted ? text.started(naming.time(start)) : text.starts(naming.time(start)), hasStarted] as const,
    isStarting ? ([text.starting(nearTime(zone.value, allStarted, now.value)), false] as const) : null,
    [hasEnded ? text.ended(last) : text.ends(last), hasEnded] as const,
    reports.length === 0 ? null : ([text.reported(sent, reports.length), sent === reports.length] as const),
  ].filter((step) => step !== null);
  return (
    <ol class="steps course" aria-label={words.course}>
      <StepItems steps={steps} />
    </ol>
  );
}

/** Reports that the partner asked for on an event. */
export const Reports = ({ all }: { readonly all: readonly Report[] }) => (
  <Section name="reports" title={words.reports} aside={<span class="count">{all.length}</span>}>
    {all.length === 0 ? (
      <p class="quiet">{words.noReports}</p>
    ) : (
      <ul class="troubles">
        {all.map((report) => (
          <li key={report.name} class="trouble-row">
            <State shown={{ word: words.report[report.state], ...REPORT[report.state] }} />
            <div>
              <p class="trouble-what">
                {report.name} {report.payloadType ?? ""}
              </p>
              <p class="trouble-do">
                {[
                  report.summary,
                  report.due === null ? null : words.due(naming.time(report.due)),
                  report.sentAt === null ? null : words.sent(naming.time(report.sentAt), report.status),
                  report.attempts > 1 ? words.attempts(report.attempts) : null,
                  report.nextTry === null ? null : words.nextTry(naming.time(report.nextTry)),
                  report.reason,
                ]
                  .filter((text) => text !== null)
                  .join(" · ")}
              </p>
            </div>
          </li>
        ))}
      </ul>
    )}
  </Section>
);

/** Energy that the vehicles drew in their windows, beside that of comparable days. It comes from the proof. */
export function Energy({ event }: { readonly event: SiteEvent }) {
  const state = eventState(event, now.value);
  const isBegun = state !== "planned";
  const path = isBegun ? `events/${encodeURIComponent(event.id)}/proof` : null;
  const { value, problem } = useLoaded<readonly ProofFact[]>(path, 0, state);
  const { deliveredWh, baselineWh, compared } = energyTotals(value ?? []);
  const baseline =
    baselineWh === null ? words.noBaseline : words.baseline(kilowattHours(baselineWh), compared);
  return (
    <div>
      <dt>{words.energy}</dt>
      <dd>{deliveredWh === null ? "–" : kilowattHours(deliveredWh)}</dd>
      <dd class="age cause">
        {isBegun && value === null && (problem ?? t.loading)}
        {isBegun && value !== null && baseline}
      </dd>
    </div>
  );
}

/** Ms between two requests: the plan changes with events, holds and vehicles that move. */
const REFRESH = 30_000;

const OUTCOME = {
  asked: { shape: "dot", tone: "good" },
  limited: { shape: "down", tone: "info" },
  overruled: { shape: "ring", tone: "mute" },
  held: { shape: "hand", tone: "info" },
  absent: { shape: "ring", tone: "mute" },
} as const;
type Outcome = keyof typeof OUTCOME;
const OUTCOMES = ["asked", "limited", "overruled", "held", "absent"] as const;

/** Changes with what the plan is made from: it is requested anew. */
const versionOf = (): string =>
  [
    ...events.all.value.map(({ id, modified = "", state }) => `${id} ${modified} ${state}`),
    ...holds.all.value.map(({ id, state }) => `${id} ${state}`),
  ].join("\n");

/** A dry run: what a recorded event would do now. */
export function DryRun({ event }: { readonly event: SiteEvent }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="plain" onClick={() => setOpen(true)}>
        {previewWords.dryRun}
      </button>
      {isOpen && (
        <Dialog title={previewWords.dryRunOf(event.name ?? event.id)} onClose={() => setOpen(false)}>
          <p>{previewWords.dryRunHow}</p>
          <Preview event={event} query="?start=now" />
          <div class="buttons">
            <button type="button" class="strong" onClick={() => setOpen(false)}>
              {t.hold.close}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** Effect of an event that has not begun on each of its vehicles. */
export function Preview({ event, query = "" }: { readonly event: SiteEvent; readonly query?: string }) {
  const path = `events/${encodeURIComponent(event.id)}/plan${query}`;
  const { value: plan, problem } = useLoaded<EventPlan>(path, REFRESH, versionOf());
  const rows = plan?.rows ?? [];
  return (
    <Section name="preview" title={previewWords.title} aside={<Counts rows={rows} />}>
      {plan === null && <p class="quiet">{problem ?? t.loading}</p>}
      {plan !== null && rows.length === 0 && <p class="quiet">{previewWords.none}</p>}
      {plan?.mode === "observe" && (
        <p class="hint">
          <State shown={{ word: previewWords.observe, shape: "ring", tone: "info" }} />
        </p>
      )}
      {rows.length > 0 && (
        <table class="rows">
          <HeadRow columns={previewWords.columns} />
          <tbody>
            {rows.map((row) => (
              <Row key={`${row.vehicle} ${row.from}`} row={row} />
            ))}
          </tbody>
        </table>
      )}
      {rows.length > 0 && <p class="hint">{previewWords.basis}</p>}
      {plan !== null && plan.vehicles > rows.length && (
        <p class="hint">{previewWords.more(rows.length, plan.vehicles)}</p>
      )}
    </Section>
  );
}

const Counts = ({ rows }: { readonly rows: readonly PlannedVehicle[] }) => (
  <span class="counts">
    {OUTCOMES.map((outcome) => ({
      outcome,
      count: rows.filter((row) => row.outcome === outcome).length,
    }))
      .filter(({ count }) => count > 0)
      .map(({ outcome, count }) => (
        <State key={outcome} shown={{ word: previewWords.counts[outcome](count), ...OUTCOME[outcome] }} />
      ))}
  </span>
);

const outcomeOf = (outcome: Outcome): Shown => ({
  word: previewWords.outcomes[outcome],
  ...OUTCOME[outcome],
});

function Row({ row }: { readonly row: PlannedVehicle }) {
  const { vehicle, charger, from, offsetMs, gets, asked, outcome, winner, limits, interrupted } = row;
  const departure = departures.of(vehicle);
  const slack = departure === undefined ? null : slackState(departure);
  return (
    <tr class={slack?.tone === "bad" ? "is-bad" : ""}>
      <th scope="row">
        <a href={vehiclePath(vehicle)}>{naming.vehicle(vehicle)}</a>
      </th>
      <Cell label={previewWords.columns.bay}>{charger}</Cell>
      <td data-label={previewWords.columns.starts} class="strong-time">
        {naming.time(from)}
        {offsetMs > 0 && <small class="cause">+{span(offsetMs)}</small>}
      </td>
      <Cell label={previewWords.columns.gets} name="value">
        {gets === null ? null : (
          <>
            {levelText(gets)}
            {outcome !== "asked" && <small class="cause">{previewWords.insteadOf(levelText(asked))}</small>}
          </>
        )}
      </Cell>
      <td data-label={previewWords.columns.result}>
        <State shown={outcomeOf(outcome)} />
        {outcome === "overruled" && winner !== null && (
          <small class="cause">
            <a href={eventPath(winner)}>{previewWords.by(winner)}</a>
          </small>
        )}
        {outcome === "limited" && limits.length > 0 && <small class="cause">{limits.join(", ")}</small>}
        {interrupted.map((other) => (
          <small key={`${other.event} ${other.from}`} class="cause">
            {previewWords.interrupted(other.event, naming.time(other.from), naming.time(other.until))}
          </small>
        ))}
      </td>
      <Cell label={previewWords.columns.leaves} name="leaves">
        {departure === undefined || slack === null ? null : (
          <>
            {naming.time(departure.at)}{" "}
            <State
              shown={slack}
              {...(departure.slackS === null ? {} : { extra: span(departure.slackS * 1000) })}
            />
            {departure.cause !== null && <small> {t.cause[departure.cause]}</small>}
          </>
        )}
      </Cell>
    </tr>
  );
}
