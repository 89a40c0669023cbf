/** Part of a site that a trial is about. */
export type Area =
  | "daemon"
  | "partner"
  | "webhook"
  | "brokers"
  | "chargers"
  | "clock"
  | "disk"
  | "database"
  | "fleet"
  | "certificates";

/** Result of one trial. */
export interface Finding {
  readonly area: Area;
  readonly name: string;
  readonly result: "ok" | "wrong" | "skipped";
  readonly found: string;
  /** Source of the knowledge, e.g. `a token request to https://...`. */
  readonly how: string;
  /** Expected result, and how to reach it. Null: nothing to do. */
  readonly remedy: string | null;
}

/** Receives the results of trials in their order, and counts them. */
export class Trials {
  readonly #report: (finding: Finding) => void;
  readonly #wait: (message: string) => void;
  readonly #counts = { ok: 0, wrong: 0, skipped: 0 };
  #area: Area = "daemon";
  #how = "";

  /** `wait`: receives lines of progress. */
  constructor(report: (finding: Finding) => void, wait: (message: string) => void = () => {}) {
    this.#report = report;
    this.#wait = wait;
  }

  get failures(): number {
    return this.#counts.wrong;
  }

  get counts(): Readonly<Record<Finding["result"], number>> {
    return this.#counts;
  }

  /** Sets the area of the trials that follow. */
  about(area: Area): void {
    this.#area = area;
  }

  /** Sets the source of knowledge of the trials that follow. */
  by(how: string): void {
    this.#how = how;
  }

  ok(name: string, found: string): void {
    this.#add("ok", name, found, null);
  }

  /** `remedy`: the result of a success, and how to get there. */
  failed(name: string, found: string, remedy: string): void {
    this.#add("wrong", name, found, remedy);
  }

  untried(name: string, why: string): void {
    this.#add("skipped", name, why, null);
  }

  waiting(message: string): void {
    this.#wait(message);
  }

  #add(result: Finding["result"], name: string, found: string, remedy: string | null): void {
    this.#counts[result] += 1;
    this.#report({ area: this.#area, name, result, found, how: this.#how, remedy });
  }
}
