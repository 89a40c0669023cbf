import { useState } from "preact/hooks";

import { put, Refused } from "../api.ts";
import { Act, Dialog } from "../parts.tsx";
import { loadDepartures, vehicles } from "../store.ts";
import { t } from "../texts.ts";

const words = t.vehicle;

/** Sets when the vehicle leaves, and with how much. */
export function SetDeparture({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState("05:40");
  const [kilowattHoursNeeded, setNeed] = useState("30");
  const [problem, setProblem] = useState("");
  const name = vehicles.of(id)?.name ?? id;
  const submit = async (): Promise<void> => {
    try {
      await put(`departures/${encodeURIComponent(id)}`, { at, energyWh: Number(kilowattHoursNeeded) * 1000 });
      await loadDepartures();
      setOpen(false);
    } catch (error) {
      setProblem(
        error instanceof Refused ? [error.message, error.detail].filter(Boolean).join(". ") : String(error),
      );
    }
  };
  return (
    <>
      <Act role="operator" label={words.setDeparture} onPress={() => setOpen(true)} />
      {isOpen && (
        <Dialog title={words.departureOf(name)} onClose={() => setOpen(false)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void submit();
            }}
          >
            <div class="choices">
              <label>
                {t.now.columns.leaves}{" "}
                <input
                  type="time"
                  class="short"
                  required
                  value={at}
                  onInput={({ currentTarget }) => setAt(currentTarget.value)}
                />
              </label>
              <label>
                {words.needs}{" "}
                <input
                  type="number"
                  class="short"
                  min={1}
                  max={1000}
                  step="any"
                  required
                  value={kilowattHoursNeeded}
                  onInput={({ currentTarget }) => setNeed(currentTarget.value)}
                />
              </label>
            </div>
            <p class="hint">{words.departureWill(name)}</p>
            <p class="problem" role="alert">
              {problem}
            </p>
            <div class="buttons">
              <button type="button" class="plain" onClick={() => setOpen(false)}>
                {t.hold.cancel}
              </button>
              <button class="strong">{words.setDepartureSubmit}</button>
            </div>
          </form>
        </Dialog>
      )}
    </>
  );
}
