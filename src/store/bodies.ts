import type { ReportDescriptor, CoordinationEvent, Revision, KnownEvent, Target } from "../domain/event.ts";
import { authenticate } from "./chain.ts";

/** Tables that no hash chain protects. */
export const BODY_TABLES = [
  "event",
  "event_summary",
  "command",
  "hold",
  "binding",
  "observe_period",
  "alarm",
  "departure",
  "plug_in",
  "prices",
  "duty",
  "report",
  "report_body",
] as const;
export type BodyTable = (typeof BODY_TABLES)[number];

export const macOf = (siteKey: Buffer, table: BodyTable, id: string, body: string): string =>
  authenticate(siteKey, "stored body", table, id, body);

/** Target values of all revisions of one event, each once, in order of first use. */
class Names {
  readonly #places = new Map<string, number>();

  /** First place and length of each run of consecutive places: `[0, 20000]` for the list that was added first. */
  runsOf(values: readonly string[]): readonly number[] {
    const runs: number[] = [];
    let next = -1;
    for (const value of values) {
      const place = this.#places.get(value) ?? this.#places.size;
      this.#places.set(value, place);
      if (place === next) runs[runs.length - 1] = (runs.at(-1) ?? 0) + 1;
      else runs.push(place, 1);
      next = place + 1;
    }
    return runs;
  }

  get list(): readonly string[] {
    return [...this.#places.keys()];
  }
}

/** Values that are equal by their JSON text, each stored once. */
class Distinct<Value> {
  readonly #places = new Map<string, number>();
  readonly list: Value[] = [];

  placeOf(value: Value): number {
    const text = JSON.stringify(value);
    const known = this.#places.get(text);
    if (known !== undefined) return known;
    this.#places.set(text, this.list.length);
    return this.list.push(value) - 1;
  }
}

interface StoredTarget {
  readonly type: string;
  readonly runs: readonly number[];
}

type StoredReport = Omit<ReportDescriptor, "targets"> & { readonly targets: readonly StoredTarget[] };

/** `targets` and `reports` are places in the lists of the body. */
type StoredEvent = Omit<CoordinationEvent, "targets" | "reports"> & {
  readonly targets: number;
  readonly reports: number;
};

type StoredRevision = Omit<Revision, "event"> & { readonly event: StoredEvent };

/** Parts that earlier revisions mostly share with the newest one. */
interface SharedParts {
  readonly names: readonly string[];
  readonly targetLists: readonly (readonly StoredTarget[])[];
  readonly reportLists: readonly (readonly StoredReport[])[];
}

/**
 * The stored JSON text of an event. Revisions that still end share target values and report descriptors: an
 * event for 20,000 vehicles grows by about 500 bytes with each edit. Without such revisions the event is
 * stored as it is.
 */
export function eventBody(known: KnownEvent): string {
  if (known.endings.length === 0) return JSON.stringify(known);
  const names = new Names();
  const targetLists = new Distinct<readonly StoredTarget[]>();
  const reportLists = new Distinct<readonly StoredReport[]>();
  const storedTargets = (targets: readonly Target[]): readonly StoredTarget[] =>
    targets.map(({ type, values }) => ({ type, runs: names.runsOf(values) }));
  const stored = ({ event, start }: Revision): StoredRevision => {
    const targets = targetLists.placeOf(storedTargets(event.targets));
    const reports = event.reports.map((report) => ({ ...report, targets: storedTargets(report.targets) }));
    return { event: { ...event, targets, reports: reportLists.placeOf(reports) }, start };
  };
  const revision = known.kind === "live" ? { revision: stored(known.revision) } : {};
  const endings = known.endings.map((ending) => ({ ...ending, revision: stored(ending.revision) }));
  const parts: SharedParts = {
    names: names.list,
    targetLists: targetLists.list,
    reportLists: reportLists.list,
  };
  return JSON.stringify({ ...known, ...revision, endings, ...parts });
}

/** Reads the format of `eventBody`, or a whole event of earlier versions. Equal lists share one list in memory too. */
export function readEventBody(body: string): KnownEvent {
  const { names, targetLists, reportLists, ...known } = JSON.parse(body);
  if (names === undefined) return known;
  const parts: SharedParts = { names, targetLists, reportLists };
  const whole = (targets: readonly StoredTarget[]): readonly Target[] =>
    targets.map(({ type, runs }) => ({ type, values: valuesOf(runs, parts.names) }));
  const targets = parts.targetLists.map(whole);
  const reports = parts.reportLists.map((list) =>
    list.map((report) => ({ ...report, targets: whole(report.targets) })),
  );
  const revision = ({ event, start }: StoredRevision) => ({
    event: { ...event, targets: targets[event.targets], reports: reports[event.reports] },
    start,
  });
  return {
    ...known,
    ...(known.kind === "live" ? { revision: revision(known.revision) } : {}),
    endings: known.endings.map((ending: { readonly revision: StoredRevision }) => ({
      ...ending,
      revision: revision(ending.revision),
    })),
  };
}

function valuesOf(runs: readonly number[], names: readonly string[]): readonly string[] {
  const values: string[] = [];
  for (let index = 0; index < runs.length; index += 2) {
    const first = runs[index] ?? 0;
    for (const name of names.slice(first, first + (runs[index + 1] ?? 0))) values.push(name);
  }
  return values;
}

/** Earlier versions stored no descriptor count. For withdrawn events they stored neither the anchor nor the last delete. */
export function eventIn(body: string): KnownEvent {
  const known = readEventBody(body);
  return known.kind === "live"
    ? { ...known, descriptors: known.descriptors ?? known.revision.event.reports.length }
    : {
        ...known,
        descriptors: known.descriptors ?? 0,
        anchor: known.anchor ?? null,
        deletedAt: known.deletedAt ?? known.receivedAt,
      };
}
