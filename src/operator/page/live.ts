import { batch, computed, type ReadonlySignal, signal, type Signal } from "@preact/signals";

import type { Alarm, AuditRow, Charger, Hold, Status, Vehicle } from "./apiAnswers.ts";
import type { SiteEvent } from "./derive.ts";

/** A message of the stream: an object as it is now. */
export type Frame =
  | { readonly kind: "status"; readonly value: Status }
  | { readonly kind: "charger"; readonly value: Charger }
  | { readonly kind: "vehicle"; readonly value: Vehicle }
  | { readonly kind: "event"; readonly value: SiteEvent }
  | { readonly kind: "hold"; readonly value: Hold }
  | { readonly kind: "alarm"; readonly value: Alarm }
  | { readonly kind: "audit"; readonly value: AuditRow };

const KINDS = ["status", "charger", "vehicle", "event", "hold", "alarm", "audit"] as const;

/** Ms without a message after which a stream counts as dead. The gateway sends its status every 15 s. */
const SILENT = 45_000;
/** Ms after the opening within which the first message comes at once, unless a proxy holds it back. */
const MUTE = 5000;

interface StreamListener {
  readonly onOpen: () => void;
  /** The first message of a stream without a past, and of one that cannot be resumed. */
  readonly onReset: () => void;
  readonly onFrame: (frame: Frame) => void;
  readonly onError: () => void;
}

/** The server-sent events of the gateway. */
export class Stream {
  readonly #source: EventSource;
  /** Time of the last message, at first of the opening. By the wall clock, which runs on while a computer sleeps. */
  #lastMessage = Date.now();
  #isMute = true;

  constructor(url: string, { onOpen, onReset, onFrame, onError }: StreamListener) {
    this.#source = new EventSource(url);
    this.#source.addEventListener("open", onOpen);
    this.#source.addEventListener("reset", () => {
      this.#received();
      onReset();
    });
    for (const kind of KINDS)
      this.#source.addEventListener(kind, (message) => {
        if (!(message instanceof MessageEvent)) return;
        this.#received();
        onFrame({ kind, value: JSON.parse(String(message.data)) });
      });
    this.#source.addEventListener("error", onError);
  }

  get isOpen(): boolean {
    return this.#source.readyState === EventSource.OPEN;
  }

  get isClosed(): boolean {
    return this.#source.readyState === EventSource.CLOSED;
  }

  get lastMessage(): number {
    return this.#lastMessage;
  }

  /** True: it died while the computer slept, or a proxy holds it back. Neither is an error for the browser. */
  get isSilent(): boolean {
    return Math.abs(Date.now() - this.#lastMessage) >= SILENT;
  }

  /** True once, if the stream was opened and sends nothing. */
  takeMute(): boolean {
    const isMute = this.#isMute && Math.abs(Date.now() - this.#lastMessage) >= MUTE;
    if (isMute) this.#isMute = false;
    return isMute;
  }

  close(): void {
    this.#source.close();
  }

  #received(): void {
    this.#lastMessage = Date.now();
    this.#isMute = false;
  }
}

/** Messages that are applied before a picture: a yard that reports all at once must not hold it up. */
const MOST_AT_ONCE = 12;
/** A long queue is applied in shares of this part, so that it gets shorter however fast it fills. */
const SHARE = 1 / 30;
/** Ms between two applications in the background, where no pictures are drawn. */
const HIDDEN_EVERY = 1000;

/** The window that shows the page. */
export interface PageWindow {
  readonly isHidden: () => boolean;
  readonly onHiddenChange: (listener: () => void) => void;
  /** Calls before the next picture. Never while the page is hidden. */
  readonly beforePicture: (listener: () => void) => void;
}

/** The last message about each object, until it is applied: a few before each picture. */
export class FrameQueue {
  readonly #waiting = new Map<string, Frame>();
  readonly #apply: (frame: Frame) => void;
  readonly #window: PageWindow;

  constructor(apply: (frame: Frame) => void, window: PageWindow) {
    this.#apply = apply;
    this.#window = window;
    // A picture that was requested before the page went into the background is not drawn.
    window.onHiddenChange(() => {
      if (this.#waiting.size > 0) this.#plan();
    });
  }

  add(frame: Frame): void {
    this.#waiting.set(nameOf(frame), frame);
    if (this.#waiting.size === 1) this.#plan();
  }

  #plan(): void {
    if (this.#window.isHidden()) setTimeout(() => this.#next(), HIDDEN_EVERY);
    else this.#window.beforePicture(() => this.#next());
  }

  #next(): void {
    const { size } = this.#waiting;
    const most = this.#window.isHidden() ? size : Math.max(MOST_AT_ONCE, Math.ceil(size * SHARE));
    const frames = [...this.#waiting].slice(0, most);
    batch(() => {
      for (const [name, frame] of frames) {
        this.#waiting.delete(name);
        this.#apply(frame);
      }
    });
    if (this.#waiting.size > 0) this.#plan();
  }
}

function nameOf({ kind, value }: Frame): string {
  switch (kind) {
    case "status":
      return kind;
    case "charger":
      return `${kind} ${value.charger}`;
    case "alarm":
      return `${kind} ${value.key}`;
    case "audit":
      return value.kind === "operator" ? `${kind} operator` : kind;
    case "vehicle":
    case "event":
    case "hold":
      return `${kind} ${value.id}`;
  }
}

/** Objects by id, each with a signal of its own: a changed charger redraws one tile. */
export class Collection<T> {
  readonly #byId = new Map<string, Signal<T>>();
  /** Time of the last change of an object. */
  readonly #changedAt = new Map<string, number>();
  readonly #keyOf: (value: T) => string;
  readonly ids = signal<readonly string[]>([]);
  readonly all: ReadonlySignal<readonly T[]> = computed(() =>
    this.ids.value.flatMap((id) => this.#byId.get(id)?.value ?? []),
  );

  constructor(keyOf: (value: T) => string) {
    this.#keyOf = keyOf;
  }

  /** Follows one object, also before it is known. */
  of(id: string): T | undefined {
    // The list of ids is read so that a first appearance redraws.
    void this.ids.value;
    return this.#byId.get(id)?.value;
  }

  /** Takes an object that changed. */
  put(value: T): void {
    const id = this.#keyOf(value);
    this.#changedAt.set(id, performance.now());
    const found = this.#byId.get(id);
    if (found !== undefined) {
      found.value = value;
      return;
    }
    this.#byId.set(id, signal(value));
    this.ids.value = [...this.ids.value, id];
  }

  /**
   * Replaces all, except objects that changed since the list was requested. `requestedAt`: by `performance.now()`. Two lists
   * may be on their way.
   */
  load(list: readonly T[], requestedAt = Infinity): void {
    const isFresher = (id: string): boolean => (this.#changedAt.get(id) ?? -Infinity) >= requestedAt;
    const ids = list.map(this.#keyOf);
    const late = this.ids.value.filter((id) => isFresher(id) && !ids.includes(id));
    for (const value of list) {
      const id = this.#keyOf(value);
      if (isFresher(id)) continue;
      const found = this.#byId.get(id);
      if (found === undefined) this.#byId.set(id, signal(value));
      else found.value = value;
    }
    this.ids.value = [...ids, ...late];
  }
}
