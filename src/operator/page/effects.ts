import { type ReadonlySignal, useComputed } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import { get, post, problemText, Refused, requestKey } from "./api.ts";
import type { AuditRow } from "./apiAnswers.ts";
import { person } from "./store.ts";
import { t } from "./texts.ts";

/** Data that a screen loads for itself, and the reason why it could not. */
export interface Loaded<T> {
  readonly value: T | null;
  readonly problem: string | null;
}

/**
 * Loads from the API when the screen opens, whenever `path` or `version` changes, and every `everyMs` (0: never).
 * A loaded value stays while it is loaded again.
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

/** Rows of the record that are read from its beginning, and again from its end. */
const MOST_ROWS = 5000;
/** A page of the record ends before a row of several entries without room for all: at most so many. */
const LARGEST_ROW = 1000;

/** The first and the last rows of the record on an event. `isCut`: those between them may be missing. */
export function useEventRecord(
  id: string,
  everyMs: number,
  version: unknown,
): { readonly rows: readonly AuditRow[]; readonly isLoading: boolean; readonly isCut: boolean } {
  const path = `audit?event=${encodeURIComponent(id)}&limit=${MOST_ROWS}`;
  const [isLong, setLong] = useState(false);
  const { value: first, problem } = useLoaded<readonly AuditRow[]>(path, isLong ? 0 : everyMs, version);
  const last = isFull(first) ? first?.at(-1) : undefined;
  if (last !== undefined && !isLong) setLong(true);
  const { value: newest } = useLoaded<readonly AuditRow[]>(
    last === undefined
      ? null
      : `${path}&newest=true&after=${last.seq}${last.part === undefined ? "" : `.${last.part}`}`,
    everyMs,
    version,
  );
  return {
    rows: [...(first ?? []), ...(newest ?? [])],
    isLoading: first === null && problem === null,
    isCut: isFull(newest),
  };
}

const isFull = (rows: readonly AuditRow[] | null): boolean => (rows?.length ?? 0) > MOST_ROWS - LARGEST_ROW;

/** Ms without a change after which the gateway is asked: a person types a number digit by digit. */
const SETTLED = 300;

/**
 * The answer to a body that changes nothing at the gateway, again whenever the body changes. Null: not asked. An answer
 * to another body is never shown.
 */
export function useAnswer<T>(path: string, body: object | null): Loaded<T> {
  const asked = JSON.stringify(body);
  const [loaded, setLoaded] = useState<Loaded<T> & { readonly asked: string }>({ ...NOTHING, asked });
  useEffect(() => {
    if (body === null) return;
    let isOpen = true;
    const load = async (): Promise<void> => {
      const answer = await post<T>(path, body).then(
        (value) => ({ value, problem: null }),
        (error: unknown) => ({ value: null, problem: problemText(error) }),
      );
      if (isOpen) setLoaded({ ...answer, asked });
    };
    const timer = setTimeout(() => void load(), SETTLED);
    return () => {
      isOpen = false;
      clearTimeout(timer);
    };
  }, [path, asked]);
  return loaded.asked === asked ? loaded : NOTHING;
}

/**
 * Idempotency key of a request: the same for the same body by the same person. After a lost answer the same request is
 * repeated, and a changed one is a request of its own.
 */
export function useRequestKey(): (body: object) => string {
  const keys = useRef(new Map<string, string>());
  return (body) => {
    const request = JSON.stringify([person.value?.name, body]);
    const key = keys.current.get(request) ?? requestKey();
    keys.current.set(request, key);
    return key;
  };
}

const NOTHING = { value: null, problem: null } as const;

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
