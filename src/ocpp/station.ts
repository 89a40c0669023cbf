import type { OcppConfig, StationConfig } from "../config/ocpp.ts";
import { type Instant, millis } from "../domain/units.ts";
import { type Answer, Calls } from "./calls.ts";
import { concernedBy, connectorOf, highestBelow, Outlet, type StationPorts } from "./outlet.ts";
import { askForCapabilities, askForPresentState, configureMeters } from "./probe.ts";
import { aheadOf } from "./outletState.ts";
import { ForeignProfiles } from "./foreignProfiles.ts";
import {
  type Connected,
  type Link,
  named,
  nextTransactionId,
  RefusedVersions,
  startedIn,
  upstreamFor,
} from "./relay.ts";
import { StationCounts } from "./stationCounts.ts";
import type { Capabilities, Dialect, Meaning, Received, Request } from "./wire/dialect.ts";
import { UnplacedStarts } from "./wire/dialect.ts";
import { type Call, type Frame, readFrame, type Reply, writeReply } from "./wire/frame.ts";

/**
 * The life of one charger:
 *
 *   absent --connects--> connected --first message, or 5 s--> probing --answered, or 2 s--> ready
 *      ^                     |                                   |                          |
 *      +---------------------+-----------------------------------+----------- disconnects --+
 *
 * Commands are passed in `ready` only. A newer connection of the same identity replaces the present one in any state.
 */
export type StationLife =
  | { readonly kind: "absent"; readonly since: Instant; readonly reason: string }
  | { readonly kind: "connected" | "probing"; readonly on: Connected }
  | { readonly kind: "ready"; readonly on: Connected; readonly capabilities: Capabilities };

/** A station that sends nothing first is asked after this time, ms. */
const FIRST_MESSAGE_WITHIN = 5_000;
/** A restart this soon after a written profile is counted as its effect, ms. */
const REBOOT_AFTER_PROFILE = 60_000;

/** A charger over all its connections. */
export class Station {
  readonly config: StationConfig;
  readonly outlets: readonly Outlet[];
  readonly #shared: OcppConfig;
  readonly #ports: StationPorts;
  #life: StationLife;
  #firstMessage: NodeJS.Timeout | undefined;
  #lastTransaction = 0;
  readonly #unplaced = new UnplacedStarts();
  readonly #foreign: ForeignProfiles;
  readonly refusedVersions: RefusedVersions;
  /** End of the upstream of the former connection. */
  #farewell: Promise<void> = Promise.resolve();
  /** "vendor model, firmware x". "": not reported yet. */
  model = "";
  #isClockPutRight = false;
  readonly counts: StationCounts;
  /** Clock of the station ahead of ours, by its last message with a time. */
  #clockAhead = millis(0);

  constructor(config: StationConfig, shared: OcppConfig, ports: StationPorts) {
    this.config = config;
    this.#shared = shared;
    this.#ports = ports;
    this.counts = new StationCounts(ports.now);
    this.refusedVersions = new RefusedVersions(ports.now);
    this.#life = { kind: "absent", since: ports.now(), reason: "not connected since the start" };
    this.#foreign = new ForeignProfiles(ports.relayStore, config.identity, ports.log, ports.now);
    this.outlets = config.connectors.map(
      (connector) =>
        new Outlet(connector, shared, {
          ...ports,
          isAlone: config.connectors.length === 1,
          station: () => this.#ready(),
          foreign: this.#foreign,
          onOutOfOrder: () => this.counts.add("outOfOrder"),
        }),
    );
  }

  get life(): StationLife {
    return this.#life;
  }

  /** Time without a connection. Zero: connected. */
  readonly absentFor = (now: Instant): number => (this.#life.kind === "absent" ? now - this.#life.since : 0);

  /** A connection that has passed the login. The newest one wins. */
  attach(link: Link, dialect: Dialect): void {
    const { now, log, nextId } = this.#ports;
    if (this.#life.kind !== "absent") {
      this.counts.add("replaced");
      const { address } = this.#life.on.link;
      log.warn(
        { station: this.config.identity, was: address, is: link.address },
        "a newer connection of this identity replaces the present one: are two chargers set to one identity?",
      );
      this.#detach("replaced by a newer connection of the same identity", true);
    }
    this.counts.add("connections");
    this.#clockAhead = millis(0);
    const calls = new Calls({
      send: link.send,
      nextId,
      deadline: this.#shared.callTimeout,
      onUnanswered: (action) => {
        this.counts.add("unanswered");
        log.warn({ station: this.config.identity, action }, "the charger did not answer a request");
      },
    });
    const { identity } = this.config;
    const toCharger = (call: Call): Call => this.#foreign.onRequest(call, highestBelow(this.outlets));
    const { authorization } = link;
    const onVersionRefused = (): void => this.#onVersionRefused(link, dialect);
    const upstream = upstreamFor(
      { identity, authorization, dialect, former: this.#farewell, calls, toCharger, onVersionRefused },
      this.#shared,
      this.#ports,
    );
    this.#life = { kind: "connected", on: { since: now(), link, dialect, calls, upstream } };
    this.#firstMessage = setTimeout(() => void this.#probe(), FIRST_MESSAGE_WITHIN);
    log.info(
      { station: this.config.identity, address: link.address, ocpp: dialect.version },
      "charger connected",
    );
  }

  /** A message on a connection. Messages of a replaced connection are not read. */
  onText(link: Link, text: string): void {
    const life = this.#life;
    if (life.kind === "absent" || life.on.link !== link) return;
    this.counts.add("messages");
    const frame = readFrame(text);
    switch (frame.kind) {
      case "call":
        void this.#onCall(frame, text, life.on);
        break;
      case "result":
      case "error":
        this.#onAnswer(frame, text, life.on);
        break;
      case "malformed":
        this.counts.add("malformed");
        if (frame.id !== null)
          link.send(
            writeReply(frame.id, { ok: false, code: "FormationViolation", description: frame.reason }),
          );
        break;
    }
  }

  /** The connection ended. Ignored for a replaced one. */
  onClosed(link: Link, reason: string): void {
    if (this.#life.kind === "absent" || this.#life.on.link !== link) return;
    this.#ports.log.info({ station: this.config.identity, reason }, "charger disconnected");
    this.#detach(reason, false);
  }

  /** The upstream does not speak the version of a connection. The station connects again, with another that it offers. */
  #onVersionRefused(link: Link, dialect: Dialect): void {
    const next = this.refusedVersions.next(dialect, link.offered);
    if (next === null || this.#life.kind === "absent" || this.#life.on.link !== link) return;
    const reason = `connect again with OCPP ${next.version}: the central system (upstream) refused ${dialect.version}`;
    this.#ports.log.warn({ station: this.config.identity, reason }, "charger disconnected");
    this.#detach(reason, true);
  }

  async close(): Promise<void> {
    if (this.#life.kind !== "absent") this.#detach("the bridge stops", true);
    await Promise.all([this.#farewell, ...this.outlets.map((outlet) => outlet[Symbol.asyncDispose]())]);
  }

  #detach(reason: string, closesLink: boolean): void {
    if (this.#life.kind === "absent") return;
    const { calls, link, upstream } = this.#life.on;
    this.#isClockPutRight = false;
    clearTimeout(this.#firstMessage);
    this.#life = { kind: "absent", since: this.#ports.now(), reason };
    calls.close();
    const former = this.#farewell;
    this.#farewell = Promise.all([former, upstream?.close()]).then(() => undefined);
    this.#foreign.onAway();
    for (const outlet of this.outlets) outlet.onAway();
    if (closesLink) link.close(reason);
  }

  #onAnswer(frame: Extract<Frame, { kind: "result" | "error" }>, text: string, on: Connected): void {
    const owner = on.calls.handle(frame);
    if (owner === null) this.counts.add("unexpected");
    if (owner === "passing") on.upstream?.answer(text);
    if (owner === "own" || !this.#foreign.onAnswer(frame, (id) => connectorOf(id, this.outlets))) return;
    this.counts.add("foreignProfiles");
    for (const { connector } of this.outlets) void connector.rewrite();
  }

  async #onCall(call: Call, text: string, on: Connected): Promise<void> {
    const { reply, meanings } = this.#answerHere(call, on);
    const transaction = startedIn(meanings);
    if (!reply.ok && on.upstream?.isUp !== true) this.counts.add("malformed");
    if (on.upstream === null) on.link.send(writeReply(call.id, reply));
    // A slow upstream delays the answer, not the telemetry. Only a start needs the id in the answer.
    if (transaction === null) this.#understand(meanings, reply);
    if (on.upstream !== null) {
      const relayed = await on.upstream.relay(call, text, { reply, transaction });
      on.link.send(relayed.text ?? writeReply(call.id, relayed.reply));
      if (this.#life.kind === "absent" || this.#life.on !== on) return;
      if (transaction !== null) this.#understand(named(meanings, relayed.reply, on.dialect), reply);
    } else if (transaction !== null) this.#understand(meanings, reply);
    if (this.#life.kind === "connected") void this.#probe();
  }

  #answerHere(call: Call, { dialect }: Connected): Received {
    const { now } = this.#ports;
    const { tags, heartbeat } = this.#shared;
    return dialect.receive(call, {
      now: now(),
      heartbeat: Math.round(heartbeat / 1000),
      accepts: (token) => tags === null || tags.has(token.toLowerCase()),
      nextTransaction: () => (this.#lastTransaction = nextTransactionId(this.#lastTransaction, now())),
    });
  }

  #understand(meanings: readonly Meaning[], reply: Reply): void {
    if (!reply.ok) return;
    for (const meaning of this.#unplaced.placed(meanings)) {
      if (meaning.kind === "boot") this.#onBoot(meaning);
      if ("at" in meaning && meaning.at !== null) this.#clockAhead = aheadOf(meaning.at, this.#ports.now());
      const concerned = concernedBy(meaning, this.outlets, this.#unplaced, this.counts);
      for (const outlet of concerned) this.#pass(outlet, meaning);
      if (concerned.length > 0) continue;
      this.#unplaced.keep(meaning);
      // Connector 0 is the station, which sends a status of its own.
      if ("connector" in meaning && (meaning.connector ?? 0) > 0) this.counts.add("otherConnectors");
    }
    // Any message is a sign of life. Chargers without a vehicle send little else than heartbeats.
    if (meanings.length === 0) for (const outlet of this.outlets) outlet.publish();
  }

  #pass(outlet: Outlet, meaning: Meaning): void {
    if (!outlet.onMeaning(meaning)) return;
    this.counts.add("clockWrong");
    void this.#putClockRight();
  }

  /** A heartbeat makes the station read our time. */
  async #putClockRight(): Promise<void> {
    const ready = this.#ready();
    if (this.#isClockPutRight || ready === null) return;
    this.#isClockPutRight = true;
    const { identity: station } = this.config;
    this.#ports.log.warn({ station }, "the charger's clock is wrong: sending it the time");
    await ready.ask(ready.dialect.trigger("heartbeat", null));
  }

  #onBoot({ vendor, model, firmware }: Extract<Meaning, { kind: "boot" }>): void {
    this.counts.add("boots");
    this.model = [`${vendor} ${model}`.trim(), firmware].filter(Boolean).join(", firmware ");
    const since = this.#ports.now() - REBOOT_AFTER_PROFILE;
    if (this.outlets.some(({ lastWriteAt }) => (lastWriteAt ?? 0) > since)) {
      this.counts.add("bootsAfterProfile");
      this.#ports.log.warn(
        { station: this.config.identity, times: this.counts.of("bootsAfterProfile") },
        "the charger restarted within a minute after a charging profile",
      );
    }
    if (this.#life.kind !== "ready") return;
    // A station that restarts on an open connection has lost what it was asked.
    for (const outlet of this.outlets) outlet.onAway();
    this.#life = { kind: "connected", on: this.#life.on };
  }

  async #probe(): Promise<void> {
    clearTimeout(this.#firstMessage);
    if (this.#life.kind !== "connected") return;
    const { on } = this.#life;
    let life: StationLife = (this.#life = { kind: "probing", on });
    const [{ log }, { identity: station }] = [this.#ports, this.config];
    const capabilities = await askForCapabilities(on, station, log, (known) => {
      if (this.#life !== life) return;
      this.#life = life = { kind: "ready", on, capabilities: known };
      for (const outlet of this.outlets) outlet.onReady();
    });
    if (this.#life !== life) return;
    await configureMeters(on, capabilities, this.#shared.meterValues, station, log);
    await askForPresentState(on, capabilities, this.outlets);
  }

  #ready() {
    const life = this.#life;
    if (life.kind !== "ready") return null;
    const { dialect, calls } = life.on;
    return {
      dialect,
      capabilities: life.capabilities,
      clockAhead: this.#clockAhead,
      ask: <T>(request: Request<T>): Promise<Answer<T>> => calls.ask(request),
    };
  }
}
