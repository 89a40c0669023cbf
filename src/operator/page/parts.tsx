import { signal, useComputed, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Role } from "./apiAnswers.ts";
import { agoOf, type Shape, type Shown } from "./derive.ts";
import { span } from "./format.ts";
import { linkTo } from "./router.ts";
import { mayAct, now, person, refuse } from "./store.ts";
import { t } from "./texts.ts";

const SHAPES: Readonly<Record<Shape, string>> = {
  dot: "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11z",
  ring: "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0-12zM8 4.5a3.5 3.5 0 1 1 0 7a3.5 3.5 0 1 1 0-7z",
  down: "M1.5 3.5h13L8 14z",
  triangle: "M8 1.5L15.2 14H.8zM7 6v4h2V6zM7 11v2h2v-2z",
  cross: "M3.6 1.5L8 5.9l4.4-4.4 2.1 2.1L10.1 8l4.4 4.4-2.1 2.1L8 10.1l-4.4 4.4-2.1-2.1L5.9 8 1.5 3.6z",
  pause: "M3 2h3.6v12H3zM9.4 2H13v12H9.4z",
  hand: "M8 1l7 7-7 7-7-7z",
  bolt: "M9.5 1L3 9h4l-.8 6L13 6.6H8.6z",
};

/** A shape of 1 em. The word beside it says the same. */
export const Glyph = ({ shape }: { readonly shape: Shape }) => (
  <svg class="glyph" viewBox="0 0 16 16" aria-hidden="true">
    <path d={SHAPES[shape]} fill="currentColor" fill-rule="evenodd" />
  </svg>
);

/** A state: shape, word and colour. */
export const State = ({ shown, extra }: { readonly shown: Shown; readonly extra?: string }) => (
  <span class={`state ${shown.tone}`}>
    <Glyph shape={shown.shape} />
    <span>
      {shown.word}
      {extra === undefined ? "" : ` ${extra}`}
    </span>
  </span>
);

/** Age of a value, to the second. */
export function Age({ at, never }: { readonly at: string | null | undefined; readonly never?: string }) {
  const text = useComputed(() => {
    const age = agoOf(at, now.value);
    return age === Infinity ? (never ?? t.strip.never) : t.strip.ago(span(age));
  });
  return <span class="age">{text}</span>;
}

/** A part of a screen with a heading. */
export const Section = ({
  title,
  aside,
  children,
  name,
}: {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly name: string;
}) => (
  <section class={`panel ${name}`} aria-labelledby={`h-${name}`}>
    <header class="panel-head">
      <h2 id={`h-${name}`}>{title}</h2>
      {aside}
    </header>
    {children}
  </section>
);

/** Row of column names. */
export const HeadRow = ({ columns }: { readonly columns: Readonly<Record<string, string>> }) => (
  <thead>
    <tr>
      {Object.entries(columns).map(([name, label]) => (
        <th key={name} scope="col">
          {label}
        </th>
      ))}
    </tr>
  </thead>
);

/** A large value with its name above and its age or state below. */
export const Level = ({
  label,
  value,
  isOld = false,
  children,
}: {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly isOld?: boolean;
  readonly children: ComponentChildren;
}) => (
  <div class={isOld ? "is-stale" : ""}>
    <dt>{label}</dt>
    <dd>{value}</dd>
    <dd class="age">{children}</dd>
  </div>
);

/** A wide table scrolls by itself, with the keyboard as well. `name`: that of its section. */
export const Wide = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div class="scroll" tabIndex={0} role="region" aria-labelledby={`h-${name}`}>
    <table class="rows rows-plain">{children}</table>
  </div>
);

/** The heading of a screen. It gets the focus when the screen opens. */
export const Title = ({
  children,
  aside,
}: {
  readonly children: ComponentChildren;
  readonly aside?: ComponentChildren;
}) => (
  <header class="title">
    <h1 tabIndex={-1}>{children}</h1>
    {aside}
  </header>
);

/** A screen of which there is nothing: a wrong address, or an id that is not known. */
export const Missing = ({ children }: { readonly children: string }) => (
  <>
    <Title>{children}</Title>
    <a href={linkTo("/")}>{t.login.toNow}</a>
  </>
);

/** A cell of a table. Without content it is a dash, which a phone leaves out. */
export const Cell = ({
  label,
  name = "",
  children,
}: {
  readonly label: string;
  readonly name?: string;
  readonly children?: ComponentChildren;
}) => (
  <td data-label={label} class={children == null ? `${name} is-none` : name}>
    {children ?? "–"}
  </td>
);

/** A button that only people with a role may press. Others see it, disabled, with the reason. */
export function Act({
  role,
  label,
  name,
  onPress,
  kind = "plain",
}: {
  readonly role: Role;
  readonly label: string;
  /** Text for a screen reader, if the label alone is not enough. */
  readonly name?: string;
  readonly onPress: () => void;
  readonly kind?: "plain" | "strong";
}) {
  const may = mayAct(role);
  return (
    <button
      type="button"
      class={kind}
      aria-disabled={!may}
      aria-label={name}
      title={may ? undefined : t.person.mayNot(role)}
      onClick={() => (may ? onPress() : refuse(t.person.mayNot(role)))}
    >
      {label}
    </button>
  );
}

/** The modal dialog of an action. Escape closes it, and the focus returns to where it was. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  // The person who signed in after the end of a session may have a smaller role.
  useSignalEffect(() => {
    if (person.value != null && !mayAct("operator")) onClose();
  });
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class="dialog" aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

/** Entries of an ordered list of steps. */
export const StepItems = ({
  steps,
}: {
  readonly steps: readonly (readonly [label: string, isDone: boolean])[];
}) =>
  steps.map(([label, isDone]) => (
    <li key={label} class={isDone ? "good" : "mute"}>
      <Glyph shape={isDone ? "dot" : "ring"} />
      {label}
    </li>
  ));

const THEMES = ["auto", "light", "dark"] as const;
type ThemeName = (typeof THEMES)[number];

const KEY = "setpointd.theme";
export const theme = signal<ThemeName>("auto");

/** `auto` follows the system. */
function setTheme(chosen: ThemeName): void {
  theme.value = chosen;
  if (chosen === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // A browser without storage forgets the choice.
  }
}

export function restoreTheme(): void {
  try {
    const kept = THEMES.find((name) => name === localStorage.getItem(KEY));
    if (kept !== undefined) setTheme(kept);
  } catch {
    // A browser without storage starts with the system's colours.
  }
}

/** The choice of colours. */
export const Theme = () => (
  <label class="theme">
    <span class="unseen">{t.theme.label}</span>
    <select
      value={theme.value}
      onChange={({ currentTarget }) =>
        setTheme(THEMES.find((name) => name === currentTarget.value) ?? "auto")
      }
    >
      {THEMES.map((name) => (
        <option key={name} value={name}>
          {t.theme[name]}
        </option>
      ))}
    </select>
  </label>
);
