import { generateKeyPairSync } from "node:crypto";

import { type AuditEntry, type Json, type RecordRow, headSeal } from "../../src/domain/audit.ts";
import { chargerId, eventId, millis, vehicleId } from "../../src/domain/units.ts";
import { type ProofInput, proofFacts } from "../../src/proof/compose.ts";
import { type Fact, sealed, type Format, serialized } from "../../src/proof/file.ts";
import { cellsOf, GENESIS, rowHash, rowText } from "../../src/store/chain.ts";
import { aContext, SITE_KEY } from "./aCharger.ts";
import { charging, fillContext, from } from "./aReading.ts";
import { anEvent, at, live } from "./anEvent.ts";

/** An entry on EV-7731; on veh-214 at bay-01 unless told otherwise, and about nobody where that is null. */
export const anEntry = (
  time: string,
  kind: AuditEntry["kind"],
  words: string,
  facts: Json = null,
): AuditEntry => ({
  at: at(time),
  kind,
  charger: kind === "event" || kind === "daemon" ? null : chargerId("bay-01"),
  vehicle: kind === "event" || kind === "daemon" || kind === "operator" ? null : vehicleId("veh-214"),
  event: kind === "daemon" || kind === "operator" ? null : eventId("EV-7731"),
  command: kind === "decision" || kind === "outcome" ? "7-1" : null,
  words,
  facts,
});

export const CLAIM = {
  event: "EV-7731",
  priority: 1,
  asked: "16 A",
  from: "2026-11-21T05:02:17.000Z",
  until: "2026-11-21T06:02:17.000Z",
  offsetMs: 137_000,
  spreadMs: 600_000,
  cutAt: null,
};

/** EV-7731 as it usually goes. */
export const STORY: readonly AuditEntry[] = [
  anEntry("04:00", "event", "event EV-7731 is new (webhook): 16 A", {
    outcome: "new",
    source: "webhook",
    revision: "2026-11-21T04:00:00.000Z",
    start: "2026-11-21T05:00:00.000Z",
    durationMs: 3_600_000,
    randomizeStartMs: 600_000,
    priority: 1,
    ask: { kind: "current", level: 16 },
    hash: "ab".repeat(32),
    targets: { vehicles: 1, foreignVehicles: 2, foreignTypes: [] },
    reports: [{ payloadType: "USAGE", readingType: "DIRECT_READ" }],
    odd: [],
  }),
  anEntry("04:30", "daemon", "setpointd started"),
  anEntry("05:02", "decision", "bay-01 (Bus 214) to 16 A", {
    winner: CLAIM,
    overruled: [],
    told: { kind: "current", value: 16, unit: "A" },
  }),
  anEntry("05:03", "outcome", "acknowledged by the broker after 12 ms", {
    progress: "acknowledged",
    ms: 12,
    sentAt: "2026-11-21T05:02:59.988Z",
  }),
  anEntry("05:04", "outcome", "accepted by the charger", { progress: "accepted" }),
  anEntry("05:05", "outcome", "followed: draws 15.8 A", { progress: "followed" }),
  {
    ...anEntry("06:02", "decision", "bay-01 released: event EV-7731 has ended", {
      winner: null,
      overruled: [],
      told: { kind: "release", value: null, unit: null },
    }),
    command: "7-2",
  },
];

/** The entries as the store would keep them. */
export function rowsOf(entries: readonly AuditEntry[]): readonly RecordRow[] {
  let previous = GENESIS.hash;
  return entries.map((entry, index): RecordRow => {
    const seq = index + 1;
    const cells = cellsOf(seq, entry);
    const facts = JSON.stringify(entry.facts);
    const row = {
      ...entry,
      seq,
      previous,
      text: rowText(cells, facts),
      hash: rowHash(previous, cells, facts),
    };
    previous = row.hash;
    return row;
  });
}

/** The record of a proof, and the rows that it asks for. */
export function recordOf(
  rows: readonly RecordRow[],
  checkpoint: RecordRow | null = null,
): Pick<ProofInput, "record" | "requestRows" | "rows"> {
  const { seq, hash } = rows.at(-1) ?? GENESIS;
  const head = { seq, hash, seal: headSeal(SITE_KEY, seq, hash) };
  let wanted: ReadonlySet<number> = new Set();
  return {
    record: { seqs: rows.map((row) => row.seq), head, checkpoint },
    requestRows: (seqs) => (wanted = new Set(seqs)),
    rows: () => rows.filter((row) => wanted.has(row.seq)),
  };
}

/** Signs the proofs of the tests. */
export const { privateKey: PROOF_KEY, publicKey: PUBLIC_KEY } = generateKeyPairSync("ed25519");

/** All that is known of EV-7731 at 07:00. */
const aProofInput = (changes: Partial<ProofInput> = {}): ProofInput => ({
  event: eventId("EV-7731"),
  site: { id: "depot", timezone: "Europe/Oslo" },
  now: at("07:00"),
  known: live(anEvent({ randomizeStart: millis(0) })),
  ...recordOf(rowsOf(STORY)),
  expansion: aContext(),
  context: fillContext(),
  request: () => {},
  evidence: () => ({ readings: charging(from("05:00", "06:00"), 11_000, { every: 60 }), leftOut: 0 }),
  reports: [],
  ...changes,
});

export const factsOf = (changes: Partial<ProofInput> = {}): readonly Fact[] =>
  [...proofFacts(aProofInput(changes))].filter((fact) => fact !== null);

/** The file. */
export const proofText = (format: Format, changes: Partial<ProofInput> = {}): string =>
  sealedText(factsOf(changes), format);

/** These facts as a file. */
export const sealedText = (facts: readonly Fact[], format: Format): string =>
  [...serialized(sealed(facts, SITE_KEY, PROOF_KEY), format)].join("\n");
