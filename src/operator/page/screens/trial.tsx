import { useState } from "preact/hooks";

import { ActionDialog } from "../actionDialog.tsx";
import { post, problemText, remove, requestKey } from "../api.ts";
import type { Trial, TrialRun } from "../apiAnswers.ts";
import { useLoaded } from "../effects.ts";
import { amps, exactTime, levelText, loadedPhase, setpointText, span } from "../format.ts";
import { Act, Age, Dialog, State } from "../parts.tsx";
import { chargers, vehicles, zone } from "../store.ts";
import { t } from "../texts.ts";

const words = t.system.trials;

const pathOf = (id: string): string => `chargers/${encodeURIComponent(id)}/trial`;
const isRunning = (run: TrialRun | null): boolean => run !== null && run.endedAt === null;

/** Tries a charger: what will be sent to which bay, then each step and the measured result. */
export function TrialDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const { value, problem } = useLoaded<Trial>(pathOf(id));
  const [silence, setSilence] = useState(false);
  const [key] = useState(requestKey);
  const charger = chargers.of(id);
  const vehicle = charger?.vehicle ?? null;
  const who = vehicle === null ? id : `${id} (${vehicles.of(vehicle)?.name ?? vehicle})`;
  if (value === null || isRunning(value.run) || value.hindrance !== null)
    return (
      <Dialog title={words.of(who)} onClose={onClose}>
        {value === null && <p class="quiet">{problem ?? t.loading}</p>}
        {value !== null && isRunning(value.run) && <Progress id={id} />}
        {value !== null && !isRunning(value.run) && <p>{words.notNow(value.hindrance ?? "")}</p>}
        <div class="buttons">
          <button type="button" class="strong" onClick={onClose}>
            {t.hold.close}
          </button>
        </div>
      </Dialog>
    );
  const { levels, waitS, silence: promised } = value.plan;
  return (
    <ActionDialog
      title={words.of(who)}
      will={[
        words.willSend(who, levels.map(levelText).join(", "), span(waitS * 1000)),
        ...(vehicle === null ? [words.willNotMeasure] : []),
        ...(silence ? [words.willBeSilent(promised.effect, span(promised.afterS * 1000))] : []),
        words.willRestore(setpointText(charger?.allowed ?? null)),
        words.willYield,
      ]}
      presets={words.presets}
      submit={words.start}
      act={async (reason) => {
        await post<Trial>(pathOf(id), { silence, reason }, { "idempotency-key": key });
        return <Progress id={id} />;
      }}
      onClose={onClose}
    >
      <label class="choice">
        <input
          type="checkbox"
          checked={silence}
          onChange={({ currentTarget }) => setSilence(currentTarget.checked)}
        />
        <span>{words.alsoSilence}</span>
      </label>
    </ActionDialog>
  );
}

const EFFECT = {
  followed: { word: words.followed, shape: "dot", tone: "good" },
  notFollowed: { word: words.notFollowed, shape: "cross", tone: "bad" },
  unmeasured: { word: words.unmeasured, shape: "ring", tone: "mute" },
} as const;
const RESULT = {
  good: { word: words.good, shape: "dot", tone: "good" },
  bad: { word: words.bad, shape: "cross", tone: "bad" },
} as const;

/** A trial while it runs, and its result. It goes on when the dialog is closed. */
function Progress({ id }: { readonly id: string }) {
  const { value, problem } = useLoaded<Trial>(pathOf(id), 1000);
  const [trouble, setTrouble] = useState("");
  const run = value?.run ?? null;
  if (run === null) return <p class="quiet">{problem ?? t.loading}</p>;
  const { result } = run;
  const measured = chargers.of(id)?.measured ?? null;
  const drawn = loadedPhase(measured?.currentsA);
  const stop = (): void => void remove(pathOf(id)).catch((error: unknown) => setTrouble(problemText(error)));
  return (
    <div class="trial-run" aria-live="polite">
      <ol>
        {run.steps.map(({ at, message }) => (
          <li key={`${at} ${message}`}>
            <time>{exactTime(zone.value, Date.parse(at))}</time> {message}
          </li>
        ))}
      </ol>
      {result === null ? (
        <>
          <p>
            {words.measuredNow} <strong>{drawn === null ? "–" : amps(drawn)}</strong>{" "}
            <Age at={measured?.at} />
          </p>
          <Act role="integrator" label={words.stop} onPress={stop} />
        </>
      ) : (
        <>
          <p>
            <State shown={RESULT[result.good ? "good" : "bad"]} />
          </p>
          <ul class="effects">
            {result.levels.map(({ asked, drawnA, effect, trouble: why }) => (
              <li key={asked} class="effect">
                <strong>{asked}</strong>
                <span>{drawnA === null ? "–" : words.drew(amps(drawnA))}</span>
                <State shown={EFFECT[effect]} />
                {why !== null && <output>{why}</output>}
              </li>
            ))}
          </ul>
          <p class="hint">{result.complaint ?? result.sentence}</p>
        </>
      )}
      <p class="problem" role="alert">
        {trouble}
      </p>
    </div>
  );
}
