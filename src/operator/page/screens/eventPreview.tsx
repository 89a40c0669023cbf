import type { EventPlan, PlannedVehicle } from "../apiAnswers.ts";
import { type SiteEvent, slackState, type Shown } from "../derive.ts";
import { useLoaded } from "../effects.ts";
import { levelText, nearTime, span } from "../format.ts";
import { Cell, Section, State } from "../parts.tsx";
import { eventPath, vehiclePath } from "../router.ts";
import { departures, events, holds, now, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.event.preview;
const timeOf = (iso: string): string => nearTime(zone.value, Date.parse(iso), now.value);

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

/** Effect of an event that has not begun on each of its vehicles. */
export function Preview({ event }: { readonly event: SiteEvent }) {
  const path = `events/${encodeURIComponent(event.id)}/plan`;
  const { value: plan, problem } = useLoaded<EventPlan>(path, REFRESH, versionOf());
  const rows = plan?.rows ?? [];
  return (
    <Section name="preview" title={words.title} aside={<Counts rows={rows} />}>
      {plan === null && <p class="quiet">{problem ?? t.loading}</p>}
      {plan !== null && rows.length === 0 && <p class="quiet">{words.none}</p>}
      {plan?.mode === "observe" && (
        <p class="hint">
          <State shown={{ word: words.observe, shape: "ring", tone: "info" }} />
        </p>
      )}
      {rows.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>{words.columns.vehicle}</th>
              <th>{words.columns.bay}</th>
              <th>{words.columns.starts}</th>
              <th>{words.columns.gets}</th>
              <th>{words.columns.result}</th>
              <th>{words.columns.leaves}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={`${row.vehicle} ${row.from}`} row={row} />
            ))}
          </tbody>
        </table>
      )}
      {rows.length > 0 && <p class="hint">{words.basis}</p>}
      {plan !== null && plan.vehicles > rows.length && (
        <p class="hint">{words.more(rows.length, plan.vehicles)}</p>
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
        <State key={outcome} shown={{ word: words.counts[outcome](count), ...OUTCOME[outcome] }} />
      ))}
  </span>
);

const outcomeOf = (outcome: Outcome): Shown => ({ word: words.outcomes[outcome], ...OUTCOME[outcome] });

function Row({ row }: { readonly row: PlannedVehicle }) {
  const { vehicle, charger, from, offsetMs, gets, asked, outcome, winner, limits, interrupted } = row;
  const departure = departures.of(vehicle);
  const slack = departure === undefined ? null : slackState(departure);
  return (
    <tr class={slack?.tone === "bad" ? "is-bad" : ""}>
      <th scope="row">
        <a href={vehiclePath(vehicle)}>{vehicles.of(vehicle)?.name ?? vehicle}</a>
      </th>
      <Cell label={words.columns.bay}>{charger}</Cell>
      <td data-label={words.columns.starts} class="strong-time">
        {timeOf(from)}
        {offsetMs > 0 && <small class="cause">+{span(offsetMs)}</small>}
      </td>
      <Cell label={words.columns.gets} name="value">
        {gets === null ? null : (
          <>
            {levelText(gets)}
            {outcome !== "asked" && <small class="cause">{words.insteadOf(levelText(asked))}</small>}
          </>
        )}
      </Cell>
      <td data-label={words.columns.result}>
        <State shown={outcomeOf(outcome)} />
        {outcome === "overruled" && winner !== null && (
          <small class="cause">
            <a href={eventPath(winner)}>{words.by(winner)}</a>
          </small>
        )}
        {outcome === "limited" && limits.length > 0 && <small class="cause">{limits.join(", ")}</small>}
        {interrupted.map((other) => (
          <small key={`${other.event} ${other.from}`} class="cause">
            {words.interrupted(other.event, timeOf(other.from), timeOf(other.until))}
          </small>
        ))}
      </td>
      <Cell label={words.columns.leaves} name="leaves">
        {departure === undefined || slack === null ? null : (
          <>
            {timeOf(departure.at)}{" "}
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
