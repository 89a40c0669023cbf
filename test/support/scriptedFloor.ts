import { type Command, commandId, type Sent } from "../../src/domain/command.ts";
import { levelOnRecord } from "../../src/domain/setpoint.ts";
import type { ChargerMessage } from "../../src/domain/telemetry.ts";
import { type ChargerId, chargerId, type Instant, type Millis } from "../../src/domain/units.ts";
import { virtualNow } from "./virtualTime.ts";

/** How the broker treats what is published to one charger. */
export type Publishing = "works" | "fails" | "hangs" | { readonly takesMs: number };

/** One message that reached the broker. */
export interface Published {
  readonly at: Instant;
  readonly id: string;
  /** "bay-01 10 A". */
  readonly words: string;
  readonly command: Command;
  readonly lease: Millis;
}

/**
 * Broker and chargers as a test wants them. Whatever is published is held against the rules that hold always:
 * recorded before it is sent, one at a time per charger, nothing past its end.
 */
export class ScriptedFloor {
  readonly published: Published[] = [];
  readonly states: { readonly charger: ChargerId; readonly payload: string }[] = [];
  /** What was attempted while the broker was down, or refused. */
  failures = 0;
  /** Rules that were broken, in words. */
  readonly breaches: string[] = [];
  readonly #onMessage: (message: ChargerMessage) => void;
  readonly #isRecorded: (command: Command) => boolean;
  readonly #publishing = new Map<ChargerId, Publishing>();
  readonly #inFlight = new Set<ChargerId>();
  readonly #giveUp = new Set<() => void>();
  #up = true;
  answers: "accepts" | "refuses" | "silent" = "accepts";
  /** Reboots, each with its charger and the id of the request. */
  readonly reboots: (readonly [charger: string, id: string])[] = [];
  /** Reason why no charger can be restarted. Null: each can. */
  cannotReboot: string | null = null;

  constructor(onMessage: (message: ChargerMessage) => void, isRecorded: (command: Command) => boolean) {
    this.#onMessage = onMessage;
    this.#isRecorded = isRecorded;
  }

  async reboot(charger: ChargerId, id: string): Promise<Sent> {
    if (!this.#up) return { ok: false, retry: true, reason: "no broker" };
    if (this.#publishing.get(charger) === "fails") return { ok: false, retry: false, reason: "refused" };
    this.reboots.push([charger, id]);
    return { ok: true };
  }

  publishing(charger: string, how: Publishing): void {
    this.#publishing.set(chargerId(charger), how);
  }

  /** The connection breaks: whatever is on its way fails. */
  goDown(): void {
    this.#up = false;
    this.failInFlight();
  }

  get isUp(): boolean {
    return this.#up;
  }

  comeUp(): void {
    this.#up = true;
  }

  failInFlight(): void {
    for (const giveUp of this.#giveUp) giveUp();
    this.#giveUp.clear();
  }

  async send(command: Command, lease: Millis): Promise<Sent> {
    const { charger } = command;
    this.#holdToTheRules(command);
    if (!this.#up) return this.#failed("not connected");
    const how = this.#publishing.get(charger) ?? "works";
    if (how === "fails") return this.#failed("refused by the broker");
    const at = virtualNow();
    const words = `${charger} ${levelOnRecord(command.desired)}`;
    this.published.push({ at, id: commandId(command), words, command, lease });
    this.#inFlight.add(charger);
    const arrived = await this.#acknowledged(how);
    this.#inFlight.delete(charger);
    if (!arrived) return this.#failed("no PUBACK");
    if (this.answers !== "silent") setTimeout(() => this.#answer(command), 20);
    return { ok: true };
  }

  async publishState(charger: ChargerId, payload: string): Promise<Sent> {
    if (!this.#up) return { ok: false, retry: true, reason: "not connected" };
    this.states.push({ charger, payload });
    return { ok: true };
  }

  #acknowledged(how: Exclude<Publishing, "fails">): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const giveUp = (): void => resolve(false);
    this.#giveUp.add(giveUp);
    if (how !== "hangs") {
      const takesMs = how === "works" ? 5 : how.takesMs;
      setTimeout(() => {
        this.#giveUp.delete(giveUp);
        resolve(true);
      }, takesMs);
    }
    return promise;
  }

  #failed(reason: string): Sent {
    this.failures += 1;
    return { ok: false, retry: true, reason };
  }

  #answer(command: Command): void {
    const accepted = this.answers === "accepts";
    const id = commandId(command);
    const reason = accepted ? null : "busy";
    this.#onMessage({ kind: "ack", charger: command.charger, id, accepted, value: null, reason });
  }

  #holdToTheRules(command: Command): void {
    const name = `${command.charger} ${commandId(command)}`;
    if (!this.#isRecorded(command)) this.breaches.push(`${name} was sent before it was recorded`);
    if (this.#inFlight.has(command.charger))
      this.breaches.push(`${name} was sent while another was under way`);
    if (command.until !== null && command.until <= virtualNow())
      this.breaches.push(`${name} was sent past its end`);
  }
}
