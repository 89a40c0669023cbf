import { DateTime } from "luxon";

import { writeTimespan } from "../../src/vtn/dialects/partner/fields.ts";
import { type Instant, millis } from "../../src/domain/units.ts";
import type { Calendar, Misanswer, PlannedAsk, PlannedEvent, PlannedReport } from "./plan.ts";
import type { TrueEvent } from "./oracle.ts";
import { SimIdentity } from "./simIdentity.ts";
import { type Posted, SimTray } from "./simTray.ts";
import type { WireAnswer, WireAsk } from "./virtualWire.ts";

const SLOW = 4_000;
const HEADERS = { "content-type": "application/json" };
const NO_ANSWER = new Promise<never>(() => {});

interface PartnerOptions extends Calendar {
  /** True time: it stamps revisions. */
  readonly truth: () => Instant;
  readonly monotonic: () => number;
  readonly random: () => number;
  /** A report came, taken or not. */
  readonly onPosted: (posted: Posted) => void;
}

/** The partner: what it truly has, every revision there ever was, and how it answers over HTTP. */
export class SimPartner {
  readonly events = new Map<string, TrueEvent>();
  /** Every revision that was ever issued, by event, oldest first. */
  readonly history = new Map<string, TrueEvent[]>();
  /** Undefined: well. */
  answers: Misanswer | undefined;
  readonly identity: SimIdentity;
  readonly tray: SimTray;
  /** When anything but a token was asked for, monotonic ms. */
  readonly askedAt: number[] = [];
  readonly #options: PartnerOptions;
  #lastRevision = 0;
  #list: string | null = null;

  constructor(options: PartnerOptions) {
    this.#options = options;
    this.identity = new SimIdentity(options.truth, options.monotonic);
    this.tray = new SimTray(options);
  }

  /** Takes a revision in and answers the webhook body that tells of it. */
  put(plan: PlannedEvent, sameTime: boolean): unknown {
    const before = this.events.get(plan.id);
    const revised = sameTime && before !== undefined ? before.revised : this.#stamp();
    const event = { plan, revised, created: before?.created ?? revised };
    this.events.set(plan.id, event);
    this.history.set(plan.id, [...(this.history.get(plan.id) ?? []), event]);
    this.#list = null;
    return this.#wire(event);
  }

  /** Forgets an event and answers the body of the notice; null: it was not there. */
  withdraw(id: string): unknown {
    const before = this.events.get(id);
    if (before === undefined) return null;
    this.events.delete(id);
    this.#list = null;
    const object = { ...this.#wire(before), modificationDateTime: moment(this.#stamp()) };
    return { objectType: "EVENT", operation: "DELETE", object };
  }

  /** partner-interface 4, and where reports go. */
  readonly answer = async (ask: WireAsk): Promise<WireAnswer> => {
    const { path, headers, body } = ask;
    if (path === "/connect/token") {
      await this.#aWhile(100);
      return this.identity.answer();
    }
    this.askedAt.push(this.#options.monotonic());
    const answer = await this.#authorized(path, headers["authorization"], body);
    // Whole seconds, as HTTP has them.
    return { ...answer, headers: { date: new Date(this.#options.truth()).toUTCString(), ...answer.headers } };
  };

  async #authorized(
    path: string,
    authorization: string | undefined,
    body: string | null,
  ): Promise<WireAnswer> {
    const how = this.answers;
    const isRefused = how === "unauthorized" || !this.identity.accepts(authorization);
    await this.#aWhile(how === "slow" ? SLOW : 100);
    if (how === "silent") return NO_ANSWER;
    if (isRefused) return { status: 401, headers: HEADERS, body: "{}" };
    if (how === "error") return { status: 500, headers: HEADERS, body: "{}" };
    if (how === "throttled") return { status: 429, headers: { "retry-after": "180" }, body: "" };
    if (body !== null) return this.tray.answer(body);
    const asked = path.split("/v1/events")[1] ?? "";
    const events = asked === "" ? this.#listNow() : this.#one(decodeURIComponent(asked.slice(1)));
    return events === null
      ? { status: 404, headers: HEADERS, body: "{}" }
      : { status: 200, headers: HEADERS, body: how === "garbage" ? events.slice(0, -2) : events };
  }

  async #aWhile(most: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 20 + most * this.#options.random()));
  }

  #one(id: string): string | null {
    const found = this.events.get(id);
    return found === undefined ? null : JSON.stringify(this.#wire(found));
  }

  #listNow(): string {
    if (this.answers === "empty") return "[]";
    const { random } = this.#options;
    const all = [...this.events.values()];
    if (this.answers === "partial") return this.#written(all.filter(() => random() < 0.5));
    this.#list ??= this.#written(all);
    return this.#list;
  }

  #written = (events: readonly TrueEvent[]): string =>
    JSON.stringify(events.map((event) => this.#wire(event)));

  /** Two revisions never share a moment unless they are meant to. */
  #stamp(): number {
    this.#lastRevision = Math.max(this.#options.truth(), this.#lastRevision + 1);
    return this.#lastRevision;
  }

  /** partner-interface 2.1. */
  #wire({ plan, revised, created }: TrueEvent) {
    return {
      ID: plan.id,
      name: plan.id,
      createdDateTime: moment(created),
      modificationDateTime: moment(revised),
      programID: "PRG-1",
      priority: plan.priority,
      targets: [{ targetType: "vehicle", values: plan.vehicles }],
      intervalPeriod: {
        start: wireStart(plan, this.#options),
        duration: writeTimespan(millis(plan.duration)),
        ...(plan.spread > 0 ? { randomizeStart: writeTimespan(millis(plan.spread)) } : {}),
      },
      payload: payload(plan.ask),
      ...(plan.reports.length === 0 ? {} : { reportDescriptors: plan.reports.map(descriptor) }),
    };
  }
}

const moment = (at: number): string => new Date(at).toISOString();

/** With the offset of the partner's zone. */
const wireStart = ({ start }: Pick<PlannedEvent, "start">, { midnight, writtenIn: zone }: Calendar): string =>
  zone === "UTC" ? moment(midnight + start) : (DateTime.fromMillis(midnight + start, { zone }).toISO() ?? "");

const descriptor = ({ payloadType, historical, numIntervals, repeat }: PlannedReport) => ({
  payloadType,
  readingType: "DIRECT_READ",
  aggregate: false,
  historical,
  frequency: 0,
  startInterval: numIntervals === 0 ? 0 : -1,
  numIntervals,
  repeat,
});

function payload(ask: PlannedAsk) {
  switch (ask.kind) {
    case "current":
      return { payloadType: "CurrentLevel", targetCurrent: ask.amperes };
    case "power":
      return { payloadType: "PowerLevel", targetPower: ask.kilowatts };
    case "unknown":
      return { payloadType: "Unknown", targetCurrent: 1 };
  }
}
