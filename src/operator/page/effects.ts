import { type ReadonlySignal, useComputed } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import { get, Refused } from "./api.ts";
import { t } from "./texts.ts";

/** Data that a screen loads for itself, and the reason why it could not. */
export interface Loaded<T> {
  readonly value: T | null;
  readonly problem: string | null;
}

/**
 * Loads from the API when the screen opens, whenever `path` or `version` changes, and every `everyMs` (0: never).
 * What was loaded stays while it is loaded again.
 */
export function useLoaded<T>(path: string | null, everyMs = 0, version: unknown = null): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ value: null, problem: null });
  useEffect(() => {
    if (path === null) return;
    let isOpen = true;
    const load = async (): Promise<void> => {
      try {
        const value = await get<T>(path);
        if (isOpen) setLoaded({ value, problem: null });
      } catch (error) {
        const problem = error instanceof Refused ? error.message : t.failed;
        if (isOpen) setLoaded(({ value }) => ({ value, problem }));
      }
    };
    void load();
    const timer = everyMs === 0 ? 0 : setInterval(() => void load(), everyMs);
    return () => {
      isOpen = false;
      clearInterval(timer);
    };
  }, [path, everyMs, version]);
  return loaded;
}

/** A computed value that stays the same object while its content is the same, so that nothing is drawn again. */
export function useSteady<T>(compute: () => T): ReadonlySignal<T> {
  const last = useRef<{ readonly text: string; readonly value: T } | null>(null);
  return useComputed(() => {
    const value = compute();
    const text = JSON.stringify(value);
    if (last.current?.text !== text) last.current = { text, value };
    return last.current.value;
  });
}
