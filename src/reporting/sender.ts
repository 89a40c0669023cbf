import type { ControlState } from "../control/state.ts";
import type { PostAnswer, ReportRecord } from "../domain/report.ts";
import { after, type Instant, instant, later, millis } from "../domain/units.ts";
import { messageOf } from "../platform/text.ts";
import { resentRow, triedRow } from "./auditRows.ts";
import {
  type Outbox,
  aboutEvent,
  afterPost,
  dueAt,
  firstBy,
  isCommonTrouble,
  isForbidden,
  pauseAfter,
  resent,
} from "./outbox.ts";
import type { ReportOutcome, ReportPorts, ReportRules } from "./ports.ts";

const LONG_AGO = millis(-Infinity);
/** Reports in a row that the partner forbids: then it forbids all of them, and the others wait as well. */
const MANY_FORBIDDEN = 3;
const LOST: PostAnswer = {
  kind: "answered",
  status: 400,
  text: "the stored body is gone, or was changed on the disk",
  retryAfter: null,
};

/** Parts that a sender uses. */
interface SenderParts {
  readonly known: ControlState["known"];
  readonly outbox: Outbox;
  readonly rules: ReportRules;
  readonly ports: ReportPorts;
}

/** Sends the reports of the outbox, one at a time, and records each outcome. */
export class ReportSender {
  readonly #known: ControlState["known"];
  readonly #outbox: Outbox;
  readonly #rules: ReportRules;
  readonly #ports: ReportPorts;
  /** No report is sent before this time: the endpoint failed, or asked us to wait. Monotonic clock. */
  #closedUntil = LONG_AGO;
  /** Failures of the endpoint since it last took a report. */
  #failures = 0;
  /** Names of the reports that the partner forbade since it last answered otherwise. */
  readonly #forbidden = new Set<string>();

  constructor({ known, outbox, rules, ports }: SenderParts) {
    this.#known = known;
    this.#outbox = outbox;
    this.#rules = rules;
    this.#ports = ports;
  }

  /** Time of the next report to send. */
  next(): Instant | undefined {
    if (!this.#rules.enabled) return undefined;
    const now = this.#ports.now();
    const first = firstBy(this.#outbox.waiting(), now, instant(Infinity));
    if (first === undefined) return undefined;
    const opens = millis(Math.ceil(this.#closedUntil - this.#ports.monotonic()));
    return later(dueAt(first, now), after(now, opens));
  }

  /** Sends the reports that are due, until the endpoint fails. */
  async send(): Promise<void> {
    for (let record = this.#due(); record !== undefined; record = this.#due()) {
      const body = await this.#bodyOf(record.name);
      this.#settle(record.name, body.kind === "read" ? await this.#ports.post(body.text) : body);
    }
  }

  /** Sends one report again now, for an operator. */
  resend(record: ReportRecord): void {
    const now = this.#ports.now();
    const again = resent(record, now);
    this.#outbox.update(again, [resentRow(again, now)]);
    [this.#closedUntil, this.#failures] = [LONG_AGO, 0];
  }

  #due(): ReportRecord | undefined {
    if (!this.#rules.enabled || this.#ports.monotonic() < this.#closedUntil) return undefined;
    const now = this.#ports.now();
    return firstBy(this.#outbox.waiting(), now, now);
  }

  async #bodyOf(name: string): Promise<PostAnswer | { readonly kind: "read"; readonly text: string }> {
    try {
      const text = await this.#ports.body(name);
      return text === null ? LOST : { kind: "read", text };
    } catch (error) {
      // The file exists and may be readable at the next attempt.
      return { kind: "silent", reason: `its body could not be read: ${messageOf(error)}`, retryAfter: null };
    }
  }

  /** Records the outcome of one attempt. */
  #settle(name: string, given: PostAnswer): void {
    const record = this.#outbox.get(name);
    if (record === undefined) return;
    const { ahead, counted, monotonic, random } = this.#ports;
    const now = this.#ports.now();
    const answer = aboutEvent(given, this.#known.get(record.event));
    const giveUpAfter = millis(this.#rules.giveUpAfter + ahead());
    const next = afterPost(record, answer, { giveUpAfter, now, fraction: random() });
    this.#outbox.update(next, triedRow(record, next, now));
    if (isForbidden(answer)) this.#forbidden.add(name);
    else this.#forbidden.clear();
    const isCommon = isCommonTrouble(answer) || this.#forbidden.size >= MANY_FORBIDDEN;
    this.#failures = isCommon ? this.#failures + 1 : 0;
    this.#closedUntil =
      this.#failures > 0 ? millis(monotonic() + pauseAfter(answer, this.#failures, random())) : LONG_AGO;
    counted(outcomeOf(next));
  }
}

function outcomeOf({ state, nextTry }: ReportRecord): ReportOutcome {
  if (state === "sent") return "sent";
  return nextTry === null ? "flagged" : "retried";
}
