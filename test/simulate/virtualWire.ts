import { Agent } from "undici";

/** One HTTP request, as it would go out. */
export interface WireAsk {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type Signal = AbortSignal;

const { timeout } = AbortSignal;

/**
 * The network of this process: every request of its HTTP clients is answered here, whatever its origin, and their
 * deadlines pass in virtual time. A client that is destroyed, as its process ended, hears nothing any more.
 */
export class VirtualWire implements Disposable {
  answer: (ask: WireAsk) => Promise<WireAnswer> = () => NEVER;

  constructor() {
    const deadlines = new WeakMap<Signal, NodeJS.Timeout>();
    Object.assign(AbortSignal, {
      timeout: (ms: number): Signal => {
        const control = new AbortController();
        deadlines.set(
          control.signal,
          setTimeout(() => control.abort(), ms),
        );
        return control.signal;
      },
    });
    const answered = async (ask: WireAsk, signal: Signal) => {
      const { promise: late, reject } = Promise.withResolvers<never>();
      const giveUp = (): void => reject(new Error("the deadline has passed"));
      signal.addEventListener("abort", giveUp);
      try {
        return await Promise.race([this.answer(ask), late]);
      } finally {
        signal.removeEventListener("abort", giveUp);
        clearTimeout(deadlines.get(signal));
      }
    };
    Object.assign(Agent.prototype, {
      async request(this: Agent, { signal, ...ask }: WireAsk & { readonly signal: Signal }) {
        const { status, headers, body } = this.destroyed ? await NEVER : await answered(ask, signal);
        if (this.destroyed) return NEVER;
        return { statusCode: status, headers, body: [Buffer.from(body)] };
      },
    });
  }

  [Symbol.dispose](): void {
    Reflect.deleteProperty(Agent.prototype, "request");
    Object.assign(AbortSignal, { timeout });
  }
}

const NEVER = new Promise<never>(() => {});
