import { useState } from "preact/hooks";

import { ActionDialog } from "./actionDialog.tsx";
import { post, remove } from "./api.ts";
import type { BoundVehicle, Charger, Explanation } from "./apiAnswers.ts";
import { chargerState, isUnnamed } from "./derive.ts";
import { useLoaded, useRequestKey } from "./effects.ts";
import { levelText } from "./format.ts";
import { Effects } from "./holdEffect.tsx";
import { naming } from "./holdWords.ts";
import { Act } from "./parts.tsx";
import { brokersAway, chargers, now, vehicles } from "./store.ts";
import { t } from "./texts.ts";

const words = t.binding;

/** Bays at which a person may name the vehicle, those without one first. */
const choosable = (): readonly Charger[] =>
  chargers.all.value
    .filter(({ measured, reachable }) => measured !== null && reachable === true)
    .filter(({ measured }) => measured?.state !== "unplugged")
    .toSorted((a, b) => Number(isUnnamed(b)) - Number(isUnnamed(a)));

/** Level of the vehicle once it is assigned to a charger, in words. */
function useLevel(vehicle: string): string {
  const { value, problem } = useLoaded<Explanation>(
    vehicle === "" ? null : `explain?vehicle=${encodeURIComponent(vehicle)}`,
  );
  if (problem !== null) return problem;
  const claim = value?.claims.find(
    ({ kind, status, since }) =>
      kind === "event" &&
      (status === "wins" || status === "waits") &&
      Date.parse(since ?? "") <= Date.parse(value.at),
  );
  if (claim === undefined) return words.getsNothing;
  const until = claim.until === null ? "" : naming.time(claim.until);
  return words.gets(claim.source, levelText(claim.level), until);
}

/** Names the vehicle on a charger: one of both is given, the other one is chosen. */
export function BindDialog({
  vehicle: given,
  charger: at,
  onClose,
}: {
  readonly vehicle: string | null;
  readonly charger: string | null;
  readonly onClose: () => void;
}) {
  const keyOf = useRequestKey();
  const [vehicle, setVehicle] = useState(given ?? "");
  const [charger, setCharger] = useState(at ?? "");
  const level = useLevel(vehicle);
  const from = vehicle === "" ? null : (vehicles.of(vehicle)?.charger ?? null);
  const there = chargers.of(charger)?.vehicle ?? null;
  const isChosen = vehicle !== "" && charger !== "";
  const act = async (reason: string) => {
    const since = now.value;
    const before = new Map([[charger, chargers.of(charger)?.command ?? null]]);
    const bound = await post<BoundVehicle>(
      `chargers/${encodeURIComponent(charger)}/vehicle`,
      { vehicle, reason },
      { "idempotency-key": keyOf({ charger, vehicle, reason }) },
    );
    return (
      <>
        <p>{bound.sentence}</p>
        <Effects affected={[{ charger, level: bound.level }]} since={since} before={before} />
      </>
    );
  };
  const will = isChosen
    ? [
        words.will(naming.vehicle(vehicle), charger),
        level,
        ...(there === null || there === vehicle ? [] : [words.instead(naming.vehicle(there))]),
        ...(from === null || from === charger ? [] : [words.leaves(from)]),
        words.ends(charger),
        words.record,
      ]
    : [words.choose];
  return (
    <ActionDialog
      title={given === null ? words.titleAt(charger) : words.titleOf(naming.vehicle(given))}
      will={will}
      presets={words.presets}
      submit={words.submit}
      isReady={isChosen}
      act={act}
      onClose={onClose}
    >
      <div class="choices">
        {given === null ? (
          <label>
            {words.vehicle}{" "}
            <select
              required
              value={vehicle}
              onChange={({ currentTarget }) => setVehicle(currentTarget.value)}
            >
              <option value="">{words.chooseVehicle}</option>
              {vehicles.all.value
                .toSorted((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))
                .map(({ id, name, charger: bay }) => (
                  <option key={id} value={id}>
                    {bay === null ? name : words.option(name, bay)}
                  </option>
                ))}
            </select>
          </label>
        ) : (
          <label>
            {words.bay}{" "}
            <select
              required
              value={charger}
              onChange={({ currentTarget }) => setCharger(currentTarget.value)}
            >
              <option value="">{words.chooseBay}</option>
              {choosable()
                .filter((each) => each.vehicle !== given)
                .map((each) => (
                  <option key={each.charger} value={each.charger}>
                    {words.option(
                      each.charger,
                      each.vehicle === null
                        ? chargerState(each, brokersAway.value).word
                        : naming.vehicle(each.vehicle),
                    )}
                  </option>
                ))}
            </select>
          </label>
        )}
      </div>
    </ActionDialog>
  );
}

/** Binding of the vehicle to its bay by a person, and the way to change it. */
export function Bind({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false);
  /** The bay: the vehicle is at none once it is taken back. */
  const [ending, setEnding] = useState<string | null>(null);
  const place = vehicles.of(id)?.charger ?? null;
  const charger = place === null ? undefined : chargers.of(place);
  const binding = charger?.binding ?? null;
  const takeBack = async (reason: string) => {
    const bound = await remove<BoundVehicle>(`chargers/${encodeURIComponent(ending ?? "")}/vehicle`, {
      reason,
    });
    return <p>{bound.sentence}</p>;
  };
  return (
    <>
      <Act role="operator" label={words.label} onPress={() => setOpen(true)} />
      {binding !== null && charger !== undefined && (
        <>
          <Act
            role="operator"
            label={words.takeBack(charger.charger)}
            onPress={() => setEnding(charger.charger)}
          />
          <p class="hint">
            {naming.vehicle(id)}{" "}
            {words.said(binding.by, charger.charger, naming.time(binding.since), binding.reason)}
          </p>
        </>
      )}
      {isOpen && <BindDialog vehicle={id} charger={null} onClose={() => setOpen(false)} />}
      {ending !== null && (
        <ActionDialog
          title={words.takeBackTitle(naming.vehicle(id), ending)}
          will={[words.takeBackWill(naming.vehicle(id), ending), words.record]}
          presets={words.takeBackPresets}
          submit={words.takeBackSubmit}
          act={takeBack}
          onClose={() => setEnding(null)}
        />
      )}
    </>
  );
}
