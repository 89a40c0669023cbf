import type { Config } from "../../config/schema.ts";
import type { WebhookConfig } from "../../config/sections/webhook.ts";
import type { AuditKind } from "../../domain/audit.ts";
import { eventOf } from "../../domain/delivery.ts";
import { type Instant, instant, iso, fromIso, hours } from "../../domain/units.ts";
import { wallClock } from "../../platform/clock.ts";
import { dialectOf } from "../../vtn/dialects/choose.ts";
import type { Answered } from "../../vtn/http.ts";
import { sign } from "../../vtn/signature.ts";
import { siteConfiguration } from "../configuration.ts";
import { askDaemon } from "../daemonClient.ts";
import { ownListener } from "../live/partner.ts";
import { writeErrorLine, type ExitCode, fail, readInput, say, writeLine, type Verb } from "../output.ts";
import { becomeOwner, enterPrivateFolder } from "../storedState.ts";
import { askStatus } from "./status.ts";
import { messageOf } from "../../platform/text.ts";

/** The posted body, and the reading that is expected of the daemon. */
interface TestDelivery {
  readonly body: Buffer;
  readonly intent: string;
}

/**
 * `webhook test`: posts one signed event to this machine's own listener, as the partner would. Prints the daemon's
 * reaction.
 */
async function webhookTest(
  named: string | undefined,
  eventFile: string | undefined,
  now: () => Instant,
  randomBytes: (count: number) => Buffer,
): Promise<ExitCode> {
  const config = siteConfiguration(named)?.config ?? null;
  if (config === null) return 2;
  enterPrivateFolder(config.state);
  const { webhook } = config;
  const fault =
    webhook === null ? "there is no section webhook: events come by polling only" : portFault(webhook);
  if (webhook === null || fault !== null) return fail(2, `nothing to test: ${fault}`);
  const id = `SETPOINTD-TEST-${randomBytes(4).toString("hex")}`;
  // Read before root gives up its rights: the file may be in a folder of root.
  const delivery = eventFile === undefined ? harmless(id, now()) : fromFile(eventFile);
  const refused = typeof delivery === "string" ? delivery : becomeOwner(config.state);
  if (typeof delivery === "string" || refused !== null) return fail(1, refused ?? "");
  const { body, intent } = delivery;
  await using listener = ownListener(webhook, now);
  say(`POST ${listener.url}, ${formatProof(webhook)}`);
  writeLine(intent);
  const sentAt = now();
  const answer = await listener.post(sign(webhook.auth, body, id, sentAt), body);
  if (answer.kind === "silent") {
    writeErrorLine(`no answer: ${answer.reason}; ${silenceHint(webhook)}`);
    return 1;
  }
  writeLine(`${answer.status} ${answer.body.toString("utf8").trim()}`);
  if (answer.status !== 202) {
    writeErrorLine(await formatRefusal(answer, named, sentAt));
    return 1;
  }
  if (webhook.auth.kind === "none") {
    say("without webhook.auth the daemon does not act on a body: it fetches the list of events instead");
    return 0;
  }
  return printOutcome(config, body, sentAt, now);
}

const portFault = ({ listen }: WebhookConfig): string | null =>
  listen.port === 0 ? "webhook.listen has port 0, any free one: give it a port" : null;

/** Event without effect: its window is over, and its vehicle does not exist. */
function harmless(id: string, now: Instant): TestDelivery {
  const event = {
    createdDateTime: iso(now),
    ID: id,
    modificationDateTime: iso(now),
    name: "a test of the webhook",
    priority: 9,
    programID: "setpointd-webhook-test",
    targets: [{ targetType: "vehicle", values: [`nobody-${id}`] }],
    intervalPeriod: { start: iso(instant(now - hours(1))), duration: "00:01:00" },
    payload: { payloadType: "CurrentLevel", targetCurrent: 16 },
  };
  return {
    body: Buffer.from(JSON.stringify(event)),
    intent: `event ${id}: ended 59 minutes ago and is for no vehicle of this site, so no charger gets a command`,
  };
}

/** A string is the reason why the file cannot be read. */
function fromFile(file: string): TestDelivery | string {
  const name = file === "-" ? "standard input" : file;
  try {
    const body = readInput(file);
    return {
      body,
      intent: `${name}, byte for byte: the daemon acts on it like on any delivery of the partner`,
    };
  } catch (error) {
    return `${name} cannot be read: ${messageOf(error)}`;
  }
}

function formatProof({ auth }: WebhookConfig): string {
  switch (auth.kind) {
    case "none":
      return "not signed: a hint";
    case "hmac":
      return `signed with hmac (${auth.header}, ${auth.algorithm}, ${auth.encoding})`;
    case "standardWebhooks":
      return "signed with standardWebhooks (webhook-id, webhook-timestamp, webhook-signature)";
    case "bearer":
      return "with the bearer token";
  }
}

function silenceHint({ clientCa, tls }: WebhookConfig): string {
  if (clientCa !== null)
    return "the listener needs a client certificate of webhook.tls.clientCa, which this verb does not have";
  return tls === null
    ? "is setpointd running? It listens only while it does"
    : "is setpointd running, and with the certificate that webhook.tls.cert names now (systemctl reload setpointd)?";
}

/** Reason for a refusal. The HTTP answer has only a status code, so it comes from the daemon's status. */
async function formatRefusal(
  { status }: Answered,
  named: string | undefined,
  sentAt: Instant,
): Promise<string> {
  if (status === 404 || status === 405)
    return "another program listens there, or the daemon runs with another webhook.path: restart it after a change";
  const local = await askStatus(named);
  if (local.kind !== "answered") return "the reason is in the daemon's log, and in setpointd status";
  const { webhook } = local.body as { readonly webhook?: { readonly refused: Refused } | null };
  const newest = Object.values(webhook?.refused ?? {})
    .filter(({ lastAt }) => Date.parse(lastAt) >= sentAt)
    .toSorted((a, b) => a.lastAt.localeCompare(b.lastAt))
    .at(-1);
  if (newest === undefined) return "the daemon's status has no reason for it: see its log";
  return status === 401
    ? `the daemon's reason: ${newest.explanation}; was it restarted since webhook.auth or its secret was changed?`
    : `the daemon's reason: ${newest.explanation}`;
}

/** Refused requests by reason. */
type Refused = Readonly<Record<string, { readonly lastAt: string; readonly explanation: string }>>;

/** Prints rejections with their reasons, and the audit rows that the delivery has caused. */
async function printOutcome(
  config: Config,
  body: Buffer,
  sentAt: Instant,
  now: () => Instant,
): Promise<ExitCode> {
  const { state, site } = config;
  const read = dialectOf(config).readDelivery(body);
  const notices = read.kind === "read" ? read.notices : [];
  const rejected = notices.filter((notice) => notice.kind === "rejected");
  // Rejections with an id have an audit row.
  for (const { id, path, reason } of rejected)
    if (id === null) writeErrorLine(`no event that can be read: ${path}: ${reason}`);
  if (notices.length === 0) say("there is no event in it: the daemon asks the partner instead");
  const clock = wallClock(site.timezone, now);
  for (const id of new Set(notices.map((notice) => eventOf(notice)).filter((one) => one !== null))) {
    const rows = await rowsOf(state, id, sentAt);
    if (typeof rows === "string") {
      writeErrorLine(rows);
      return 1;
    }
    if (rows.length === 0) say(`${id}: nothing new, this revision was known already`);
    for (const { at, words } of rows.slice(0, MAX_SHOWN)) writeLine(`${clock(fromIso(at))}  ${words}`);
    const more = rows.length - MAX_SHOWN;
    if (more > 0) writeLine(`and ${more} more: setpointd audit --event ${id}`);
  }
  return rejected.length > 0 ? 1 : 0;
}

interface Row {
  /** ISO. */
  readonly at: string;
  readonly kind: AuditKind;
  readonly words: string;
}

/** Cap on printed rows. */
const MAX_SHOWN = 20;
/** Cap on rows that are read. An event for a fleet has a few rows per charger. */
const MAX_READ = 5000;
/** Kinds of rows that a delivery causes at once. Later outcomes are left to `audit`. */
const SHOWN: readonly AuditKind[] = ["event", "rejected", "decision", "missed"];

/** Rows of the event since then, oldest first. A string is the reason why they cannot be read. */
async function rowsOf(state: string, event: string, since: Instant): Promise<readonly Row[] | string> {
  const query = new URLSearchParams({ event, newest: "true", limit: String(MAX_READ) });
  const answer = await askDaemon(state, "GET", `/audit?${query.toString()}`);
  if (answer.kind === "answered" && answer.status === 200)
    return (answer.body as readonly Row[])
      .filter(({ at, kind }) => Date.parse(at) >= since && SHOWN.includes(kind))
      .toReversed();
  const why = answer.kind === "failed" ? answer.reason : "no daemon holds the state of this configuration";
  return `${why}: the listener that answered may belong to another daemon`;
}

export const webhookVerb: Verb = (verb, { config, now, randomBytes, done }) => {
  verb
    .command("test")
    .description("post one signed event to this machine's own listener, and show the daemon's reaction")
    .option(
      "--event <file>",
      "post this body (JSON) unchanged; the daemon acts on it; - reads standard input; default: an event without effect",
    )
    .action(async ({ event }: { event?: string }) => {
      done(await webhookTest(config(), event, now, randomBytes));
    });
};
