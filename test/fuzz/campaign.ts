import { aDialect } from "../support/aDialect.ts";
import { createHmac } from "node:crypto";

import type { Delivery } from "../../src/domain/delivery.ts";
import { ControlState } from "../../src/control/state.ts";
import { instant, iso, seconds } from "../../src/domain/units.ts";
import { ingestAtOnce } from "../support/ingestAtOnce.ts";
import { receive } from "../../src/vtn/reception.ts";
import { NOTHING_STORED } from "../support/aPicture.ts";
import { aCharger, aVehicle, settingsWith, SITE_KEY } from "../support/aCharger.ts";
import { validBodies } from "./bodies.ts";
import { below, chance, oneOf } from "./chance.ts";
import { mutate } from "./mutate.ts";
import { notTotal } from "./total.ts";

export interface Campaign {
  readonly bodies: number;
  /** The same seed makes the same bodies. */
  readonly seed: number;
  readonly onProgress?: (done: number) => void;
}

export interface Outcome {
  /** Bodies by what they were answered, e.g. `202`, `400`. */
  readonly answers: ReadonlyMap<number, number>;
  /** Events that were accepted although their body was mutated: all of them total. */
  readonly accepted: number;
  readonly rejected: number;
  readonly slowestMs: number;
  /** What must not happen, in words with the body in base64; the first few. */
  readonly findings: readonly string[];
}

const NOW = instant(Date.UTC(2026, 10, 21, 12));
const SECRET = "of the fuzzing campaign";
const MOST_FINDINGS = 10;
/** So many accepted bodies share a depot: what they leave behind is bounded. */
const DEPOT_LASTS = 1_000;

const aPicture = (): ControlState =>
  new ControlState({
    chargers: [aCharger()],
    vehicles: [aVehicle()],
    settings: settingsWith(),
    siteKey: SITE_KEY,
    epoch: 1,
    archive: NOTHING_STORED,
    wallClock: iso,
    assertAll: false,
  });

const signed = (bytes: Buffer) => ({
  "x-signature": createHmac("sha256", SECRET).update(bytes).digest("hex"),
});

/** What a depot believes, as text. */
const belief = (depot: ControlState): string => JSON.stringify([...depot.known]);

/**
 * Mutated bodies through the real reception (signature, parser) and the real intake. What says nothing readable goes
 * to one depot, whose events must stay as they are; what is still an event must be a total one.
 */
export async function campaign({ bodies, seed, onProgress }: Campaign): Promise<Outcome> {
  const random = chance(seed);
  const findings: string[] = [];
  const answers = new Map<number, number>();
  const counts = { accepted: 0, rejected: 0, slowestMs: 0, news: 0 };
  const standing = aPicture();
  let scratch = aPicture();
  let forged = false;
  let body: Buffer = Buffer.alloc(0);
  let clock = 0;
  const found = (words: string): void => {
    if (findings.length < MOST_FINDINGS) findings.push(`${words}: ${body.toString("base64")}`);
  };

  const judge = (delivery: Delivery): void => {
    if (forged) found("a forged body was taken");
    for (const notice of delivery.notices) {
      if (notice.kind === "rejected") counts.rejected += 1;
      if (notice.kind !== "event") continue;
      counts.accepted += 1;
      const wrong = notTotal(notice.event);
      if (wrong !== null) found(`an event with a bad ${wrong} was accepted`);
    }
  };

  const reception = receive({
    dialect: aDialect(),
    scheme: {
      kind: "hmac",
      header: "x-signature",
      algorithm: "sha256",
      encoding: "hex",
      timestamp: null,
      secrets: () => [SECRET],
    },
    now: () => NOW,
    // The pace of deliveries is not what is tried here.
    monotonic: () => (clock += seconds(1)),
    hint: () => undefined,
    ingest: async (delivery) => {
      judge(delivery);
      const isJunk = delivery.notices.every(({ kind }) => kind === "rejected");
      if (!isJunk && (counts.news += 1) % DEPOT_LASTS === 0) scratch = aPicture();
      const [taken] = ingestAtOnce(isJunk ? standing : scratch, [delivery]).results;
      return taken === undefined ? { ok: false, reason: "not taken" } : { ok: true, ingested: taken };
    },
  });
  const valid = { source: "webhook", at: NOW, askedAt: NOW, complete: false } as const;
  for (const original of validBodies) await reception(signed(original), original, NOW);
  ingestAtOnce(standing, [{ ...valid, notices: [...scratch.known.values()].flatMap(asNotice) }]);
  const before = belief(standing);

  for (let done = 0; done < bodies; done += 1) {
    const original = oneOf(validBodies, random);
    body = mutate(original, random);
    forged = below(10, random) === 0 && !body.equals(original);
    const began = performance.now();
    try {
      const received = await reception(signed(forged ? original : body), body, NOW);
      const status = received.kind === "ingested" ? 202 : received.status;
      answers.set(status, (answers.get(status) ?? 0) + 1);
      if (forged && status !== 401) found(`a forged body was answered ${status}`);
    } catch (error) {
      found(`it threw ${String(error)}`);
    }
    counts.slowestMs = Math.max(counts.slowestMs, performance.now() - began);
    if (done % 10_000 === 0) {
      if (belief(standing) !== before) found("junk changed what is known, at the latest with");
      onProgress?.(done);
    }
  }
  if (belief(standing) !== before) found("junk changed what is known, at the latest with");
  if (Object.keys(Object.prototype).length > 0 || "polluted" in {}) found("a prototype was changed");
  const { accepted, rejected, slowestMs } = counts;
  return { answers, accepted, rejected, slowestMs, findings };
}

const asNotice = (known: ControlState["known"] extends ReadonlyMap<unknown, infer Known> ? Known : never) =>
  known.kind === "live" ? [{ kind: "event", event: known.revision.event } as const] : [];
