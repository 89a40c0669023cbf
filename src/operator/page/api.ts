/** Answers of the operator's API, as far as the page reads them (docs/openapi.json). Times are ISO, UTC. */

export type Role = "viewer" | "operator" | "integrator";

export interface Person {
  readonly name: string;
  readonly role: Role;
  readonly via: "open" | "session" | "token";
}

interface Problem {
  readonly since: string | null;
  readonly kind: string;
  readonly subject: string | null;
  readonly message: string;
  readonly action: string;
}

export interface Status {
  readonly site: string;
  readonly timezone: string;
  readonly startedAt: string;
  readonly mode: "drive" | "observe";
  readonly ready: boolean;
  readonly now: string;
  readonly epoch: number;
  readonly lookedAt: string | null;
  readonly partner: {
    readonly ok: boolean;
    readonly answeredAt: string | null;
    readonly failures: number;
    readonly lastFailure: string | null;
    readonly stale: boolean;
    readonly skewMs: number | null;
  };
  readonly broker: { readonly connected: boolean; readonly reason: string | null };
  readonly problems: readonly Problem[];
  readonly chargers: {
    readonly total: number;
    readonly online: number;
    readonly unreachable: number;
    readonly limited: number;
    readonly notFollowed: number;
  };
  readonly certificates: readonly Certificate[];
  readonly webhook: { readonly refused: Readonly<Record<string, number>> } | null;
  readonly store: {
    readonly failures: number;
    readonly longestCommitMs: number;
    readonly failing: { readonly reason: string; readonly forMs: number } | null;
    readonly commits: number;
    readonly bytes: number;
  };
}

interface Certificate {
  readonly certificate: string;
  readonly subject: string;
  readonly notAfter: string;
  /** Null: it does not end soon. */
  readonly alarm: string | null;
}

export interface Ask {
  readonly kind: string;
  readonly level?: number;
}

export interface EnergyEvent {
  readonly id: string;
  readonly state: "planned" | "active" | "ended" | "withdrawn" | "forgotten";
  readonly name?: string;
  readonly programId?: string;
  readonly priority?: number | null;
  readonly start?: string;
  readonly end?: string;
  readonly randomizeStartMs?: number;
  readonly ask?: Ask;
  readonly vehicles?: readonly string[];
  readonly foreignVehicles?: number;
  readonly unknownVehicles?: readonly string[];
  readonly odd?: readonly string[];
  readonly source?: string;
  readonly receivedAt?: string;
  readonly modified?: string;
  readonly withdrawnAt?: string;
}

/** A setpoint. A release leaves the charger to itself. */
export interface Setpoint {
  readonly kind: "current" | "power" | "pause" | "release";
  readonly value: number | null;
  readonly unit: "A" | "W" | null;
}

interface Winner {
  readonly event: string;
  readonly priority: number | null;
  readonly asked: string;
  readonly from: string;
  readonly until: string;
  readonly offsetMs: number;
  readonly spreadMs: number;
}

interface HoldFacts {
  readonly id: string;
  readonly scope: Scope;
  readonly kind: "exempt" | "level";
  readonly level: Level | null;
  readonly end: "at" | "unplugged" | "energy" | "events";
  readonly since: string;
  readonly until: string | null;
  readonly by: string;
  readonly reason: string;
}

type Progress =
  | "none"
  | "planned"
  | "acknowledged"
  | "accepted"
  | "refused"
  | "followed"
  | "notFollowed"
  | "observed"
  | "failed";

export interface Charger {
  readonly charger: string;
  readonly vehicle: string | null;
  readonly occupant: "vehicle" | "unknown" | "nobody";
  readonly asked: (Setpoint & { readonly event: string }) | null;
  readonly allowed: Setpoint | null;
  readonly measured: {
    readonly at: string;
    readonly state: string | null;
    readonly powerW: number | null;
    readonly currentsA: readonly number[] | null;
    readonly limitA: number | null;
  } | null;
  readonly hold: HoldFacts | null;
  readonly online: boolean | null;
  readonly reachable: boolean | null;
  readonly heardAt: string | null;
  readonly verdict: Progress;
  readonly command: string | null;
  readonly reason: {
    readonly words: string;
    readonly cause: string;
    readonly winner: Winner | null;
    readonly limits: readonly { readonly by: string; readonly asked: string; readonly allowed: string }[];
  } | null;
  readonly until: string | null;
  readonly writes: { readonly lastHour: number; readonly most: number } | null;
  readonly commissioning: boolean;
}

export interface Vehicle {
  readonly id: string;
  readonly name: string;
  readonly charger: string | null;
  readonly command: string | null;
  readonly planned: readonly {
    readonly event: string;
    readonly from: string;
    readonly until: string;
    readonly offsetMs: number;
    readonly asked: { readonly kind: string; readonly amperes?: number; readonly watts?: number };
  }[];
}

export type Scope = { readonly vehicle: string } | { readonly charger: string } | { readonly site: true };

export interface Level {
  readonly currentA?: number;
  readonly powerW?: number;
  readonly pause?: true;
  readonly release?: true;
}

export interface Hold extends HoldFacts {
  readonly state: "open" | "ended";
  readonly sentence?: string;
  readonly ended: { readonly at: string; readonly by: string; readonly why: string } | null;
  readonly deliveredWh?: number | null;
  readonly chargers?: number;
  readonly effect?: readonly {
    readonly charger: string;
    readonly vehicle: string | null;
    readonly level: Level | null;
    readonly applies?: boolean;
    readonly overrules?: readonly string[];
    readonly waits?: string | null;
    readonly verdict: Progress;
  }[];
  readonly others?: readonly { readonly id: string; readonly sentence: string }[];
}

export interface Alarm {
  readonly key: string;
  readonly kind: string;
  readonly severity: "info" | "warning" | "critical";
  readonly state: "open" | "acknowledged" | "cleared";
  readonly since: string;
  readonly lastSeen: string;
  readonly clearedAt: string | null;
  readonly count: number;
  readonly subject: string | null;
  readonly message: string;
  readonly action: string;
  readonly acknowledged: { readonly at: string; readonly by: string; readonly note: string } | null;
}

/** When a vehicle must leave, with how much, and what is expected of it. */
export interface Departure {
  readonly vehicle: string;
  readonly at: string;
  readonly need: { readonly energyWh: number } | { readonly soc: number };
  readonly state: "ready" | "onTime" | "short" | "unknown";
  readonly soc: number | null;
  /** Energy that is missing until the need is met. Null: not known. */
  readonly remainingWh: number | null;
  readonly readyAt: string | null;
  /** Seconds between ready and departure. Negative: too late. Null: not known. */
  readonly slackS: number | null;
  readonly short: { readonly energyWh: number } | null;
  readonly cause: "event" | "hold" | "charger" | "vehicle" | "time" | "notPluggedIn" | null;
  readonly because: string;
  /** What is not known. */
  readonly missing: readonly string[];
}

export interface Claim {
  readonly kind: "event" | "hold" | "limit" | "default";
  readonly source: string;
  readonly level: Level | null;
  readonly since: string | null;
  readonly until: string | null;
  readonly status: "wins" | "overruled" | "limits" | "waits" | "over";
  readonly because: string;
}

export interface Explanation {
  readonly sentence: string;
  readonly charger: string | null;
  readonly vehicle: string | null;
  readonly at: string;
  readonly claims: readonly Claim[];
  readonly without: { readonly level: Level; readonly most: Level | null };
}

export interface AuditRow {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly charger: string | null;
  readonly vehicle: string | null;
  readonly event: string | null;
  readonly command: string | null;
  readonly words: string;
  readonly facts: unknown;
  readonly hash: string;
}

/** Readings for a chart. Points are [ms since 1970, value]. */
export interface Readings {
  readonly from: string;
  readonly until: string;
  readonly current: readonly Point[];
  readonly power: readonly Point[];
  readonly soc: readonly Point[];
  readonly limit: readonly Point[];
  readonly setpoints: readonly {
    readonly at: string;
    readonly level: Level;
    readonly event: string | null;
  }[];
}

export type Point = readonly [number, number];

export interface Report {
  readonly name: string;
  readonly event: string;
  readonly payloadType: string | null;
  readonly state: "planned" | "waiting" | "sent" | "flagged";
  readonly due: string | null;
  readonly summary: string | null;
  readonly flags: readonly string[];
  readonly sentAt: string | null;
  readonly nextTry: string | null;
  readonly attempts: number;
  readonly status: number | null;
  readonly reason: string | null;
}

/** What does not change while the daemon runs. */
export interface Site {
  readonly site: string;
  readonly timezone: string;
  readonly version: string;
  /** Lanes of the yard, each with its chargers in order. */
  readonly board: readonly (readonly string[])[];
  /** Profile of each charger. */
  readonly makes: Readonly<Record<string, string>>;
}

/** Result of a check of the record. */
export interface RecordCheck {
  readonly ok: boolean;
  readonly rows?: number;
  /** The first wrong row. Null: the fault lies outside the record. */
  readonly seq?: number | null;
  readonly reason?: string;
}

/** Spot prices of one region. */
export interface Prices {
  readonly region: string;
  readonly prices: readonly {
    readonly start: string;
    readonly end: string;
    readonly value: number;
    readonly currency: string;
    readonly perUnit: string;
  }[];
}

/** The daemon refused, or was not reached. */
export class Refused extends Error {
  /** HTTP status. 0: no answer. */
  readonly status: number;
  readonly detail: string;

  constructor(status: number, title: string, detail = "") {
    super(title);
    this.status = status;
    this.detail = detail;
  }
}

interface ProblemBody {
  readonly title?: string;
  readonly detail?: string;
  readonly errors?: readonly { readonly path: string; readonly expected: string }[];
}

/** Ms until a request is given up. */
const PATIENCE = 15_000;

async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/api/v1/${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    throw new Refused(0, "no answer from the gateway");
  }
  if (response.ok) return (response.status === 204 ? null : await response.json()) as T;
  const problem = (await response.json().catch(() => ({}))) as ProblemBody;
  const errors = (problem.errors ?? []).map(({ path: at, expected }) => `${at}: ${expected}`);
  throw new Refused(
    response.status,
    problem.title ?? `HTTP ${response.status}`,
    [problem.detail ?? "", ...errors].filter((text) => text !== "").join("; "),
  );
}

export const get = <T>(path: string): Promise<T> => call("GET", path);
export const post = <T>(
  path: string,
  body: unknown,
  headers?: Readonly<Record<string, string>>,
): Promise<T> => call("POST", path, body, headers);
export const put = <T>(path: string, body: unknown): Promise<T> => call("PUT", path, body);
export const remove = <T>(path: string, body?: unknown): Promise<T> => call("DELETE", path, body);

/** Key that makes a repeated request harmless. `crypto.randomUUID` needs HTTPS. */
export const requestKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );
