import type { RenderableProps } from "preact";
import { useState } from "preact/hooks";

import type { AuditRow, Claim, Explanation, Readings } from "../apiAnswers.ts";
import { Bind } from "../binding.tsx";
import { LevelChart } from "../chart.tsx";
import { askedSteps, commandsIn, spanOf, type Step } from "../commands.ts";
import { chargerState, followState, isStale, slackState } from "../derive.ts";
import { useLoaded } from "../effects.ts";
import {
  amps,
  delayText,
  kilowatts,
  levelText,
  loadedPhase,
  percent,
  setpointText,
  span,
  exactTime,
} from "../format.ts";
import { endOverride, overrideVehicle } from "../hold.tsx";
import { naming } from "../holdWords.ts";
import { Act, Age, Cell, HeadRow, Level, Missing, Section, State, Title } from "../parts.tsx";
import { amperesOf, measuredAmperes, wattsPerAmpere } from "../power.ts";
import { Reboot, Resend } from "../actions.tsx";
import { eventPath } from "../router.ts";
import { brokersAway, chargers, departures, events, holds, now, site, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";
import { SetDeparture } from "./leaving.tsx";

const words = t.vehicle;

const REFRESH = 30_000;
const MINUTE = 60_000;
const DAY = 86_400_000;
/** Rows of the record for the commands and what was asked. */
const MOST_ROWS = 1000;
/** Commands that are listed. */
const MOST_COMMANDS = 25;

/** S3: why this vehicle gets what it gets, what happened, and what may be done. */
export function VehicleScreen({ id }: { readonly id: string }) {
  const vehicle = vehicles.of(id);
  const charger = vehicle?.charger == null ? undefined : chargers.of(vehicle.charger);
  if (vehicle === undefined) return <Missing>{words.none(id)}</Missing>;
  const hold = holds.all.value.find(
    ({ state, id: known }) => state === "open" && known === charger?.hold?.id,
  );
  return (
    <>
      <Title
        aside={
          <span class="title-aside">
            <span>{vehicle.charger ?? words.noBay}</span>
            {charger !== undefined && <State shown={chargerState(charger, brokersAway.value)} />}
            {charger !== undefined && <Age at={charger.heardAt} />}
          </span>
        }
      >
        {vehicle.name}
      </Title>
      <Why id={id} version={`${charger?.command} ${charger?.hold?.id} ${charger?.asked?.event}`}>
        <Levels id={id} />
        <div class="acts">
          {hold === undefined ? (
            <Act role="operator" kind="strong" label={t.now.chargeNow} onPress={() => overrideVehicle(id)} />
          ) : (
            <Act role="operator" label={t.hold.end} onPress={() => endOverride(hold)} />
          )}
          <SetDeparture id={id} />
          {charger !== undefined && <Resend id={charger.charger} />}
          {charger !== undefined && <Reboot id={charger.charger} />}
          <Bind id={id} />
        </div>
      </Why>
      <History id={id} charger={vehicle.charger} command={vehicle.command} />
    </>
  );
}

/** The reason as a sentence, then `children`, then every claim with the winner marked. On a phone the claims are long. */
function Why({ id, version, children }: RenderableProps<Readonly<Record<"id" | "version", string>>>) {
  const path = `explain?vehicle=${encodeURIComponent(id)}`;
  const { value, problem } = useLoaded<Explanation>(path, REFRESH, version);
  return (
    <>
      <p class="sentence">{value?.sentence ?? problem ?? t.loading}</p>
      {children}
      {value !== null && (
        <section class="why" aria-label={words.why}>
          <table class="rows claims">
            <HeadRow columns={CLAIM_COLUMNS} />
            <tbody>
              {value.claims.map((claim) => (
                <ClaimRow
                  key={`${claim.kind} ${claim.source} ${claim.since} ${claim.status}`}
                  claim={claim}
                />
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

const CLAIM_COLUMNS = Object.fromEntries(
  (["claim", "source", "value", "since", "until", "because"] as const).map((name) => [name, words[name]]),
);

const CLAIM = {
  wins: { shape: "dot", tone: "good" },
  limits: { shape: "down", tone: "info" },
  overruled: { shape: "ring", tone: "mute" },
  waits: { shape: "pause", tone: "mute" },
  over: { shape: "ring", tone: "mute" },
} as const;

const ClaimRow = ({ claim }: { readonly claim: Claim }) => (
  <tr class={claim.status === "wins" ? "is-winner" : ""}>
    <th scope="row" data-label={words.claim}>
      <State shown={{ word: words.status[claim.status], ...CLAIM[claim.status] }} />
    </th>
    <td data-label={words.source}>
      {claim.kind === "event" && events.of(claim.source) !== undefined ? (
        <a href={eventPath(claim.source)}>{claim.source}</a>
      ) : (
        claim.source
      )}
    </td>
    <td data-label={words.value} class="value">
      {levelText(claim.level)}
    </td>
    <Cell label={words.since}>{claim.since === null ? null : naming.time(claim.since)}</Cell>
    <Cell label={words.until}>{claim.until === null ? null : naming.time(claim.until)}</Cell>
    <td data-label={words.because} class="cause">
      {claim.because}
    </td>
  </tr>
);

/** Asked, allowed and measured: three numbers, never one. And the departure. */
function Levels({ id }: { readonly id: string }) {
  const vehicle = vehicles.of(id);
  const charger = vehicle?.charger == null ? undefined : chargers.of(vehicle.charger);
  const departure = departures.of(id);
  const slack = departure === undefined ? null : slackState(departure);
  const measured = charger?.measured ?? null;
  const current = loadedPhase(measured?.currentsA);
  const isOld = charger !== undefined && isStale(charger, now.value, brokersAway.value);
  return (
    <dl class="levels">
      <Level
        label={words.asked}
        value={charger?.asked == null ? words.nothingAsked : setpointText(charger.asked)}
      >
        {charger?.asked?.event ?? ""}
      </Level>
      <Level label={words.allowed} value={setpointText(charger?.allowed ?? null)}>
        {charger !== undefined && <State shown={followState(charger, brokersAway.value)} />}
      </Level>
      <Level
        label={words.measured}
        isOld={isOld}
        value={
          <>
            {current === null ? (measured?.powerW == null ? "–" : kilowatts(measured.powerW)) : amps(current)}
            {current !== null && measured?.powerW != null && <small> {kilowatts(measured.powerW)}</small>}
          </>
        }
      >
        <Age at={measured?.at} />
      </Level>
      {charger !== undefined && (
        <Level
          label={words.charge}
          isOld={isOld}
          value={charger.soc === null ? words.chargeUnknown : percent(charger.soc)}
        >
          {charger.soc !== null && <Age at={measured?.at} />}
        </Level>
      )}
      {departure !== undefined && slack !== null && (
        <Level label={t.now.columns.leaves} value={naming.time(departure.at)}>
          <State
            shown={slack}
            {...(departure.slackS === null ? {} : { extra: span(departure.slackS * 1000) })}
          />
          <p class="cause">{departure.because}</p>
        </Level>
      )}
    </dl>
  );
}

type Place = Readonly<Record<"charger" | "command", string | null>>;

/** The chart of the last 24 h, and the commands. */
function History({ id, charger, command }: { readonly id: string } & Place) {
  const readings = useLoaded<Readings>(`readings?vehicle=${encodeURIComponent(id)}`, REFRESH, command);
  const rows = useLoaded<readonly AuditRow[]>(
    charger === null ? null : `audit?charger=${encodeURIComponent(charger)}&newest=true&limit=${MOST_ROWS}`,
    REFRESH,
    command,
  );
  const { value } = readings;
  const [chosen, setChosen] = useState<number | null>(null);
  const minutes = chosen ?? spanOf(value);
  const rating = charger === null ? undefined : site.value?.ratings[charger];
  const perAmpere = wattsPerAmpere(value?.current ?? [], value?.power ?? [], rating);
  const record = (rows.value ?? []).filter(({ vehicle }) => vehicle === null || vehicle === id);
  return (
    <>
      <Section
        name="chart"
        title={words.chart}
        aside={
          <span class="chips" role="group" aria-label={words.span}>
            {words.spans.map(([label, length]) => (
              <button
                key={label}
                type="button"
                class="chip"
                aria-pressed={minutes === length}
                onClick={() => setChosen(length)}
              >
                {label}
              </button>
            ))}
          </span>
        }
      >
        {value === null ? (
          <p class="quiet">{readings.problem ?? t.loading}</p>
        ) : (
          <LevelChart
            from={Date.parse(value.until) - minutes * MINUTE}
            until={Date.parse(value.until)}
            asked={askedSteps(record, Date.parse(value.from), perAmpere)}
            allowed={value.setpoints.map(({ at, level }): Step => [
              Date.parse(at),
              amperesOf(level, perAmpere),
            ])}
            measured={measuredAmperes(value.current, value.power, perAmpere)}
            soc={value.soc}
          />
        )}
      </Section>
      <Commands rows={record} />
    </>
  );
}

function Commands({ rows }: { readonly rows: readonly AuditRow[] }) {
  const all = commandsIn(rows);
  const today = all.filter(({ at }) => Date.parse(at) > now.value - DAY).length;
  return (
    <Section name="commands" title={words.commands} aside={<span class="count">{words.inDay(today)}</span>}>
      {all.length === 0 ? (
        <p class="quiet">{words.noCommands}</p>
      ) : (
        <table class="rows">
          <thead>
            <tr>
              <th>{words.time}</th>
              <th>{words.value}</th>
              <th>{words.verdict}</th>
              <th class="number">{words.acknowledged}</th>
              <th class="number">{words.accepted}</th>
              <th>{words.because}</th>
            </tr>
          </thead>
          <tbody>
            {all.slice(0, MOST_COMMANDS).map((line) => (
              <tr key={line.id}>
                <th scope="row">{exactTime(zone.value, Date.parse(line.at))}</th>
                <td data-label={words.value} class="value">
                  {line.value}
                </td>
                <td data-label={words.verdict}>
                  <State shown={line.outcome} />
                </td>
                <td data-label={words.acknowledged} class="number">
                  {delayText(line.acknowledgedMs)}
                </td>
                <td data-label={words.accepted} class="number">
                  {delayText(line.acceptedMs)}
                </td>
                <td data-label={words.because} class="cause">
                  {line.because}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}
