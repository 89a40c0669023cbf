import { useState } from "preact/hooks";

import { ActionDialog, Tick } from "../actionDialog.tsx";
import { post, problemText, remove } from "../api.ts";
import type { BrokerTrial, BrokerTrials, Trial, TrialRun } from "../apiAnswers.ts";
import { useLoaded, useRequestKey } from "../effects.ts";
import { amps, dayOf, exactTime, levelText, loadedPhase, setpointText, span } from "../format.ts";
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
  const keyOf = useRequestKey();
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
        const body = { silence, reason };
        await post<Trial>(pathOf(id), body, { "idempotency-key": keyOf(body) });
        return <Progress id={id} />;
      }}
      onClose={onClose}
    >
      <Tick label={words.alsoSilence} isSet={silence} onChange={setSilence} />
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

/** Tries the brokers: what is asked of which broker, and the answer of each. */
export function BrokerDialog({
  onTried,
  onClose,
}: {
  readonly onTried: (trial: BrokerTrials) => void;
  readonly onClose: () => void;
}) {
  return (
    <ActionDialog
      title={broker.title}
      will={broker.will}
      presets={broker.presets}
      submit={broker.start}
      act={async (reason) => {
        const trial = await post<BrokerTrials>("broker/trial", { reason });
        onTried(trial);
        const failed = trial.brokers.filter(({ passed }) => !passed).map((each) => each.broker);
        return (
          <>
            <p role="status">{trial.passed ? broker.allPassed : words.steps.failed(failed.join(", "), 0)}</p>
            <BrokerResults trial={trial} />
          </>
        );
      }}
      onClose={onClose}
    />
  );
}

const broker = words.brokers;

/** Result of each broker: the login, the refused topics, and the lines that allow them. */
export const BrokerResults = ({ trial: { at, by, brokers } }: { readonly trial: BrokerTrials }) => (
  <div class="broker-results">
    <p class="cause">
      {broker.by(by, `${dayOf(zone.value, Date.parse(at))} ${exactTime(zone.value, Date.parse(at))}`)}{" "}
      <Age at={at} />
    </p>
    {brokers.map((each) => (
      <BrokerResult key={each.broker} trial={each} />
    ))}
  </div>
);

function BrokerResult({ trial }: { readonly trial: BrokerTrial }) {
  const { topics, refused, untold, unheard, acl, connectedSince, trouble } = trial;
  const since = connectedSince === null ? null : Date.parse(connectedSince);
  return (
    <div>
      <strong>{trial.broker}</strong> <State shown={RESULT[trial.passed ? "good" : "bad"]} />
      <ul>
        {trouble !== null && <li>{trouble}</li>}
        {since !== null && (
          <li>
            {broker.login(trial.username, trial.mqtt ?? "", trial.clientId)}{" "}
            {broker.since(`${dayOf(zone.value, since)} ${exactTime(zone.value, since)}`)}
          </li>
        )}
        {trial.isEmbedded && <li>{broker.embedded}</li>}
        {trouble === null && <li>{broker.counts(topics)}</li>}
        {refused.map(({ access, topic, found }) => (
          <li key={`${access} ${topic}`}>
            <State shown={{ word: broker.refused[access], shape: "cross", tone: "bad" }} />{" "}
            <code>{topic}</code> <small class="cause">{found}</small>
          </li>
        ))}
        {topics.refused > refused.length && <li>{broker.more(topics.refused - refused.length)}</li>}
        {unheard.length > 0 && (
          <li>
            {broker.unheard} <code>{unheard.join(", ")}</code>
          </li>
        )}
      </ul>
      {acl.length > 0 && <AccessLines lines={acl} />}
      {untold.length > 0 && (
        <details>
          <summary>{broker.untold(topics.untold)}</summary>
          <ul>
            {untold.map(({ access, topic, found }) => (
              <li key={`${access} ${topic}`}>
                {broker.access[access]} <code>{topic}</code> <small class="cause">{found}</small>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

/** Lines for the access list of a broker. Browsers copy only where the page came over TLS, or from this machine. */
function AccessLines({ lines }: { readonly lines: readonly string[] }) {
  const [copied, setCopied] = useState("");
  const text = lines.join("\n");
  const copy = (): void =>
    void navigator.clipboard.writeText(text).then(
      () => setCopied(broker.copied),
      () => setCopied(broker.notCopied),
    );
  return (
    <div>
      <p>{broker.allow}</p>
      <pre>{text}</pre>
      <p class="cause">{broker.rest}</p>
      {isSecureContext && (
        <button type="button" class="plain" onClick={copy}>
          {broker.copy}
        </button>
      )}
      <output class="hint">{copied}</output>
    </div>
  );
}
