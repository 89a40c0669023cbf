import { useMemo, useState } from "preact/hooks";

import { get } from "../api.ts";
import type { AuditRow, BrokerTrials } from "../apiAnswers.ts";
import { brokerTrialIn, figuresIn, type Trial } from "../commands.ts";
import { bad, good, mute, type Shown } from "../derive.ts";
import { useSteady } from "../effects.ts";
import { dayOf, kilowatts, span } from "../format.ts";
import { naming } from "../holdWords.ts";
import { Act, Cell, HeadRow, Section, State } from "../parts.tsx";
import { fusePower } from "../power.ts";
import { linkTo } from "../router.ts";
import { chargers, events, now, site, status, zone } from "../store.ts";
import { t } from "../texts.ts";
import { DryRun } from "./eventParts.tsx";
import { BrokerDialog, BrokerResults, TrialDialog } from "./trial.tsx";

const words = t.system.trials;

/** S8: what has been tried and found right, for the site and for each charger. */
export function Commissioning({
  rows,
  isCut,
}: {
  readonly rows: readonly AuditRow[];
  readonly isCut: boolean;
}) {
  const recent = useMemo(() => figuresIn(rows, now.peek()), [rows]);
  const [older, setOlder] = useState<ReadonlyMap<string, Trial | null>>(new Map());
  const [olderBrokers, setOlderBrokers] = useState<BrokerTrials | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [opened, setOpened] = useState<string | null>(null);
  const ids = chargers.ids.value;
  const trialOf = (id: string): Trial | null => recent.get(id)?.trial ?? older.get(id) ?? null;
  const untried = ids.filter((charger) => trialOf(charger) === null && !older.has(charger));
  // The own one is newer than the rows until they are loaded again.
  const ofBrokers = [brokerTrialIn(rows), olderBrokers]
    .filter((each) => each !== null)
    .toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at));
  const brokers = ofBrokers[0] ?? null;
  const search = async (): Promise<void> => {
    setBusy(true);
    const found = new Map(older);
    try {
      if (brokers === null)
        setOlderBrokers(
          brokerTrialIn(await get<readonly AuditRow[]>("audit?kind=operator&newest=true&limit=1000")),
        );
      for (const charger of untried) {
        const path = `audit?charger=${encodeURIComponent(charger)}&kind=operator&newest=true&limit=100`;
        const own = await get<readonly AuditRow[]>(path);
        found.set(charger, figuresIn(own, now.peek()).get(charger)?.trial ?? null);
      }
    } finally {
      setOlder(found);
      setBusy(false);
    }
  };
  const oldest = rows.at(-1)?.at;
  return (
    <Section name="system-trials" title={words.title}>
      <Steps trialOf={trialOf} brokers={brokers} onBrokers={setOlderBrokers} />
      <table class="rows">
        <HeadRow columns={words.columns} />
        <tbody>
          {ids.map((id) => (
            <TrialRow key={id} id={id} trial={trialOf(id)} onTest={() => setOpened(id)} />
          ))}
        </tbody>
      </table>
      {opened !== null && <TrialDialog id={opened} onClose={() => setOpened(null)} />}
      <p class="hint">{words.how}</p>
      {isCut && (untried.length > 0 || brokers === null) && oldest !== undefined && (
        <div class="acts acts-inside">
          <button type="button" class="plain" disabled={isBusy} onClick={() => void search()}>
            {words.search}
          </button>
          <span class="hint">
            {words.searched(dayOf(zone.value, Date.parse(oldest)), untried.length, brokers !== null)}
          </span>
        </div>
      )}
    </Section>
  );
}

/** The steps of the site, each with what is missing. */
function Steps({
  trialOf,
  brokers,
  onBrokers,
}: {
  readonly trialOf: (charger: string) => Trial | null;
  readonly brokers: BrokerTrials | null;
  readonly onBrokers: (trial: BrokerTrials) => void;
}) {
  const { steps } = words;
  const { value: all } = useSteady(() =>
    chargers.all.value.map(({ charger, heardAt, occupant }) => ({
      charger,
      isHeard: heardAt !== null,
      hasVehicle: occupant === "vehicle",
    })),
  );
  const step = (label: string, missing: readonly string[], failed: readonly string[] = []) => ({
    label,
    shown:
      failed.length > 0
        ? bad(steps.failed(failed.slice(0, 8).join(", "), failed.length - 8))
        : missing.length === 0
          ? good(steps.done)
          : mute(steps.missing(all.length - missing.length, all.length)),
    missing: missing.filter((charger) => !failed.includes(charger)),
    act: null,
  });
  const without = (isDone: (charger: (typeof all)[number]) => boolean): readonly string[] =>
    all.filter((charger) => !isDone(charger)).map(({ charger }) => charger);
  const { ratings = {}, fuseA = null } = site.value ?? {};
  const fuse = fuseA === null ? null : fusePower(fuseA, ratings);
  const most = Object.values(ratings).reduce(
    (sum, { phases, voltage, maxCurrentA, maxPowerW }) =>
      sum + (maxPowerW ?? (maxCurrentA ?? 0) * phases * voltage),
    0,
  );
  const isBelow = fuse !== null && most <= fuse;
  const ended = events.all.value
    .filter(({ state, vehicles: targets = [] }) => state === "ended" && targets.length > 0)
    .toSorted((a, b) => Date.parse(b.start ?? "") - Date.parse(a.start ?? ""))[0];
  const list = [
    {
      label: steps.broker,
      shown: brokerState(brokers),
      missing: [],
      act: <Brokers trial={brokers} onTried={onBrokers} />,
    },
    step(
      steps.heard,
      without(({ isHeard }) => isHeard),
    ),
    step(
      steps.vehicle,
      without(({ hasVehicle }) => hasVehicle),
    ),
    step(
      steps.levels,
      without(({ charger }) => trialOf(charger)?.isGood === true),
      without(({ charger }) => trialOf(charger)?.isGood !== false),
    ),
    step(
      steps.silence,
      without(({ charger }) => trialOf(charger)?.silence?.isGood === true),
      without(({ charger }) => trialOf(charger)?.silence?.isGood !== false),
    ),
    {
      label: steps.fuse,
      shown:
        fuse === null
          ? mute(steps.noFuse)
          : (isBelow ? good : bad)(steps.fuseOf(kilowatts(most), kilowatts(fuse))),
      missing: [],
    },
    {
      label: steps.dryRun,
      shown: mute(ended === undefined ? steps.noEvent : (ended.name ?? ended.id)),
      missing: [],
      act: ended === undefined ? null : <DryRun event={ended} />,
    },
    {
      label: steps.handover,
      shown: mute(steps.paper),
      missing: [],
      act: (
        <a class="button plain" href={linkTo("/handover")}>
          {t.handover.title}
        </a>
      ),
    },
  ];
  return (
    <ol class="trial-steps">
      {list.map(({ label, shown, missing, act = null }) => (
        <li key={label}>
          <span>{label}</span> <State shown={shown} />
          {missing.length > 0 && missing.length < all.length && (
            <small class="cause"> {steps.without(missing.slice(0, 8).join(", "), missing.length - 8)}</small>
          )}
          {act}
        </li>
      ))}
    </ol>
  );
}

function brokerState(trial: BrokerTrials | null): Shown {
  if (status.value?.broker.connected === false) return bad(words.brokers.disconnected);
  if (trial === null) return mute(words.untried);
  const failed = trial.brokers.filter(({ passed }) => !passed).map(({ broker }) => broker);
  const untold = trial.brokers.reduce((sum, { topics }) => sum + topics.untold, 0);
  return trial.passed ? good(words.brokers.passed(untold)) : bad(words.steps.failed(failed.join(", "), 0));
}

/** Access of setpointd at each broker: the test, and its last result. */
function Brokers({
  trial,
  onTried,
}: {
  readonly trial: BrokerTrials | null;
  readonly onTried: (trial: BrokerTrials) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const label = trial === null ? words.test : words.brokers.again;
  return (
    <>
      <Act
        role="integrator"
        label={label}
        name={`${label} ${words.brokers.title}`}
        onPress={() => setOpen(true)}
      />
      {trial !== null && <BrokerResults trial={trial} />}
      {isOpen && <BrokerDialog onTried={onTried} onClose={() => setOpen(false)} />}
    </>
  );
}

function TrialRow({
  id,
  trial,
  onTest,
}: {
  readonly id: string;
  readonly trial: Trial | null;
  readonly onTest: () => void;
}) {
  const { value: charger } = useSteady(() => {
    const found = chargers.of(id);
    if (found === undefined) return null;
    const { occupant, vehicle, heardAt, commissioning } = found;
    return { occupant, vehicle, isHeard: heardAt !== null, commissioning };
  });
  if (charger === null) return null;
  const { occupant, vehicle, isHeard } = charger;
  const silence = trial?.silence ?? null;
  return (
    <tr>
      <th scope="row">{id}</th>
      <td data-label={words.columns.heard}>
        <State shown={isHeard ? good(words.heard) : mute(t.bays.neverHeard)} />
      </td>
      <td data-label={words.columns.vehicle} class="occupant">
        <State
          shown={
            occupant === "vehicle"
              ? good(vehicle === null ? "" : naming.vehicle(vehicle))
              : mute(occupant === "unknown" ? t.charger.unknownVehicle : t.charger.nobody)
          }
        />
      </td>
      <td data-label={words.columns.levels} title={trial?.words}>
        {trial === null ? (
          <State shown={mute(words.untried)} />
        ) : (
          <>
            <State shown={trial.isGood ? good(words.good) : bad(words.bad)} />
            <small class="cause">
              {trial.levels.map(({ asked, isGood }) => `${asked} ${isGood ? "✓" : "✗"}`).join(", ")}
            </small>
          </>
        )}
      </td>
      <td data-label={words.columns.silence}>
        {silence === null ? (
          <State shown={mute(words.untried)} />
        ) : (
          <State
            shown={(silence.isGood === null ? mute : silence.isGood ? good : bad)(
              words.silence(silence.seen, span(silence.afterMs)),
            )}
          />
        )}
      </td>
      <Cell label={words.columns.at}>{trial === null ? null : dayOf(zone.value, Date.parse(trial.at))}</Cell>
      <td class="act">
        <Act
          role="integrator"
          label={charger.commissioning ? words.show : words.test}
          name={`${charger.commissioning ? words.show : words.test} ${id}`}
          onPress={onTest}
        />
      </td>
    </tr>
  );
}
