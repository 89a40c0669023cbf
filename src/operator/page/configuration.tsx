import { useEffect, useState } from "preact/hooks";

import { ActionDialog, Tick } from "./actionDialog.tsx";
import { get, post } from "./api.ts";
import type { ChangedConfiguration, Configuration } from "./apiAnswers.ts";
import type { Shown } from "./derive.ts";
import { useLoaded } from "./effects.ts";
import { exactTime } from "./format.ts";
import { naming } from "./holdWords.ts";
import { Act, Section, State } from "./parts.tsx";
import { mayAct, zone } from "./store.ts";
import { t } from "./texts.ts";

const words = t.configuration;

/** Ms between two requests for the configuration, and between two while the gateway starts again. */
const EVERY = 60_000;
const RESULT_EVERY = 500;
/** Ms until the page no longer expects an answer at its address. */
const RESULT_WITHIN = 60_000;

type Kept = Configuration["kept"][number];

/** The configuration that runs, the file, and those that ran: what an integrator may do about them. */
export function ConfigurationPanel() {
  const [changes, setChanges] = useState(0);
  const [isApply, setApply] = useState(false);
  const [kept, setKept] = useState<Kept | null>(null);
  const may = mayAct("integrator");
  const { value } = useLoaded<Configuration>(may ? "configuration" : null, EVERY, changes);
  if (value === null || value.running === null) return null;
  const close = (): void => {
    setApply(false);
    setKept(null);
    setChanges(changes + 1);
  };
  const earlier = value.kept.filter(({ fingerprint }) => fingerprint !== value.running?.fingerprint);
  return (
    <Section name="system-configuration" title={words.title} aside={<State shown={STATES[value.state]} />}>
      <p class="quiet">{value.running.sentence}</p>
      {value.last?.result === "fellBack" && (
        <p class="problem">{words.fellBack(value.last.fingerprint, value.last.failure ?? "")}</p>
      )}
      <Differences {...value} />
      {value.state === "differs" && value.needsRestart.length === 0 && (
        <div class="acts">
          <Act role="integrator" label={words.apply} onPress={() => setApply(true)} />
        </div>
      )}
      {earlier.length > 0 && <Earlier all={earlier} onPick={setKept} />}
      {(isApply || kept !== null) && <ChangeDialog found={value} kept={kept} onClose={close} />}
    </Section>
  );
}

const STATES: Readonly<Record<Configuration["state"], Shown>> = {
  same: { word: words.same, shape: "dot", tone: "good" },
  differs: { word: words.differs, shape: "triangle", tone: "warn" },
  broken: { word: words.broken, shape: "cross", tone: "bad" },
  unreadable: { word: words.unreadable, shape: "cross", tone: "bad" },
};

/** Differences of the configuration file from what runs: paths without values, which may be secrets. */
const Differences = ({ file, state, changes, mistakes, needsRestart }: Configuration) =>
  state === "same" ? null : (
    <div class="differences">
      <p class="hint">{words.fileState(file ?? "", state, needsRestart)}</p>
      <ul>
        {(changes ?? []).map(({ path, change }) => (
          <li key={path}>
            {words.changes[change]} <code>{path}</code>
          </li>
        ))}
        {mistakes.map(({ path, line, expected }) => (
          <li key={`${path} ${line}`} class="problem">
            {words.mistake(path, line, expected)}
          </li>
        ))}
      </ul>
    </div>
  );

function Earlier({ all, onPick }: { readonly all: readonly Kept[]; readonly onPick: (kept: Kept) => void }) {
  return (
    <div class="differences">
      <h3>{words.earlier}</h3>
      <ul class="plain">
        {all.map((kept) => (
          <li key={kept.fingerprint}>
            <code>{kept.fingerprint}</code> {words.ran(naming.time(kept.at))}
            {kept.by !== null && ` ${t.hold.by(kept.by, kept.reason ?? "")}`}{" "}
            <small>{kept.paths === null ? "" : words.differsIn(kept.paths)}</small>{" "}
            <Act
              role="integrator"
              label={words.back}
              name={`${words.back} ${kept.fingerprint}`}
              onPress={() => onPick(kept)}
            />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Consequences of a change, and its result through the restart. `kept` null: the file is applied. */
function ChangeDialog({
  found: before,
  kept,
  onClose,
}: {
  readonly found: Configuration;
  readonly kept: Kept | null;
  readonly onClose: () => void;
}) {
  const [found, setFound] = useState(before);
  const [isForced, setForced] = useState(false);
  const [isRefused, setRefused] = useState(false);
  useEffect(() => {
    void get<Configuration>("configuration").then(setFound, () => undefined);
  }, []);
  const { fingerprint: file, running, interrupts, restartMs, onStop, limited } = found;
  const paths = kept === null ? (found.changes ?? []).map(({ path }) => path) : (kept.paths ?? []);
  const to = kept?.fingerprint ?? file ?? "";
  const will = [
    words.will(to, running?.fingerprint ?? "", kept !== null),
    words.willChange(paths),
    words.willTake(restartMs, limited, onStop),
    words.willFallBack(running?.fingerprint ?? ""),
    ...(kept === null ? [] : [words.willStay]),
    ...interrupts.map(({ sentence }) => words.interrupts(sentence)),
  ];
  const needsForce = interrupts.length > 0 || isRefused;
  const act = async (reason: string) => {
    const body = { reason, fingerprint: to, force: isForced };
    try {
      await post<ChangedConfiguration>(`configuration/${kept === null ? "apply" : "rollback"}`, body);
    } catch (error) {
      setRefused(true);
      throw error;
    }
    return <ChangeResult />;
  };
  return (
    <ActionDialog
      title={kept === null ? words.applyTitle : words.backTitle}
      will={will}
      presets={kept === null ? words.applyPresets : words.backPresets}
      submit={kept === null ? words.applySubmit : words.backSubmit}
      isReady={!needsForce || isForced}
      act={act}
      onClose={onClose}
    >
      {needsForce && <Tick label={words.force} isSet={isForced} onChange={setForced} />}
    </ActionDialog>
  );
}

/** Asks until the gateway has started again. */
function ChangeResult() {
  const [end, setEnd] = useState<Configuration | null>(null);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    let isOpen = true;
    const ask = async (): Promise<void> => {
      const found = await get<Configuration>("configuration").catch(() => null);
      if (isOpen && found?.last != null && found.last.result !== "underWay") setEnd(found);
      else if (isOpen) timer = setTimeout(() => void ask(), RESULT_EVERY);
    };
    let timer = setTimeout(() => void ask(), RESULT_EVERY);
    const late = setTimeout(() => setLate(true), RESULT_WITHIN);
    return () => {
      isOpen = false;
      clearTimeout(timer);
      clearTimeout(late);
    };
  }, []);
  const last = end?.last ?? null;
  return (
    <output class="changed">
      {end === null || last === null
        ? isLate
          ? words.late
          : words.starts
        : last.result === "running"
          ? words.runs(
              exactTime(zone.value, Date.parse(end.running?.since ?? "")),
              last.fingerprint,
              last.tookMs ?? 0,
            )
          : words.fellBack(last.fingerprint, last.failure ?? "")}
    </output>
  );
}
