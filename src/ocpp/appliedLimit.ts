import type { ReadyStation } from "./orders.ts";
import type { Composite, RateUnit } from "./wire/dialect.ts";

/** The limit that a charger reports to apply (GetCompositeSchedule), as proof for the record. */
export class AppliedLimit {
  readonly #connector: number;
  readonly #onChange: (composite: Composite | null) => void;
  #isUnsupported = false;
  /** Null: not reported. */
  reported: Composite | null = null;

  constructor(connector: number, onChange: (composite: Composite | null) => void) {
    this.#connector = connector;
    this.#onChange = onChange;
  }

  forget(): void {
    if (this.reported === null) return;
    this.reported = null;
    this.#onChange(null);
  }

  async ask({ ask, dialect }: ReadyStation, unit: RateUnit): Promise<void> {
    if (this.#isUnsupported) return;
    const answer = await ask(dialect.composite(this.#connector, 60, unit));
    if (answer.kind === "unsupported" || answer.kind === "unanswered") this.#isUnsupported = true;
    if (answer.kind !== "answered" || answer.value === null) return;
    this.reported = answer.value;
    this.#onChange(answer.value);
  }
}
