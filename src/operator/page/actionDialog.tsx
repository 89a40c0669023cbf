import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { changeProblem, post, put, remove } from "./api.ts";
import type { Departure } from "./apiAnswers.ts";
import { clockTime, dateOf, dayOf, kilowattHours, nearTime, nextTimes } from "./format.ts";
import { naming } from "./holdWords.ts";
import { Dialog, ReasonField } from "./parts.tsx";
import { chargers, departures, loadDepartures, now, vehicles, zone } from "./store.ts";
import { t } from "./texts.ts";

const setWords = t.vehicle;

/** The consequences of an action, before it is done. */
export const Consequences = ({ lines }: { readonly lines: readonly string[] }) => (
  <div class="consequence" aria-live="polite">
    <h3>{t.hold.will}</h3>
    <ul>
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  </div>
);

/** The last row of a form. It names what is missing, because on a phone the reasons may be out of sight. */
export const Buttons = ({
  submit,
  reason,
  isReady,
  onClose,
}: {
  readonly submit: string;
  readonly reason: string;
  readonly isReady: boolean;
  readonly onClose: () => void;
}) => (
  <div class="buttons">
    {reason.trim() === "" && <p class="hint">{t.hold.reasonFirst}</p>}
    <button type="button" class="plain" onClick={onClose}>
      {t.hold.cancel}
    </button>
    <button class="strong" disabled={!isReady || reason.trim() === ""}>
      {submit}
    </button>
  </div>
);

/**
 * A dialog that acts. It lists what will happen and to whom, and takes a reason. `act` returns what the dialog shows
 * afterwards. Null: it closes.
 */
export function ActionDialog({
  title,
  will,
  presets,
  label = t.hold.reason,
  first = "",
  submit,
  isReady = true,
  act,
  onClose,
  children,
}: {
  readonly title: string;
  readonly will: readonly string[];
  readonly presets: readonly string[];
  readonly label?: string;
  /** The reason that is chosen when the dialog opens. */
  readonly first?: string;
  readonly submit: string;
  /** False: a choice is missing. */
  readonly isReady?: boolean;
  readonly act: (reason: string) => Promise<ComponentChildren>;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}) {
  const words = t.hold;
  const [reason, setReason] = useState(first);
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState<ComponentChildren>(null);
  const run = async (): Promise<void> => {
    setBusy(true);
    setTrouble("");
    try {
      const shown = await act(reason.trim());
      if (shown === null) onClose();
      else setResult(shown);
    } catch (error) {
      setTrouble(changeProblem(error));
    } finally {
      setBusy(false);
    }
  };
  if (result !== null)
    return (
      <Dialog title={title} onClose={onClose}>
        {result}
        <div class="buttons">
          <button type="button" class="strong" onClick={onClose}>
            {words.close}
          </button>
        </div>
      </Dialog>
    );
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <Consequences lines={will} />
        {children}
        <ReasonField label={label} presets={presets} value={reason} onChange={setReason} />
        <p class="problem" role="alert">
          {trouble}
        </p>
        <Buttons submit={submit} reason={reason} isReady={isReady && !isBusy} onClose={onClose} />
      </form>
    </Dialog>
  );
}

const HOUR = 3_600_000;
/** Days ahead that the API takes. */
const FARTHEST = 31;
const NEEDS = ["soc", "energy", "stays", "weekly"] as const;
type Needed = (typeof NEEDS)[number];

/** The need of a departure as the fields of the dialog show it. Without a departure: what can be measured. */
function needOf(known: Departure | undefined, hasSoc: boolean): { needed: Needed; amount: string } {
  if (known === undefined) return { needed: hasSoc ? "soc" : "energy", amount: "" };
  return "soc" in known.need
    ? { needed: "soc", amount: String(known.need.soc) }
    : { needed: "energy", amount: String(known.need.energyWh / 1000) };
}

/** Sets when the vehicle leaves, and with how much, or that it stays. */
export function DepartureDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
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
      await act();
      await loadDepartures();
      onClose();
    } catch (error) {
      setProblem(changeProblem(error));
    }
  };
  const leavesThen = needed === "soc" || needed === "energy";
  const will = leavesThen
    ? setWords.departureWill(name, nearTime(zone.value, leaves, now.value))
    : needed === "stays"
      ? setWords.departureSkips(name, dayOf(zone.value, first))
      : setWords.departureClears(name, known?.by ?? null);
  const offers = (each: Needed): boolean =>
    each === "stays"
      ? known !== undefined
      : each !== "weekly" || (known !== undefined && known.source !== "weekly");
  return (
    <Dialog title={setWords.departureOf(name)} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Consequences lines={[will, setWords.departureRecord]} />
        <fieldset>
          <legend>{setWords.needs}</legend>
          <div class="choices">
            {NEEDS.filter(offers).map((each) => (
              <label key={each} class="choice">
                <input
                  type="radio"
                  name="needed"
                  checked={needed === each}
                  onChange={() => setNeed({ needed: each, amount: each === needed ? amount : "" })}
                />
                <span>{setWords.needed[each]}</span>
              </label>
            ))}
          </div>
        </fieldset>
        {leavesThen && (
          <div class="choices">
            <label>
              {t.now.columns.leaves}{" "}
              <input
                type="time"
                class="short"
                required
                value={clock}
                onInput={({ currentTarget }) => setClock(currentTarget.value)}
              />
            </label>
            <label>
              {setWords.day}{" "}
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
              {setWords.needed[needed]}{" "}
              <input
                type="number"
                class="short"
                min={1}
                max={needed === "soc" ? 100 : 10_000}
                step="any"
                required
                value={amount}
                onInput={({ currentTarget }) => setNeed({ needed, amount: currentTarget.value })}
              />
            </label>
          </div>
        )}
        {needed === "energy" && known?.deliveredWh != null && (
          <p class="hint">{setWords.deliveredSoFar(kilowattHours(known.deliveredWh))}</p>
        )}
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="buttons">
          <button type="button" class="plain" onClick={onClose}>
            {t.hold.cancel}
          </button>
          <button class="strong">{setWords.setDepartureSubmit}</button>
        </div>
      </form>
    </Dialog>
  );
}
