import { NOTIFY } from "../alarms/notices.ts";
import { Notifier, type NotifierPorts, type Receiver } from "../alarms/notifier.ts";
import { Alarms } from "../alarms/pipeline.ts";
import { type InputFaults, leadFacts } from "../alarms/facts.ts";
import { AlarmRegistry } from "../alarms/registry.ts";
import { isAlarming } from "../control/send/commands.ts";
import type { ControlState } from "../control/state.ts";
import type { Alarm, AlarmFact, Severity } from "../domain/alarm.ts";
import type { AuditRow } from "../domain/audit.ts";
import type { Stored } from "../domain/changes.ts";
import type { Store } from "../domain/store.ts";
import type { Sent } from "../domain/command.ts";
import {
  type ChargerId,
  chargerId,
  between,
  type Instant,
  type Millis,
  minutes,
  fromIso,
  hours,
} from "../domain/units.ts";
import { alarmApi } from "../operator/alarms.ts";
import type { WallClock } from "../platform/clock.ts";
import type { GaugeRow } from "../operator/gauges.ts";
import { problems } from "../operator/problems.ts";
import type { Problem, ProblemKind, ProblemSources } from "../operator/siteProblems.ts";
import { inSteps, type ResumableTask, runCooperatively } from "../platform/cooperative.ts";
import type { ReportSchedule } from "../reporting/obligations.ts";
import { ChargerFacts, diskSpace, manyUnreachable } from "./alarmFacts.ts";
import { type Expiring, formatExpiry, isUrgent } from "./certificates.ts";
import { whileLeading } from "./leading.ts";
import type { Site } from "./site.ts";

type AlarmKind =
  | ProblemKind
  | "reportsWaiting"
  | "departureShort"
  | "notPluggedIn"
  | "certificate"
  | "rejected"
  | "discarded"
  | "noPower"
  | "releaseUnconfirmed"
  | "diskSpace"
  | "manyUnreachable"
  | "leaseLost"
  | "deliveriesWaiting";

/** Critical: charging is not under control, or will not be soon. */
const SEVERITY: Readonly<Record<AlarmKind, Severity>> = {
  disk: "critical",
  database: "critical",
  clock: "warning",
  broker: "critical",
  partner: "warning",
  skew: "warning",
  webhook: "warning",
  publish: "critical",
  refused: "warning",
  notFollowed: "critical",
  contradicted: "warning",
  unknownVehicle: "warning",
  offline: "warning",
  silent: "warning",
  neverHeard: "warning",
  stranded: "critical",
  reports: "warning",
  retention: "info",
  notify: "warning",
  access: "critical",
  configuration: "warning",
  reportsWaiting: "warning",
  departureShort: "critical",
  notPluggedIn: "warning",
  certificate: "warning",
  rejected: "warning",
  discarded: "warning",
  noPower: "warning",
  releaseUnconfirmed: "critical",
  diskSpace: "warning",
  manyUnreachable: "critical",
  leaseLost: "warning",
  deliveriesWaiting: "warning",
};

/** Problems of chargers that cannot be reached. */
const UNREACHABLE: ReadonlySet<string> = new Set(["offline", "silent", "neverHeard"]);

/** Problems of chargers that nothing shows while their broker is away: neither that they go on nor that they ended. */
const BEHIND_BROKER: ReadonlySet<string> = new Set([...UNREACHABLE, "publish"]);

/** A receiver that fails for this time is not restarting. */
const NOTIFY_LATE = minutes(5);
/** A report that waits for this time is not delayed by a single failure. */
const REPORT_LATE = hours(1);

/** Parts from which alarms are found. */
interface AlarmSources {
  /** Alarms of the last run. */
  readonly stored: readonly Alarm[];
  readonly problemSources: () => ProblemSources;
  /** Vehicles that leave short, or are missed at their charger. */
  readonly departures: (now: Instant) => ResumableTask<readonly AlarmFact[]>;
  /** Certificates that end within 30 days. */
  readonly expiring: () => readonly Expiring[];
  readonly publish: (path: string, payload: string) => Promise<Sent>;
  readonly inputFaults: Pick<InputFaults, "facts">;
  readonly receivers: readonly Receiver[];
  readonly counted: NotifierPorts["counted"];
}

/** The alarms of the running site, with those of the last run. Nothing is observed before a subscription to `alarm$`. */
export function siteAlarms(
  site: Site,
  brokerUp$: Parameters<Alarms["follow"]>[0],
  { stored, problemSources, departures, expiring, publish, inputFaults, receivers, counted }: AlarmSources,
) {
  const { store, state, schedule, config, now, monotonic, startedAt } = site;
  const names = receivers.map(({ name }) => name);
  const registry = new AlarmRegistry(stored, startedAt, names);
  const notifiers = receivers.map(
    (receiver) =>
      new Notifier(receiver, registry, {
        now,
        monotonic,
        random: site.random,
        write: (changed) => store.write(changed.map((alarm) => ({ kind: "alarm", alarm }))),
        counted,
        log: {
          info: (message) => site.log.info({ receiver: receiver.name }, message),
          warn: (message) => site.log.warn({ receiver: receiver.name }, message),
        },
      }),
  );
  const chargers = new ChargerFacts(state);
  const runInSteps = <Result>(steps: ResumableTask<Result>): Promise<Result> =>
    runCooperatively(steps, monotonic);
  let brokersAway: ReadonlySet<string> = new Set();
  /** All facts that hold now. */
  function* facts(at: Instant): ResumableTask<readonly AlarmFact[]> {
    const sources = problemSources();
    brokersAway = new Set(sources.brokersAway.map(({ name }) => name));
    const found: AlarmFact[] = [];
    const away = new Set<string | null>();
    yield* inSteps(yield* problems(state, sources, at), (problem) => {
      if (UNREACHABLE.has(problem.kind)) away.add(problem.subject);
      if (isLasting(state, problem, config.vtn.staleAfter, at)) found.push(factOf(problem));
    });
    const isReachable = (charger: ChargerId): boolean => sources.isLinked(charger) && !away.has(charger);
    for (const fact of yield* chargers.facts(isReachable, at)) found.push(fact);
    for (const fact of yield* departures(at)) found.push(fact);
    const more = [
      diskSpace(store.stats(), config.retention.bytes),
      manyUnreachable(away.size, state.chargers.size),
    ];
    found.push(
      ...inputFaults.facts(at),
      ...leadFacts(site.leadership, at),
      ...lateReports(schedule, state.wallClock, at),
      ...expiring().map((each) => certificateFact(each, at)),
      ...more.filter((fact) => fact !== null),
    );
    return found;
  }
  const alarms = new Alarms(registry, {
    now,
    changes: () => state.feed.count,
    facts: async () => runInSteps(facts(now())),
    isUndecided: ({ kind, subject }) => {
      const charger = BEHIND_BROKER.has(kind) ? state.chargers.get(chargerId(subject ?? "")) : undefined;
      return charger !== undefined && brokersAway.has(charger.broker);
    },
    runInSteps,
    write: (changes) => void store.writeUntilStored(changes),
    commit: (changes) => {
      store.write(changes);
      return store.committed();
    },
    announce: (key) => state.feed.announce("alarm", key),
    publish,
  });
  return {
    alarm$: alarms.follow(brokerUp$, notifiers),
    failing: () => notifiers.map(({ failing }) => failing).filter((each) => each !== null),
    waiting: (): readonly GaugeRow[] =>
      notifiers.map(({ name, waiting }) => ({ labels: { receiver: name }, value: waiting })),
    get: (key: string) => registry.get(key),
    all: () => registry.all(),
    counts: () => alarmCounts(registry.all()),
    api: alarmApi(alarms, () =>
      whileLeading<Stored>(
        site.leadership,
        async () => ({ ok: true }),
        (reason) => ({ ok: false, reason }),
      ),
    ),
  };
}

/** Rows of the last run about input that was set aside, so that its alarms go on. */
export async function inputFaultsOnRecord(
  store: Store,
  rejected: readonly AuditRow[],
  inputFaults: InputFaults,
): Promise<void> {
  const ids = new Set(rejected.flatMap(({ event }) => (event === null ? [] : [event])));
  const accepted = await Promise.all(
    [...ids].map((event) => store.audit({ event, kind: "event", newest: true, limit: 1 })),
  );
  inputFaults.read([...rejected, ...accepted.flat()].toSorted((one, other) => one.seq - other.seq));
}

/** Alarms that are not cleared. A kind without alarms is zero: a missing value would look healthy. */
function alarmCounts(all: readonly Alarm[]): readonly GaugeRow[] {
  const counts = new Map<string, GaugeRow>();
  const add = (kind: string, severity: Severity, value: number): void => {
    const name = `${kind} ${severity}`;
    counts.set(name, { labels: { kind, severity }, value: (counts.get(name)?.value ?? 0) + value });
  };
  for (const [kind, severity] of Object.entries(SEVERITY)) add(kind, severity, 0);
  for (const { kind, severity, state } of all) if (state !== "cleared") add(kind, severity, 1);
  return [...counts.values()];
}

/** False: a problem that retries may still solve. */
function isLasting(
  state: ControlState,
  { kind, subject, since }: Problem,
  staleAfter: Millis,
  now: Instant,
): boolean {
  if (kind === "partner") return between(instantOf(since) ?? now, now) >= staleAfter;
  if (kind === NOTIFY) return between(instantOf(since) ?? now, now) >= NOTIFY_LATE;
  if (kind !== "notFollowed" || subject === null) return true;
  const record = state.commands.get(chargerId(subject));
  return record !== undefined && isAlarming(record);
}

const instantOf = (moment: string | null): Instant | null => (moment === null ? null : fromIso(moment));

const factOf = ({ kind, subject, since, message, action }: Problem): AlarmFact => ({
  kind,
  subject,
  severity: SEVERITY[kind],
  since: instantOf(since),
  message,
  action,
});

function lateReports({ outbox }: ReportSchedule, wallClock: WallClock, now: Instant): readonly AlarmFact[] {
  const late = [...outbox.values()].filter(({ since }) => between(since, now) >= REPORT_LATE);
  const [oldest] = late.toSorted((one, other) => one.since - other.since);
  if (oldest === undefined) return [];
  const reason = oldest.reason === null ? "" : `: ${oldest.reason}`;
  return [
    {
      kind: "reportsWaiting",
      subject: null,
      severity: SEVERITY.reportsWaiting,
      since: oldest.since,
      message: `${late.length} reports wait for the partner, the oldest since ${wallClock(oldest.since)}${reason}`,
      action:
        "check network and credentials of the partner; page System, or setpointd reports, shows each report",
    },
  ];
}

const certificateFact = ({ certificate, stage }: Expiring, now: Instant): AlarmFact => ({
  kind: "certificate",
  subject: certificate.name,
  severity: isUrgent(stage) ? "critical" : SEVERITY.certificate,
  since: null,
  message: formatExpiry(certificate, now),
  action: "replace the file with a new certificate, then systemctl reload setpointd (SIGHUP)",
});
