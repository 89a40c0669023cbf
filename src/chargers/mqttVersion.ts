/** Which MQTT the next attempt speaks: 5 first, 3.1.1 (on the wire: 4) where the broker does not know it. */
export interface VersionChoice {
  readonly version: 4 | 5;
  /** Failed attempts in a row with this version. */
  readonly failures: number;
}

export const firstChoice: VersionChoice = { version: 5, failures: 0 };

/** So often in a row, then the other version gets its turn. */
const PATIENCE = 3;

/** What worked is kept. */
export const afterSuccess = ({ version }: VersionChoice): VersionChoice => ({ version, failures: 0 });

/**
 * `version`: the broker said that it does not speak it; the other one at once.
 * `unanswered`: it hung up without a word, as some old brokers do on MQTT 5, and as any broker does on its way down.
 */
export function afterFailure(
  { version, failures }: VersionChoice,
  failure: "version" | "unanswered" | "other",
): VersionChoice {
  const other: VersionChoice = { version: version === 5 ? 4 : 5, failures: 0 };
  if (failure === "version") return other;
  if (failures + 1 < PATIENCE) return { version, failures: failures + 1 };
  return version === 4 || failure === "unanswered" ? other : { version, failures: 0 };
}
