import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { changeProblem } from "./api.ts";
import { Dialog } from "./parts.tsx";
import { t } from "./texts.ts";

/** The consequences of an action, before it is done. */
const Consequences = ({ lines }: { readonly lines: readonly string[] }) => (
  <div class="consequence" aria-live="polite">
    <h3>{t.hold.will}</h3>
    <ul>
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  </div>
);

/** The form of a dialog: its consequences, its fields, why the last try failed, and its buttons. */
export const ActionForm = ({
  will,
  trouble,
  onSubmit,
  buttons,
  children,
}: {
  readonly will: readonly string[];
  readonly trouble: string;
  readonly onSubmit: () => Promise<void>;
  readonly buttons: ComponentChildren;
  readonly children?: ComponentChildren;
}) => (
  <form
    onSubmit={(event) => {
      event.preventDefault();
      void onSubmit();
    }}
  >
    <Consequences lines={will} />
    {children}
    <p class="problem" role="alert">
      {trouble}
    </p>
    {buttons}
  </form>
);

/** The last row of a form. It names what is missing, because on a phone the reasons may be out of sight. */
export const Buttons = ({
  submit,
  reason,
  isReady,
  onClose,
}: {
  readonly submit: string;
  readonly reason: string;
  readonly isReady: boolean;
  readonly onClose: () => void;
}) => (
  <div class="buttons">
    {reason.trim() === "" && <p class="hint">{t.hold.reasonFirst}</p>}
    <button type="button" class="plain" onClick={onClose}>
      {t.hold.cancel}
    </button>
    <button class="strong" disabled={!isReady || reason.trim() === ""}>
      {submit}
    </button>
  </div>
);

/**
 * A dialog that acts. It lists what will happen and to whom, and takes a reason. `act` returns what the dialog shows
 * afterwards. Null: it closes.
 */
export function ActionDialog({
  title,
  will,
  presets,
  label = t.hold.reason,
  first = "",
  submit,
  isReady = true,
  act,
  onClose,
  children,
}: {
  readonly title: string;
  readonly will: readonly string[];
  readonly presets: readonly string[];
  readonly label?: string;
  /** The reason that is chosen when the dialog opens. */
  readonly first?: string;
  readonly submit: string;
  /** False: a choice is missing. */
  readonly isReady?: boolean;
  readonly act: (reason: string) => Promise<ComponentChildren>;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}) {
  const words = t.hold;
  const [reason, setReason] = useState(first);
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState<ComponentChildren>(null);
  const run = async (): Promise<void> => {
    setBusy(true);
    setTrouble("");
    try {
      const shown = await act(reason.trim());
      if (shown === null) onClose();
      else setResult(shown);
    } catch (error) {
      setTrouble(changeProblem(error));
    } finally {
      setBusy(false);
    }
  };
  if (result !== null)
    return (
      <Dialog title={title} onClose={onClose}>
        {result}
        <div class="buttons">
          <button type="button" class="strong" onClick={onClose}>
            {words.close}
          </button>
        </div>
      </Dialog>
    );
  return (
    <Dialog title={title} onClose={onClose}>
      <ActionForm
        will={will}
        trouble={trouble}
        onSubmit={run}
        buttons={<Buttons submit={submit} reason={reason} isReady={isReady && !isBusy} onClose={onClose} />}
      >
        {children}
        <ReasonField label={label} presets={presets} value={reason} onChange={setReason} />
      </ActionForm>
    </Dialog>
  );
}

/** Choices of which one holds. `name`: the same for no other choices of the form. */
export const Choices = <Value extends string>({
  name,
  options,
  value,
  onChange,
}: {
  readonly name: string;
  readonly options: readonly {
    readonly value: Value;
    readonly label: string;
    readonly isDisabled?: boolean;
  }[];
  readonly value: string;
  readonly onChange: (value: Value) => void;
}) =>
  options.map(({ value: each, label, isDisabled = false }) => (
    <label key={each} class="choice">
      <input
        type="radio"
        name={name}
        checked={value === each}
        disabled={isDisabled}
        onChange={() => onChange(each)}
      />
      <span>{label}</span>
    </label>
  ));

/** A choice that holds or not. */
export const Tick = ({
  label,
  isSet,
  onChange,
}: {
  readonly label: string;
  readonly isSet: boolean;
  readonly onChange: (isSet: boolean) => void;
}) => (
  <label class="choice">
    <input
      type="checkbox"
      checked={isSet}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
    <span>{label}</span>
  </label>
);

interface FieldProps {
  /** Text for a screen reader. Absent: a label stands around the field. */
  readonly label?: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
}

/** A field for a number of at least one that has to be filled in. */
export const NumberField = ({ label, value, onChange, most }: FieldProps & { readonly most: number }) => (
  <input
    type="number"
    class="short"
    min={1}
    max={most}
    step="any"
    required
    aria-label={label}
    value={value}
    onInput={({ currentTarget }) => onChange(currentTarget.value)}
  />
);

/** A field for a time of day that has to be filled in. */
export const TimeField = ({ label, value, onChange }: FieldProps) => (
  <input
    type="time"
    class="short"
    required
    aria-label={label}
    value={value}
    onInput={({ currentTarget }) => onChange(currentTarget.value)}
  />
);

/** Reasons to choose from, and one of your own. */
export function ReasonField({
  presets,
  value,
  onChange,
  label,
}: {
  readonly presets: readonly string[];
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly label: string;
}) {
  return (
    <fieldset>
      <legend>{label}</legend>
      <div class="choices">
        <Choices
          name="reason"
          options={presets.map((preset) => ({ value: preset, label: preset }))}
          value={value}
          onChange={onChange}
        />
      </div>
      <input
        type="text"
        class="wide"
        maxLength={200}
        aria-label={t.hold.otherReason}
        placeholder={t.hold.otherReason}
        value={presets.includes(value) ? "" : value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </fieldset>
  );
}
