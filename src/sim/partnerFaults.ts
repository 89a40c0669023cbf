import { millis } from "../core/units.ts";

/** What a partner is asked over HTTP. */
export type Endpoint = "token" | "list" | "event" | "prices" | "report";

interface Failure {
  readonly status: number;
  readonly endpoint: Endpoint | null;
  left: number;
}

/** How a simulated partner misbehaves, and how often it was asked. */
export class PartnerFaults {
  /** Every answer waits this long. */
  latency = millis(0);
  readonly requests: Record<Endpoint, number> = { token: 0, list: 0, event: 0, prices: 0, report: 0 };
  readonly #failures: Failure[] = [];

  /** The next `times` requests (to one endpoint, or to any) answer `status`. */
  failNext(status: number, times = 1, endpoint: Endpoint | null = null): void {
    this.#failures.push({ status, endpoint, left: times });
  }

  /** No failure is planned any more. */
  forgive(): void {
    this.#failures.length = 0;
  }

  /** Counts a request; the status it must fail with, or null. */
  meet(endpoint: Endpoint): number | null {
    this.requests[endpoint] += 1;
    const failure = this.#failures.find(
      (planned) => planned.left > 0 && (planned.endpoint === null || planned.endpoint === endpoint),
    );
    if (!failure) return null;
    failure.left -= 1;
    return failure.status;
  }
}
