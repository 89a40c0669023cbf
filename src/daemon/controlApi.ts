import type { BrokerTrial } from "../chargers/broker/tryBroker.ts";
import { untried } from "../commissioning/commission.ts";
import { type PollResult, pollMessage } from "../control/ingest/pollRequest.ts";
import type { ControlPorts, Freeing } from "../control/ports.ts";
import {
  chargerIn,
  withUnconfigured,
  releaseWhileObserving,
  releaseResult,
  limited,
} from "../control/send/release.ts";
import type { ControlState } from "../control/state.ts";
import { auditRow } from "../domain/audit.ts";
import type { Committed } from "../domain/changes.ts";
import type { ReportRecord } from "../domain/report.ts";
import { formatLevel } from "../domain/setpoint.ts";
import { iso } from "../domain/units.ts";
import type { Store } from "../domain/store.ts";
import type { ControlApi } from "../operator/controlSocket.ts";
import type { OperatorViews } from "../operator/http/views.ts";
import type { ReportSchedule } from "../reporting/obligations.ts";
import type { DaemonCommissions } from "./commissions.ts";
import { type partnerReports, shownReport } from "./reportsAndPrices.ts";

/** Requests that the HTTP API answers as well. */
export type SharedRequests = Pick<
  ControlApi,
  | "explain"
  | "handover"
  | "holds"
  | "bindings"
  | "reboots"
  | "mode"
  | "configuration"
  | "alarms"
  | "departures"
>;

/** The parts of the daemon that its verbs reach through the control socket. */
interface ControlApiParts extends SharedRequests {
  /** Views that a verb prints as the API answers them. */
  readonly views: Pick<OperatorViews, "audit" | "proof" | "prices" | "reports">;
  readonly store: Store;
  readonly state: ControlState;
  readonly reportSchedule: ReportSchedule;
  readonly reports: Pick<ReturnType<typeof partnerReports>, "sendable">;
  readonly commissions: DaemonCommissions;
  readonly ports: Pick<ControlPorts, "now" | "isLinked">;
  /** The first evaluation is done. */
  readonly isReady: () => boolean;
  /** Has chargers freed by the flow. */
  readonly free: (freeing: Freeing) => void;
  readonly metrics: ControlApi["metrics"];
  /** Has the list fetched by the flow, now. */
  readonly poll: () => Promise<PollResult>;
  readonly tryBrokers: () => Promise<readonly BrokerTrial[]>;
  /** Has a report sent again by the flow. */
  readonly resend: (record: ReportRecord) => void;
}

/** Answers to the requests that verbs send to the running daemon. */
export function controlApi(parts: ControlApiParts): ControlApi {
  const { views, store, state, reportSchedule, reports, commissions, ports } = parts;
  return {
    audit: views.audit,
    verify: async () => ({ ...(await store.verify()) }),
    hashes: async (seqs) => [...(await store.hashes(seqs))],
    proof: views.proof,
    prices: views.prices,
    reports: views.reports,
    report: (name) => shownReport(reportSchedule, store, name),
    resend: async (name) => {
      const record = await reports.sendable(name);
      if (typeof record === "string") return { ok: false, words: record };
      parts.resend(record);
      return { ok: true, words: `report ${name} is sent again: setpointd reports show ${name} tells more` };
    },
    poll: async () => {
      const result = await parts.poll();
      return { ok: result.kind === "read" || result.kind === "unchanged", words: pollMessage(result) };
    },
    beginCopy: () => store.beginCopy(),
    endCopy: () => store.endCopy(),
    tryBrokers: async () => [...(await parts.tryBrokers())],
    lastMessages: () =>
      [...state.chargers.keys()].map((charger) => {
        const { heardAt } = state.presence.of(charger);
        return {
          charger,
          heardAt: heardAt === null ? null : iso(heardAt),
          isSilent: state.silence.has(charger),
        };
      }),
    limited: () =>
      limited(state).map(({ command }) => ({
        charger: command.charger,
        level: formatLevel(command.desired),
      })),
    commission: async (request, progress, gone) =>
      parts.isReady()
        ? { ...(await commissions.try(request, progress, gone)) }
        : { ...untried("setpointd is starting: try again in a moment") },
    stopCommission: (charger) => commissions.cancel(charger),
    explain: parts.explain,
    handover: parts.handover,
    holds: parts.holds,
    bindings: parts.bindings,
    reboots: parts.reboots,
    mode: parts.mode,
    configuration: parts.configuration,
    alarms: parts.alarms,
    metrics: parts.metrics,
    departures: parts.departures,
    recordAccess: ({ message, facts }) =>
      store.write([auditRow("operator", ports.now(), message, { facts })]),
    release: (charger, by) => release(parts, charger, by),
  };
}

async function release(
  { state, ports, free }: ControlApiParts,
  target: string | null,
  by: string,
): ReturnType<ControlApi["release"]> {
  const found = target === null ? null : chargerIn(state, target);
  if (found?.ok === false) return { ok: false, words: found.reason };
  const chargers = found === null ? [...state.chargers.keys()] : [found.charger];
  const held = limited(state).filter(({ command }) => chargers.includes(command.charger));
  if (state.mode.current === "observe") return releaseWhileObserving(held);
  // The evaluation that this causes shares its commit, and knows which releases have to wait.
  const { promise, resolve } = Promise.withResolvers<Committed>();
  free({ chargers, by, settle: resolve });
  const done = releaseResult(state, held, ports.isLinked, await promise);
  return target === null ? withUnconfigured(state, done) : done;
}
