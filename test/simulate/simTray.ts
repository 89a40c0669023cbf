import { instant } from "../../src/domain/units.ts";
import { ReportTray } from "../../src/sim/reports.ts";
import type { WireAnswer } from "./virtualWire.ts";

/**
 * How the partner fails to take reports: `lost` takes them and never says so, `silent` does not take them, `refuses`
 * does not like them, `gone` has no such address, `forbids` does not let us, `busy` asks us to wait.
 */
export type Mistake = "lost" | "silent" | "error" | "refuses" | "gone" | "forbids" | "busy";

/** One report as it came. */
export interface Posted {
  readonly name: string;
  readonly body: string;
  /** Ends of its intervals, in order; starts of them. Ms since the epoch. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

interface Options {
  readonly truth: () => number;
  readonly random: () => number;
  /** Every report that comes, taken or not. */
  readonly onPosted: (posted: Posted) => void;
}

const HEADERS = { "content-type": "application/json" };
const NO_ANSWER = new Promise<never>(() => {});
const SAID: Readonly<Record<"error" | "refuses" | "gone" | "forbids" | "busy", number>> = {
  error: 500,
  refuses: 422,
  gone: 404,
  forbids: 403,
  busy: 429,
};

/** Where the partner takes reports. */
export class SimTray {
  /** Undefined: well. */
  answers: Mistake | undefined;
  /** Bodies by name. */
  readonly taken = new Map<string, string>();
  readonly #options: Options;
  readonly #tray = new ReportTray();

  constructor(options: Options) {
    this.#options = options;
  }

  async answer(body: string): Promise<WireAnswer> {
    const { truth, random, onPosted } = this.#options;
    const posted = read(body);
    onPosted(posted);
    const how = this.answers;
    await new Promise((resolve) => setTimeout(resolve, 50 + 200 * random()));
    switch (how) {
      case "silent":
        return NO_ANSWER;
      case "error":
      case "refuses":
      case "gone":
      case "forbids":
      case "busy":
        return {
          status: SAID[how],
          headers: how === "busy" ? { ...HEADERS, "retry-after": "120" } : HEADERS,
          body: "{}",
        };
      case "lost":
      case undefined: {
        // The second time some say that they have it, and some take it again.
        if (this.taken.has(posted.name) && random() < 0.5)
          return { status: 409, headers: HEADERS, body: "{}" };
        const answer = this.#tray.accept(JSON.parse(body), instant(truth()));
        if (typeof answer === "string")
          return { status: 422, headers: HEADERS, body: JSON.stringify({ detail: answer }) };
        this.taken.set(posted.name, body);
        return how === "lost" ? NO_ANSWER : { status: 201, headers: HEADERS, body: `{"id":"${answer.id}"}` };
      }
    }
  }
}

interface Body {
  readonly reportName: string;
  readonly resources: readonly {
    readonly intervals: readonly {
      readonly intervalPeriod: { readonly start: string; readonly duration: string };
    }[];
  }[];
}

/** openadr3 2: the default spelling. */
function read(body: string): Posted {
  const { reportName: name, resources }: Body = JSON.parse(body);
  const spans = resources.flatMap(({ intervals }) =>
    intervals.map(({ intervalPeriod: { start, duration } }) => {
      const from = Date.parse(start);
      return { from, until: from + lasting(duration) };
    }),
  );
  return {
    name,
    body,
    starts: spans.map(({ from }) => from).toSorted((a, b) => a - b),
    ends: spans.map(({ until }) => until).toSorted((a, b) => a - b),
  };
}

/** Of "PT1H30M0.5S", ms. */
function lasting(text: string): number {
  const [, hours = 0, minutes = 0, seconds = 0] =
    /^PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?$/.exec(text)?.map(Number) ?? [];
  return Math.round(1000 * ((hours || 0) * 3600 + (minutes || 0) * 60 + (seconds || 0)));
}
