import { useState } from "preact/hooks";

import { ActionForm, Choices, NumberField, TimeField } from "../actionDialog.tsx";
import { changeProblem, post, put, remove } from "../api.ts";
import type { Departure } from "../apiAnswers.ts";
import { isStale, leavingNext, slackState } from "../derive.ts";
import {
  clockTime,
  dateOf,
  dayOf,
  kilowattHours,
  kilowatts,
  nearTime,
  needOf,
  NEEDS,
  nextTimes,
  percent,
  setpointText,
  setText,
  span,
} from "../format.ts";
import { overrideVehicle } from "../hold.tsx";
import { naming } from "../holdWords.ts";
import { Act, Cell, Dialog, Section, State } from "../parts.tsx";
import { linkTo, vehiclePath } from "../router.ts";
import { brokersAway, chargers, departures, hasDepartures } from "../store.ts";
import { loadDepartures, now, vehicles, zone } from "../store.ts";
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
  return (
    <Section name="leaving" title={words.leaving} aside={aside}>
      {known.length === 0 && (
        <p class="quiet">{hasDepartures.value ? words.noDepartures : words.noDeparturesYet}</p>
      )}
      {known.length + rest.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              {COLUMNS.map((name) => (
                <th key={name} class={name === "missing" || name === "power" ? "number" : ""}>
                  {words.columns[name]}
                </th>
              ))}
              <th>
                <span class="unseen">{words.columns.action}</span>
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
  if (departure === null || departure.cause === null) return row;
  return (
    <>
      {row}
      <tr class={`why ${tone}`}>
        <td colSpan={COLUMNS.length + 1}>{departure.because}</td>
      </tr>
    </>
  );
}

/** Columns of the table of departures, before that of the actions. */
const COLUMNS = ["vehicle", "bay", "leaves", "slack", "missing", "power", "ready"] as const;

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

const departureWords = t.vehicle;
const HOUR = 3_600_000;
/** Days ahead that the API takes. */
const FARTHEST = 31;

/** Sets when the vehicle leaves, and with how much, or that it stays. */
function DepartureDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  // Known values are offered first.
  const [known] = useState(() => departures.of(id));
  const hasSoc = chargers.of(vehicles.of(id)?.charger ?? "")?.soc != null;
  const [first] = useState(() => (known === undefined ? now.value + HOUR : Date.parse(known.at)));
  const [clock, setClock] = useState(() => clockTime(zone.value, first));
  const [day, setDay] = useState(() => dateOf(zone.value, first));
  const [{ needed, amount }, setNeed] = useState(() => needOf(known, hasSoc));
  const [problem, setProblem] = useState("");
  const name = naming.vehicle(id);
  const path = `departures/${encodeURIComponent(id)}`;
  const offered = nextTimes(zone.value, now.value, clock, FARTHEST);
  // A time that has passed today is the next one.
  const leaves = offered.find((at) => dateOf(zone.value, at) === day) ?? offered[0] ?? now.value;
  const at = new Date(leaves).toISOString();
  const act = (): Promise<unknown> => {
    if (needed === "soc") return put(path, { at, soc: Number(amount) });
    if (needed === "energy") return put(path, { at, energyWh: Number(amount) * 1000 });
    if (needed === "weekly") return remove(path);
    return post(`${path}/skip`, { date: dateOf(zone.value, first) });
  };
  const submit = async (): Promise<void> => {
    try {
      const shown = setText(departures.of(id));
      await loadDepartures();
      if (setText(departures.of(id)) !== shown) return setProblem(departureWords.departureChanged);
      await act();
      await loadDepartures();
      onClose();
    } catch (error) {
      setProblem(changeProblem(error));
    }
  };
  const leavesThen = needed === "soc" || needed === "energy";
  const will = leavesThen
    ? departureWords.departureWill(name, nearTime(zone.value, leaves, now.value))
    : needed === "stays"
      ? departureWords.departureSkips(name, dayOf(zone.value, first))
      : departureWords.departureClears(name, known?.by ?? null);
  const isSet = known !== undefined && known.source !== "weekly";
  const offers = (each: string): boolean =>
    each === "weekly" ? isSet : each !== "stays" || known !== undefined;
  const present = departures.of(id);
  const newTime = present && naming.time(present.at);
  const changed =
    setText(present) === setText(known) ? [] : [departureWords.departureNow(newTime, present?.by ?? null)];
  return (
    <Dialog title={departureWords.departureOf(name)} onClose={onClose}>
      <ActionForm
        will={[...changed, will, departureWords.departureRecord]}
        trouble={problem}
        onSubmit={submit}
        buttons={
          <div class="buttons">
            <button type="button" class="plain" onClick={onClose}>
              {t.hold.cancel}
            </button>
            <button class="strong">{departureWords.setDepartureSubmit}</button>
          </div>
        }
      >
        <fieldset>
          <legend>{departureWords.needs}</legend>
          <div class="choices">
            <Choices
              name="needed"
              options={NEEDS.filter(offers).map((each) => ({
                value: each,
                label: departureWords.needed[each],
              }))}
              value={needed}
              onChange={(each) => setNeed({ needed: each, amount: each === needed ? amount : "" })}
            />
          </div>
        </fieldset>
        {leavesThen && (
          <div class="choices">
            <label>
              {t.now.columns.leaves} <TimeField value={clock} onChange={setClock} />
            </label>
            <label>
              {departureWords.day}{" "}
              <select
                value={dateOf(zone.value, leaves)}
                onChange={({ currentTarget }) => setDay(currentTarget.value)}
              >
                {offered.map((each) => (
                  <option key={each} value={dateOf(zone.value, each)}>
                    {dayOf(zone.value, each)}
                  </option>
                ))}
              </select>
            </label>
            <label>
              {departureWords.needed[needed]}{" "}
              <NumberField
                most={needed === "soc" ? 100 : 10_000}
                value={amount}
                onChange={(text) => setNeed({ needed, amount: text })}
              />
            </label>
          </div>
        )}
        {needed === "energy" && known?.deliveredWh != null && (
          <p class="hint">{departureWords.deliveredSoFar(kilowattHours(known.deliveredWh))}</p>
        )}
      </ActionForm>
    </Dialog>
  );
}
