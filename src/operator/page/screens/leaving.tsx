import { useState } from "preact/hooks";

import { DepartureDialog } from "../actionDialog.tsx";
import type { Departure } from "../apiAnswers.ts";
import { isStale, leavingNext, slackState } from "../derive.ts";
import { kilowattHours, kilowatts, percent, setpointText, span } from "../format.ts";
import { overrideVehicle } from "../hold.tsx";
import { naming } from "../holdWords.ts";
import { Act, Cell, Section, State } from "../parts.tsx";
import { linkTo, vehiclePath } from "../router.ts";
import { brokersAway, chargers, departures, hasDepartures, now, vehicles } from "../store.ts";
import { t } from "../texts.ts";
import { TroubleLink } from "./troubles.tsx";

const words = t.now;

/** Rows up to which vehicles without a departure are shown as well. */
const MOST_ROWS = 24;
/** Departures that are shown. The table is drawn again every second, so hundreds would keep the browser busy. */
const MOST_DEPARTURES = 60;

export function Leaving() {
  const known = leavingNext(departures.all.value, now.value);
  const inList = new Set(known.map(({ vehicle }) => vehicle));
  const rest = chargers.all.value
    .flatMap(({ vehicle, asked, hold }) =>
      vehicle === null || inList.has(vehicle) || (asked === null && hold === null) ? [] : [vehicle],
    )
    .slice(0, Math.max(0, MOST_ROWS - known.length));
  const short = known.filter((departure) => slackState(departure).tone === "bad").length;
  const unknown = known.filter((departure) => slackState(departure).tone === "mute").length;
  const aside = (
    <span class="counts">
      <TroubleLink />
      {short > 0 && <State shown={{ word: words.shortCount(short), shape: "cross", tone: "bad" }} />}
      {unknown > 0 && <State shown={{ word: words.unknownCount(unknown), shape: "ring", tone: "mute" }} />}
      {known.length > 0 && short === 0 && unknown === 0 && (
        <State shown={{ word: words.allMake, shape: "dot", tone: "good" }} />
      )}
    </span>
  );
  const names = words.columns;
  return (
    <Section name="leaving" title={words.leaving} aside={aside}>
      {known.length === 0 && (
        <p class="quiet">{hasDepartures.value ? words.noDepartures : words.noDeparturesYet}</p>
      )}
      {known.length + rest.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>{names.vehicle}</th>
              <th>{names.bay}</th>
              <th>{names.leaves}</th>
              <th>{names.slack}</th>
              <th class="number">{names.missing}</th>
              <th class="number">{names.power}</th>
              <th>{names.ready}</th>
              <th>
                <span class="unseen">{names.action}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {known.slice(0, MOST_DEPARTURES).map((departure) => (
              <Row key={departure.vehicle} vehicle={departure.vehicle} departure={departure} />
            ))}
            {rest.map((vehicle) => (
              <Row key={vehicle} vehicle={vehicle} departure={null} />
            ))}
          </tbody>
        </table>
      )}
      {known.length > MOST_DEPARTURES && (
        <p class="hint">
          <a href={linkTo("/bays")}>{words.moreLeaving(known.length - MOST_DEPARTURES)}</a>
        </p>
      )}
    </Section>
  );
}

/** State of charge now and at the departure: `54 % → 80 %`. */
function chargeText({ soc, need }: Departure): string {
  const present = soc === null ? words.noSoc : percent(soc);
  if ("soc" in need) return `${present} → ${percent(need.soc)}`;
  return soc === null ? present : words.socNow(present);
}

function Row({ vehicle: id, departure }: { readonly vehicle: string; readonly departure: Departure | null }) {
  const vehicle = vehicles.of(id);
  const charger = vehicle?.charger == null ? undefined : chargers.of(vehicle.charger);
  const name = vehicle?.name ?? id;
  const names = words.columns;
  const slack = departure === null ? null : slackState(departure);
  const isOld = charger !== undefined && isStale(charger, now.value, brokersAway.value);
  const tone = slack?.tone === "bad" ? "is-bad" : "";
  const isExplained = departure !== null && departure.cause !== null;
  const row = (
    <tr class={tone}>
      <th scope="row">
        <a href={vehiclePath(id)}>{name}</a>
      </th>
      <td data-label={names.bay}>{vehicle?.charger ?? "–"}</td>
      <Cell label={names.leaves} name="strong-time">
        {departure === null ? null : naming.time(departure.at)}
      </Cell>
      <Cell label={names.slack} name="slack">
        {slack === null ? null : (
          <>
            <State
              shown={slack}
              {...(departure?.slackS == null ? {} : { extra: span(departure.slackS * 1000) })}
            />
            {departure?.cause != null && <small class="only-phone"> {t.cause[departure.cause]}</small>}
          </>
        )}
      </Cell>
      <Cell label={names.missing} name="number">
        {departure === null ? null : (
          <>
            {departure.remainingWh === null ? "–" : kilowattHours(departure.remainingWh)}
            <small class="cause">{chargeText(departure)}</small>
          </>
        )}
      </Cell>
      <td data-label={names.power} class={`number power${isOld ? " is-stale" : ""}`}>
        {charger?.measured?.powerW == null ? "–" : kilowatts(charger.measured.powerW)}
        {charger?.asked != null && <small> / {setpointText(charger.allowed)}</small>}
        {charger?.asked != null && <small class="cause">{charger.asked.event}</small>}
      </td>
      <Cell label={names.ready}>{departure?.readyAt == null ? null : naming.time(departure.readyAt)}</Cell>
      <td class="act">
        {charger?.hold == null ? (
          <Act
            role="operator"
            label={words.chargeNow}
            name={`${words.chargeNow} ${name}`}
            kind={slack?.tone === "bad" ? "strong" : "plain"}
            onPress={() => overrideVehicle(id)}
          />
        ) : (
          <State shown={{ word: words.held, shape: "hand", tone: "info" }} />
        )}
      </td>
    </tr>
  );
  if (!isExplained) return row;
  return (
    <>
      {row}
      <tr class={`why ${tone}`}>
        <td colSpan={COLUMNS}>{departure.because}</td>
      </tr>
    </>
  );
}

/** Columns of the table of departures. */
const COLUMNS = 8;

/** The button of the dialog for a departure. */
export function SetDeparture({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Act role="operator" label={t.vehicle.setDeparture} onPress={() => setOpen(true)} />
      {isOpen && <DepartureDialog id={id} onClose={() => setOpen(false)} />}
    </>
  );
}
