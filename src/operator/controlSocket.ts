import { PassThrough, Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import Fastify, { type FastifyInstance, type FastifyReply } from "fastify";

import type { Json } from "../domain/audit.ts";
import type { AuditQuery } from "../domain/store.ts";
import { sanitizeForLog } from "../platform/text.ts";
import { accessRow, ROLES } from "./accounts.ts";
import type { AlarmApi } from "./alarms.ts";
import { type Answer, type Proof, proofLines } from "./answer.ts";
import type { ConfigurationApi } from "./configuration.ts";
import type { DepartureApi } from "./departures.ts";
import type { BindingApi } from "./bindings.ts";
import type { RebootApi } from "./chargerActions.ts";
import type { HoldApi } from "./holds.ts";
import { auditParameters } from "./recordPages.ts";
import type { ModeApi } from "./mode.ts";
import { answerFailures, type FailureOptions, listenAtPath } from "./statusSocket.ts";

/** `words`: one sentence for the person who asked. */
interface Done {
  readonly ok: boolean;
  readonly words: string;
}

/** Requests of the command line to a running daemon. `REQUESTS` has their paths. */
export interface ControlApi {
  readonly audit: (query: AuditQuery) => Json | Promise<Json>;
  readonly verify: () => Promise<Json>;
  /** Number and hash of the rows that are still stored. */
  readonly hashes: (seqs: readonly number[]) => Json | Promise<Json>;
  readonly proof: (event: string, format: "json" | "csv") => Promise<Proof>;
  readonly prices: () => Json;
  readonly reports: () => Json | Promise<Json>;
  /** Null: no report has this name. */
  readonly report: (name: string) => Json | Promise<Json>;
  /** Queues a report to be sent again. Does not wait for the partner. */
  readonly resend: (name: string) => Done | Promise<Done>;
  /** Fetches the partner's event list now. */
  readonly poll: () => Promise<Done>;
  /** Keeps the stored files unchanged until `endCopy`. False: another copy is under way. */
  readonly beginCopy: () => boolean;
  /** False: the files have changed during the copy, which is useless. */
  readonly endCopy: () => boolean;
  /** Rights of the daemon at each broker. The trial commands no charger. */
  readonly tryBrokers: () => Promise<Json>;
  /** Time of the last message of each charger (ISO, or null), and whether it is silent. */
  readonly lastMessages: () => Json;
  /** Chargers that are limited, with their setpoints. */
  readonly limited: () => Json;
  /** Tries a charger. `gone`: the client has hung up; the charger is left as it was before. */
  readonly commission: (
    request: CommissionRequest,
    progress: (message: string) => void,
    gone: AbortSignal,
  ) => Promise<Json>;
  /** Ends the trial of a charger. The charger is left as it was before. */
  readonly stopCommission: (charger: string) => void;
  readonly explain: (query: Input) => Answer<Json> | Promise<Answer<Json>>;
  readonly handover: (query: Input) => Promise<Answer<Json>>;
  readonly holds: HoldApi;
  readonly bindings: BindingApi;
  readonly reboots: RebootApi;
  readonly mode: ModeApi;
  readonly configuration: ConfigurationApi;
  readonly alarms: AlarmApi;
  /** Records a change of users or tokens by a verb. */
  readonly recordAccess: (row: ReturnType<typeof accessRow>) => void;
  readonly metrics: () => Promise<string>;
  readonly departures: DepartureApi;
  /** Releases one charger. Null: all. `by`: the person. */
  readonly release: (charger: string | null, by: string) => Promise<Done>;
}

export interface CommissionRequest {
  readonly charger: string;
  /** True: the trial includes what the charger does after our last message. */
  readonly silence: boolean;
  /** Start although an event holds on the charger, or the mode is observe. */
  readonly force: boolean;
}

/** Query of a GET or body of a POST, member by member. */
type Input = Readonly<Record<string, unknown>>;

/** Thrown by a row of `REQUESTS`: the client gets 400 with this text. */
class InvalidInput extends Error {
  readonly statusCode = 400;
}

/**
 * Requests by method and path. Adding one: a row here and a member of `ControlApi`. Answers that come line by line stand
 * apart. The status of a problem travels in the body: a verb prints its text.
 */
const REQUESTS: Readonly<Record<string, (api: ControlApi, input: Input) => unknown>> = {
  "GET /audit": (api, input) => {
    const parameters = auditParameters(input);
    if (typeof parameters === "string") throw new InvalidInput(parameters);
    return api.audit(parameters);
  },
  "GET /audit/verify": (api) => api.verify(),
  "POST /audit/hashes": (api, { seqs }) => api.hashes(rowNumbers(seqs)),
  "GET /prices": (api) => api.prices(),
  "GET /reports": (api) => api.reports(),
  // The name is a parameter, not a part of the path: it contains slashes. A bare null would be an empty answer.
  "GET /report": async (api, { name }) => ({ found: await api.report(text(name, REPORT)) }),
  "POST /report/resend": (api, { name }) => api.resend(text(name, REPORT)),
  "POST /poll": (api) => api.poll(),
  "POST /backup/begin": (api) => ({ ok: api.beginCopy() }),
  "POST /backup/end": (api) => ({ ok: api.endCopy() }),
  "GET /limited": (api) => api.limited(),
  "POST /try/brokers": (api) => api.tryBrokers(),
  "GET /explain": (api, query) => api.explain(query),
  "GET /handover": (api, query) => api.handover(query),
  "GET /holds": (api, query) => api.holds.list(query),
  "POST /holds": (api, { body, by, key }) =>
    api.holds.open(body, personIn(by), typeof key === "string" ? key : null),
  "POST /holds/preview": (api, { body, by }) => api.holds.preview(body, personIn(by)),
  "POST /holds/end": (api, { id, by, reason }) =>
    api.holds.end(text(id, "id: of a hold"), { reason }, personIn(by)),
  "POST /vehicle": (api, { charger, body, by }) =>
    api.bindings.bind(text(charger, CHARGER), body, personIn(by), null),
  "POST /vehicle/end": (api, { charger, body, by }) =>
    api.bindings.unbind(text(charger, CHARGER), body, personIn(by)),
  "GET /reboot": (api, { charger }) => api.reboots.get(text(charger, CHARGER)),
  "POST /reboot": (api, { charger, body, by }) =>
    api.reboots.start(text(charger, CHARGER), body, personIn(by)),
  "GET /mode": (api) => ({ ok: true, value: api.mode.get() }),
  "POST /mode": (api, { body, by }) => api.mode.put(body, personIn(by)),
  "GET /configuration": async (api) => ({ ok: true, value: await api.configuration.get() }),
  "POST /configuration/apply": (api, { body, by }) => api.configuration.apply(body, personIn(by)),
  "POST /configuration/rollback": (api, { body, by }) => api.configuration.rollback(body, personIn(by)),
  "GET /alarms": (api, query) => api.alarms.list(query),
  "POST /alarms/acknowledge": (api, { key, note, by }) =>
    api.alarms.acknowledge(text(key, "key: of an alarm"), { note }, personIn(by)),
  "GET /metrics": async (api) => ({ text: await api.metrics() }),
  "GET /departures": (api) => api.departures.list(),
  "POST /departures/set": (api, { vehicle, body, by }) =>
    api.departures.set(text(vehicle, VEHICLE), body, personIn(by)),
  "POST /departures/clear": (api, { vehicle, by }) =>
    api.departures.clear(text(vehicle, VEHICLE), personIn(by)),
  "POST /departures/skip": (api, { vehicle, date, by }) =>
    api.departures.skip(text(vehicle, VEHICLE), { date }, personIn(by)),
  "POST /departures/import": (api, { csv, by }) => api.departures.importCsv(csv, personIn(by), null),
  "POST /access": (api, { by, did, kind, name, role }) => {
    const about = { by: personIn(by), name: sanitizeForLog(text(name, "name: of a user or token")) };
    if ((did !== "added" && did !== "removed") || (kind !== "user" && kind !== "token"))
      throw new InvalidInput("did: added or removed; kind: user or token");
    api.recordAccess(accessRow({ ...about, did, kind, role: ROLES.find((each) => each === role) ?? null }));
    return { ok: true };
  },
  "GET /heard": (api) => api.lastMessages(),
  "POST /release": (api, { charger, by }) =>
    api.release(charger === null ? null : text(charger, "charger: an id, or null for all"), personIn(by)),
  "POST /commission/stop": (api, { charger }) => {
    api.stopCommission(text(charger, CHARGER));
    return { ok: true };
  },
};

/** Texts of refusals: the member that is missing, and what it has to be. */
const CHARGER = "charger: an id";
const VEHICLE = "vehicle: an id or name";
const REPORT = "name: of one report";

/** The socket is the owner's alone, so the name of its user is believed. */
const personIn = (by: unknown): string =>
  typeof by === "string" && by.trim() !== "" ? sanitizeForLog(by) : "operator";

function text(value: unknown, otherwise: string): string {
  if (typeof value !== "string") throw new InvalidInput(otherwise);
  return value;
}

function rowNumbers(seqs: unknown): readonly number[] {
  if (!Array.isArray(seqs) || !seqs.every((seq): seq is number => Number.isSafeInteger(seq)))
    throw new InvalidInput("seqs: numbers of rows");
  return seqs;
}

/** Time that clients have to read the end of a long answer. */
const FLUSH_MS = 500;

const NDJSON = "application/x-ndjson";

const line = (value: Json): string => `${JSON.stringify(value)}\n`;

/**
 * `<state>/control.sock`, mode 0600: only the owner of the state may command the daemon. A string is the reason why there
 * is no socket. The daemon works without one.
 */
export function controlSocket(
  path: string,
  api: ControlApi,
  failures: FailureOptions,
): Promise<AsyncDisposable | string> {
  const app = Fastify({ forceCloseConnections: true });
  answerFailures(app, failures);
  for (const [request, answer] of Object.entries(REQUESTS)) {
    const [method = "", url = ""] = request.split(" ");
    app.route<{ Querystring: Input; Body: Input | null }>({
      method,
      url,
      handler: async ({ query, body }) => answer(api, method === "GET" ? query : (body ?? {})),
    });
  }
  const answers = new Set<Promise<void>>();
  app.post<{ Body: Input | null }>("/commission", async ({ body }, reply) => {
    const { charger, silence = false, force = false } = body ?? {};
    if (typeof charger !== "string" || typeof silence !== "boolean" || typeof force !== "boolean")
      return reply.code(400).send({ error: "charger: an id; silence, force: true or false" });
    return sendTrial(api, { charger, silence, force }, reply, answers);
  });
  app.post<{ Body: Input | null }>("/proof", async ({ body }, reply) => {
    const { event, format } = body ?? {};
    if (typeof event !== "string" || (format !== "json" && format !== "csv"))
      throw new InvalidInput("event: an id; format: json or csv");
    return reply.type(NDJSON).send(Readable.from(proofLines(await api.proof(event, format))));
  });
  return listenForOwner(path, app, async () => {
    await Promise.race([Promise.all(answers), sleep(FLUSH_MS, undefined, { ref: false })]);
    await app.close();
  });
}

/** The socket of a stand-in: every verb gets the reason why it has no answer here. */
export function refusingSocket(path: string, reason: () => string): Promise<AsyncDisposable | string> {
  const app = Fastify({ forceCloseConnections: true });
  app.setNotFoundHandler(async (_request, reply) => reply.code(503).send({ error: reason(), standIn: true }));
  return listenForOwner(path, app, () => app.close());
}

/** Others have no access from the first moment. */
async function listenForOwner(
  path: string,
  app: FastifyInstance,
  close: () => Promise<unknown>,
): Promise<AsyncDisposable | string> {
  const umask = process.umask(0o177);
  try {
    return await listenAtPath(path, app, 0o600, close);
  } finally {
    process.umask(umask);
  }
}

const UNTRIED = { good: false, tried: null, words: null };

/** Sends one line of JSON for each step of a trial, and one for its end. A client that hangs up ends the trial. */
function sendTrial(
  api: ControlApi,
  request: CommissionRequest,
  reply: FastifyReply,
  answers: Set<Promise<void>>,
): FastifyReply {
  const lines = new PassThrough();
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const gone = new AbortController();
  answers.add(closed);
  reply.raw.once("close", () => {
    gone.abort();
    answers.delete(closed);
    resolve();
  });
  const progress = (message: string): boolean => lines.write(line({ progress: message }));
  void api
    .commission(request, progress, gone.signal)
    // A bug in a trial must not end the control of all other chargers.
    .catch((error: unknown) => ({ ...UNTRIED, complaint: `a bug: ${String(error)}` }))
    .then((done) => lines.end(line({ done })));
  return reply.type(NDJSON).send(lines);
}
